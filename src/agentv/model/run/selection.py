"""Selection of trials of a stored run."""

from __future__ import annotations

from msgspec import Struct

from agentv.model.run.trial import Status


class Selection(Struct, frozen=True):
    """Filters for trials. Values of the same kind are ORed, different kinds are ANDed; an empty filter matches all.

    Attributes:
        statuses: outcomes.
        cases, suites, targets, tags: names, or patterns as in a shell (`*`, `?`, `[a-z]`), case-sensitive.
    """

    statuses: tuple[Status, ...] = ()
    cases: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
