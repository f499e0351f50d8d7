"""`specdec env`: what a bug report needs."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Annotated

import typer

from specdec_rs import build_info
from specdec_rs.cache import cache_dir, models_dir
from specdec_rs.catalogue import CATALOGUE
from specdec_rs.cli import _show

# Packages whose version explains behaviour; none of them is needed.
_OPTIONAL = ("numpy", "torch", "transformers", "huggingface_hub")


def run(
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Print versions, machine and cache: paste it into a bug report."""
    facts = _facts()
    if json:
        _show.document(facts)
        return
    for title, group in facts.items():
        typer.echo(f"{title}:")
        for name, value in group.items():
            typer.echo(f"  {name}: {value}")


def _facts() -> dict[str, dict[str, object]]:
    return {
        "specdec_rs": dict(build_info()),
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "machine": {
            "platform": platform.platform(),
            "cpu": _cpu(),
            "cpus": os.cpu_count(),
            "cpus_allowed": _cpus_allowed(),
        },
        "packages": {name: _version(name) for name in _OPTIONAL},
        "cache": {
            "folder": str(cache_dir()),
            "models": [m for m in CATALOGUE if (models_dir() / f"{m}.gguf").is_file()],
        },
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpus_allowed() -> int | None:
    """CPUs that this process may use; None where the platform does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _cpu() -> str:
    """The processor's name: `platform.processor` is empty on most Linux systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - read line by line
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
