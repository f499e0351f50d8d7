"""The compiled engine. Use the package's own names; this module is not an interface."""

__all__ = ["build_info"]

def build_info() -> dict[str, str]:
    """How this extension was built: version, target and whether its own checks are on."""
