"""Holds the tree to its own rules: small files, a thin binding, nothing that names a host.

Prints the ten longest files and every breach; exits 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("crates", "python", "tests", "scripts", "benches", "examples", "fuzz", ".ci")
SOURCE = (".rs", ".py", ".pyi")
MAX_LINES = 600
# The binding translates and never decides: a tenth of the Rust code is enough for that.
MAX_BINDING_SHARE = 0.10
# The registries are reached through the clients' own settings, so no file has a reason to name one.
HOSTS = re.compile(r"pypi\.org|pythonhosted|crates\.io|huggingface\.co", re.IGNORECASE)
HOST_ALLOWED = {"Cargo.lock", "check_layout.py"}


def sources() -> list[Path]:
    """Every file of ours that is code."""
    files = (path for room in ROOMS for path in (ROOT / room).rglob("*"))
    return sorted(path for path in files if path.suffix in SOURCE and "target" not in path.parts)


def lines(path: Path) -> int:
    """Number of lines of a text file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def breaches(sizes: dict[Path, int]) -> list[str]:
    """One line for every rule broken."""
    found = [
        f"{path.relative_to(ROOT)}: {size} lines, at most {MAX_LINES}"
        for path, size in sizes.items()
        if size > MAX_LINES
    ]
    for path in sizes:
        if path.name not in HOST_ALLOWED and HOSTS.search(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(ROOT)}: names a host of a registry")
    rust = {path: size for path, size in sizes.items() if path.suffix == ".rs"}
    binding = sum(size for path, size in rust.items() if "specdec-py" in path.parts)
    if binding > MAX_BINDING_SHARE * sum(rust.values()):
        found.append(f"crates/specdec-py: {binding} of {sum(rust.values())} Rust lines")
    return found


def main() -> int:
    """Print and judge."""
    sizes = {path: lines(path) for path in sources()}
    for path, size in sorted(sizes.items(), key=lambda item: -item[1])[:10]:
        print(f"{size:5} {path.relative_to(ROOT)}")
    found = breaches(sizes)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
