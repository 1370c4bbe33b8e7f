"""Selection of trials of a stored run."""

from __future__ import annotations

from dataclasses import dataclass

from agentv.model.run.trial import Status


@dataclass(frozen=True, slots=True)
class Selection:
    """Trials by what their rows say. Of one kind any does, of several kinds each must; what is empty asks nothing.

    Attributes:
        statuses: how they ended.
        cases, suites, targets, tags: names, or patterns as in a shell (`*`, `?`, `[a-z]`), capitals distinguished.
    """

    statuses: tuple[Status, ...] = ()
    cases: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
