"""Draws the diagrams of the page about statistics, as SVG: `python docs/website/diagrams.py`.

Their colors are read on a light and on a dark page. The intervals are those that a report would show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from agentv.stats.intervals.proportion import wilson_interval

ASSETS = Path(__file__).parents[1] / "assets"
BLUE, RED, GREEN, GREY = "#5c6bc0", "#d9534f", "#3a9d5d", "#767c88"
WIDTH = 640


def interval() -> Iterator[str]:
    """The same pass rate of 10, 50 and 400 cases, with its intervals."""
    for row, cases in enumerate((10, 50, 400)):
        y = 30 + 40 * row
        low, high = (120 + 500 * bound for bound in wilson_interval(round(0.8 * cases), cases))
        yield text(0, y + 5, f"{cases} cases")
        yield bar(120, y - 1, 500, 2, GREY)
        yield bar(low, y - 8, high - low, 16, BLUE)
        yield bar(120 + 500 * 0.8 - 1, y - 12, 2, 24, RED)
    for share in (0, 0.5, 1):
        yield text(120 + 500 * share, 150, f"{share:.0%}", "middle")
    yield text(120 + 500 * 0.8, 150, "80%", "middle")


def paired() -> Iterator[str]:
    """Two runs of 20 cases: pass or fail of each, and which changed."""
    base = [True] * 16 + [False] * 4
    candidate = [True] * 13 + [False] * 6 + [True]
    for y, name, verdicts in ((20, "base", base), (60, "candidate", candidate)):
        yield text(0, y + 16, name)
        for place, (passed, changed) in enumerate(zip(verdicts, map(bool.__ne__, base, candidate), strict=True)):
            yield bar(100 + 26 * place, y, 22, 22, GREEN if passed else RED, 1.0 if changed else 0.3)
    yield text(100, 112, "16 cases agree: no information")
    yield text(100 + 26 * 20, 112, "4 changed", "end")


def peeking() -> Iterator[str]:
    """How often two equal runs look different (`benchmarks/sequential_comparison.py`, 10% of the cases change)."""
    rows = (("one look at the end", 5, GREEN), ("a look after every tenth case", 23, RED), ("until: decided", 2, BLUE))
    for row, (name, percent, color) in enumerate(rows):
        y = 14 + 34 * row
        yield text(0, y + 16, name)
        yield bar(240, y, 15 * percent, 22, color)
        yield text(250 + 15 * percent, y + 16, f"{percent}%")


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def bar(x: float, y: float, width: float, height: float, color: str, opacity: float = 1.0) -> str:
    """A filled rectangle."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="2" fill="{color}" opacity="{opacity}"/>'


def document(height: int, parts: Iterable[str]) -> str:
    """A drawing."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return f'{head} font-family="sans-serif" font-size="14" fill="{GREY}">\n' + "\n".join(parts) + "\n</svg>\n"


DIAGRAMS = {"interval": (160, interval), "paired": (124, paired), "peeking": (120, peeking)}


def drawn() -> dict[str, str]:
    """Name → SVG, of all diagrams."""
    return {name: document(height, parts()) for name, (height, parts) in DIAGRAMS.items()}


if __name__ == "__main__":
    for name, svg in drawn().items():
        (ASSETS / f"{name}.svg").write_text(svg, encoding="utf-8")
