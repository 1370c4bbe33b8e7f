"""What the index of cases takes of a row, what it is asked for, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from agentv.model.run.cases import Sample
from agentv.model.run.trial import Status
from agentv.model.suite.suite import Aggregate
from agentv.stats.samples.deciding import Rule
from agentv.store.totals.tally import STATUSES

CaseOrder = Literal["worst", "run", "file", "name", "slowest", "costliest"]
AnyStatus = Literal["passed", "failed", "errored", "skipped", "shown", "flaky"]
CODES = {status: code for code, status in enumerate(STATUSES)}
"""Numbers that stand for statuses in an index."""

_UNESCAPED = "!'()*"


class CaseGroup(Struct, frozen=True, gc=False, array_like=True):
    """What many cases have in common.

    Attributes:
        path: of the eval file, as rows name it.
        clustered_by: what forms the cluster of its cases; None: each case is one.
    """

    suite: str
    path: str | None
    target: str
    prompt: str | None
    variant: str | None
    tags: tuple[str, ...]
    threshold: float
    repeat: int
    aggregate: Aggregate
    alpha: float | None
    clustered_by: str | None

    @property
    def rule(self) -> Rule:
        """How the samples of a case become its verdict."""
        return Rule(self.repeat, self.threshold, self.aggregate, self.alpha)

    @property
    def place(self) -> tuple[str | None, ...]:
        """What a case runs with: another place, another case of the list."""
        return (self.path, self.suite, self.target, self.prompt, self.variant)

    @property
    def names(self) -> Iterable[str]:
        """The names that are searched."""
        names = (self.suite, self.target, self.prompt, self.variant, *self.tags)
        return (name for name in names if name is not None)


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

    def takes(self, group: CaseGroup) -> bool:
        """Whether the names of a group are chosen."""
        return (
            self.suite in ("", group.suite)
            and self.target in ("", group.target)
            and self.prompt in ("", group.prompt)
            and self.variant in ("", group.variant)
            and (not self.tag or self.tag in group.tags)
        )


class IndexedTrial(Struct, frozen=True, gc=False):
    """A trial as it is taken into the index.

    Attributes:
        place: where its row begins, in bytes.
        cluster, same: hashes: of its cluster, and of its case whatever it runs with.
        grades: of each assertion its (type, name) and its state, 0 passed, 1 failed, 2 errored.
        position: of its case in its file.
        texts: all that is searched.
    """

    place: int
    group: CaseGroup
    case_id: str
    sample: int
    sha: str
    result: Sample
    duration: float
    cost: float | None
    grades: Sequence[tuple[str, str, int]]
    teaser: str
    cluster: int
    same: int
    position: int
    texts: str


class CaseTrial(Struct, frozen=True, gc=False):
    """A trial of a case in a list. Its row begins at `place`, in bytes."""

    number: int
    place: int
    sample: int
    status: Status
    score: float | None
    duration: float
    cost: float | None
    grades: list[list[int]]
    teaser: str


class CaseEntry(Struct, frozen=True, gc=False):
    """A case of a list, with its trials in the order of their samples."""

    number: int
    route: str
    case_id: str
    group: CaseGroup
    status: Status
    score: float | None
    teaser: str
    sha: str
    early: dict[str, object] | None
    trials: list[CaseTrial]


def route_of(group: CaseGroup, case_id: str, copy: int = 1) -> str:
    """The address of a case in a run, as the page's `giveRoutes` makes it."""
    after = "".join(f"/{_quoted(name)}" for name in (group.target, group.prompt, group.variant) if name is not None)
    route = f"{_quoted(group.suite)}/{quote(_well_formed(case_id), safe=_UNESCAPED)}{after}"
    return route if copy == 1 else f"{_without_copy(route)}~{copy}"


@lru_cache(maxsize=1024)
def _quoted(name: str) -> str:
    """A name that many cases have in common."""
    return quote(_well_formed(name), safe=_UNESCAPED)


def _without_copy(route: str) -> str:
    head, mark, tail = route.rpartition("~")
    return head if mark and tail.isascii() and tail.isdigit() else route


def _well_formed(name: str) -> str:
    return name if name.isascii() else name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
