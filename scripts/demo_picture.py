"""Draws docs/demo.svg: what `specdec demo` shows on a terminal, from a run of it.

Usage: python scripts/demo_picture.py [MODEL]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

OUT = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"
WIDTH = 100


def shown(*arguments: str) -> str:
    """What the demo prints where there is no terminal."""
    command = [sys.executable, "-m", "specdec_rs", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Run the demo and draw what it printed."""
    plain, rest = shown("--model", *(sys.argv[1:] or ["smollm2-135m"])).split("--- speculative\n")
    text = plain.removeprefix("--- plain\n").strip()
    report = rest.removeprefix(text).strip()
    console = Console(record=True, width=WIDTH, file=sys.stderr)
    panel = WIDTH // 2 - 1
    console.print("$ make demo")
    console.print(
        Columns(
            [Panel(Text(text), title=title, width=panel) for title in ("plain", "speculative")],
            padding=(0, 1),
        )
    )
    console.print(Text(report))
    OUT.parent.mkdir(exist_ok=True)
    # The fonts that rich names lie on a server; a picture in a repository must stand alone.
    picture = re.sub(
        r"@font-face \{.*?\}", "", console.export_svg(title="specdec demo"), flags=re.S
    )
    OUT.write_text(
        "\n".join(line.rstrip() for line in picture.splitlines()) + "\n", encoding="utf-8"
    )
    print(json.dumps({"picture": str(OUT), "report": report.splitlines()[:4]}, indent=2))


if __name__ == "__main__":
    main()
