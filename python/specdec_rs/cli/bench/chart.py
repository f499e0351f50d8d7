"""Line charts as SVG: a picture that stands alone, with nothing to install."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Line", "chart"]

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 48, 56
# Legible on white and on black, and apart for eyes that do not tell red from green.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
INK = "#808080"


@dataclass(frozen=True)
class Line:
    """A series of points, x ascending."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def chart(*, title: str, x: str, y: str, lines: Sequence[Line]) -> str:
    """An SVG document. The y axis begins at 0, so that heights can be compared."""
    points = [point for line in lines for point in line.points]
    across = (min(p[0] for p in points), max(p[0] for p in points))
    step = nice(max(p[1] for p in points) / 5)
    top = step * math.ceil(max(p[1] for p in points) / step)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        span = across[1] - across[0] or 1
        return (
            LEFT + (point[0] - across[0]) / span * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - point[1] / top * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        _text(WIDTH / 2, 24, title, size=16),
        _text(WIDTH / 2, HEIGHT - 12, x),
        _text(18, (TOP + HEIGHT - BOTTOM) / 2, y),
    ]
    for i in range(round(top / step) + 1):
        _, height = place((across[0], i * step))
        parts.append(
            f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="{INK}" stroke-opacity="0.3"/>'
        )
        parts.append(_text(LEFT - 8, height + 4, f"{i * step:g}", anchor="end"))
    for value in sorted({p[0] for p in points}):
        parts.append(_text(place((value, 0))[0], HEIGHT - BOTTOM + 20, f"{value:g}"))
    for i, line in enumerate(lines):
        parts += _series(line, [place(point) for point in line.points], COLOURS[i % 4], i)
    return "\n".join([*parts, "</svg>", ""])


def nice(least: float) -> float:
    """The first of 1, 2, 5, 10, .. times a power of ten that is not below `least` > 0."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= least)


def _series(line: Line, at: Sequence[tuple[float, float]], colour: str, index: int) -> list[str]:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    dash = ' stroke-dasharray="6 4"' if line.dashed else ""
    legend = TOP + 6 + 18 * index
    return [
        f'<path d="{path}" stroke="{colour}" stroke-width="2" fill="none"{dash}/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at),
        f'<path d="M{LEFT + 16} {legend}h28" stroke="{colour}" stroke-width="2"{dash}/>',
        _text(LEFT + 52, legend + 4, line.name, anchor="start"),
    ]


def _text(x: float, y: float, text: str, *, anchor: str = "middle", size: int = 13) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}" '
        f'font-family="sans-serif" font-size="{size}">{escape(text)}</text>'
    )
