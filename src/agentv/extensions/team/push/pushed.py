"""What a push of a run did."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


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
