"""What a push did, and in words."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line

_SHOWN = 3


class Pushed(Struct, frozen=True):
    """What a push did.

    Attributes:
        rows: lines that were sent.
        size: bytes of rows that the server has now.
        artifacts: contents that were sent.
        changed: whether the server lacked anything.
        skipped: paths of artifacts that are too large.
    """

    run_id: str
    rows: int
    size: int
    artifacts: int
    changed: bool
    skipped: tuple[str, ...] = ()


class LivePushed(Struct, frozen=True):
    """What was pushed of a run while it went on.

    Attributes:
        path: its directory.
        page: address of the page that shows it.
        rows: lines that were sent.
        problem: why the server does not have all of it; None: it has.
        missing: how many rows the server lacks, and how many there are.
    """

    path: Path
    page: str
    rows: int
    problem: str | None = None
    missing: tuple[int, int] = (0, 0)


def render_pushed(pushed: Pushed) -> str:
    """One line, and one more where artifacts were too large."""
    sent = [plural(pushed.rows, "row")] if pushed.rows else []
    if pushed.artifacts:
        sent.append(plural(pushed.artifacts, "artifact"))
    what = ", ".join(sent) or "no new rows"
    lines = [f"{pushed.run_id}: {what} pushed" if pushed.changed else f"{pushed.run_id}: the server has all of it"]
    if pushed.skipped:
        named = ", ".join(map(one_line, pushed.skipped[:_SHOWN]))
        more = f" and {len(pushed.skipped) - _SHOWN} more" if len(pushed.skipped) > _SHOWN else ""
        lines.append(f"warning: too large to push: {named}{more}")
    return "\n".join(lines)


def render_live_pushed(pushed: LivePushed, command: str) -> str:
    """What became of a run that was pushed while it went on. `command` pushes the rest."""
    if pushed.problem is None:
        return f"pushed {plural(pushed.rows, 'row')}: {pushed.page}"
    missing, rows = pushed.missing
    of, were = "row" if rows == 1 else "rows", "was" if missing == 1 else "were"
    what = f"{missing:,} of {rows:,} {of} {were} not pushed" if missing else "the end of the run was not pushed"
    return f"warning: {what}: {one_line(pushed.problem)}. Push the rest with:\n  {command}"
