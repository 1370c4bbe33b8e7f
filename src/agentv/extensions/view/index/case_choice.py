"""Which cases of a run are listed, and in what order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from agentv.extensions.view.index.case_entries import CaseGroup
from agentv.store.totals.tally import STATUSES

CaseOrder = Literal["worst", "run", "file", "name", "slowest", "costliest"]
AnyStatus = Literal["passed", "failed", "errored", "skipped", "shown", "flaky"]
CODES = {status: code for code, status in enumerate(STATUSES)}
"""Numbers that stand for statuses in an index."""


class CaseChoice(Struct, frozen=True, gc=False):
    """Cases of a run; what is empty chooses all.

    Attributes:
        statuses: `flaky`: samples disagree.
        assertion: `failed NAME` or `any NAME`, where NAME is a type or a name.
        ids: of cases.
        trials: numbers of trials of which a case has one; None: any.
        q: terms that a trial of the case contains; words from their beginning, ids and names anywhere.
    """

    statuses: tuple[AnyStatus, ...] = ()
    suite: str = ""
    target: str = ""
    prompt: str = ""
    variant: str = ""
    tag: str = ""
    assertion: str = ""
    trials: tuple[int, ...] | None = None
    q: str = ""
    ids: tuple[str, ...] = ()
    order: CaseOrder = "worst"

    def with_any_status(self) -> CaseChoice:
        """The choice without its statuses."""
        return msgspec.structs.replace(self, statuses=())

    def takes(self, group: CaseGroup) -> bool:
        """Whether the names of a group are chosen."""
        return (
            self.suite in ("", group.suite)
            and self.target in ("", group.target)
            and self.prompt in ("", group.prompt)
            and self.variant in ("", group.variant)
            and (not self.tag or self.tag in group.tags)
        )

    @property
    def by_group(self) -> bool:
        """Whether names are chosen."""
        return bool(self.suite or self.target or self.prompt or self.variant or self.tag)


def names_of(group: CaseGroup) -> Iterable[str]:
    """The names of a group that are searched."""
    names = (group.suite, group.target, group.prompt, group.variant, *group.tags)
    return (name for name in names if name is not None)
