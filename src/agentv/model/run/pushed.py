"""What a push of a run did."""

from __future__ import annotations

from agentv.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pushed:
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
