"""`agentv import PROGRAM --list`, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line
from agentv.reports.text.tables import Cell, aligned

_LONGEST_PROJECT = 40


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One session of a list.

    Attributes:
        prompt: the first one; or why the session cannot be read.
        turns: number of prompts; None where it cannot be read.
    """

    identity: str
    begun: datetime | None
    project: str
    prompt: str
    turns: int | None


def render_sessions(lines: Sequence[SessionLine], *, more: bool, width: int, color: bool = False) -> str:
    """A table, and below it how many sessions there are.

    Args:
        lines: in the order in which they are shown; at least one.
        more: there are others.
        width: columns of the terminal.
        color: paint with escape sequences.
    """
    headings: list[Cell] = [(name, "bold") for name in ("SESSION", "BEGUN", "PROJECT", "TURNS", "FIRST PROMPT")]
    rows = [headings, *map(_row, lines)]
    total = f"the {plural(len(lines), 'newest session')}" if more else plural(len(lines), "session")
    hint = "; --date and --project-path narrow the list" if more else ""
    return "\n".join([*aligned(rows, width, color=color), "", total + hint])


def _row(line: SessionLine) -> list[Cell]:
    begun = "-" if line.begun is None else f"{line.begun:%Y-%m-%d %H:%M}"
    project = one_line(line.project)
    shown = project if len(project) <= _LONGEST_PROJECT else "…" + project[1 - _LONGEST_PROJECT :]
    turns: Cell = ("-", "wrong") if line.turns is None else (str(line.turns), None)
    prompt = one_line(line.prompt, 200)
    return [(one_line(line.identity), None), (begun, "dim"), (shown or "-", None), turns, (prompt, None)]
