"""Pass rates of selected cases and of assertions, with their intervals. An index stores those of all cases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial

import msgspec
from msgspec import Struct

from agentv.extensions.view.case_index import CaseIndex
from agentv.extensions.view.case_queries import ClusterSums
from agentv.extensions.view.case_rows import CaseChoice, CaseGroup
from agentv.extensions.view.pages.entries import ERRORED, FAILED, PASSED
from agentv.model.run.cases import CASE
from agentv.stats.intervals.design_effect import Estimate, Sums, estimated_mean, estimated_rate

MOST_CLUSTERED = 50_000
"""Maximum number of dependent cases whose rate is computed during a request."""

_MOST_NAMES = 25
"""Maximum number of assertions that are grouped by name; more are grouped by type."""


class Rate(Struct, frozen=True):
    """A pass rate.

    Attributes:
        rate: mean of the cases' pass rates, unbiased ones if sampling may end early; of grades, the share that passed.
        interval: 95 % confidence interval, by clusters; null if none can be computed.
        judged: number of judged cases, samples, trials or grades, according to `of`.
        clusters: number of clusters that these form.
        by: what defines a cluster: `case`, `conversation_id` or a key of the metadata.
        bounds: the rate if all that errored had failed, and if all had passed.
        errored: number that errored.
        of: what was judged, such as `judged case`.
        cut: why the run was stopped because of its results, which invalidates the interval; null if it was not.
    """

    rate: float
    interval: tuple[float, float] | None
    judged: int
    clusters: int
    by: list[str]
    bounds: tuple[float, float]
    errored: int
    of: str
    cut: str | None


class GradeCounts(Struct, frozen=True):
    """Number of grades by status."""

    passed: int
    failed: int
    errored: int
    skipped: int = 0
    shown: int = 0


class AssertionRate(Struct, frozen=True):
    """The grades of an assertion.

    Attributes:
        name: name of the assertion, or its type if there are too many names.
        rate: pass rate of the grades; null if nothing was judged or sampling may end early.
    """

    name: str
    types: list[str]
    counts: GradeCounts
    rate: Rate | None


def rate_of_cases(index: CaseIndex, choice: CaseChoice, total: int, cut: str | None) -> Rate | None:
    """The pass rate of the selected cases.

    None if they are selected by status, if nothing was judged, or if too many cases depend on each other.

    Args:
        index: index of the run.
        choice: selection of its cases.
        total: number of selected cases.
        cut: see `Rate`.
    """
    if choice.statuses or choice.trials is not None or choice.assertion.startswith("failed "):
        return None
    groups = [group for _, group in index.groups() if choice.includes(group)]
    early = any(group.alpha is not None for group in groups)
    if not early and _are_independent(groups):
        passed, failed, errored, *_ = index.queries.by_status(choice)
        kinds = Counter({(1, 1.0): passed, (1, 0.0): failed})
        return _rate(_sums(kinds, passed, failed, errored), groups, "judged case", cut)
    if total > MOST_CLUSTERED:
        return None
    sums = index.queries.rates(choice)
    if early:
        return _rate(sums, groups, "rates of judged cases", cut, estimated_mean)
    several = any(group.repeat > 1 for group in groups)
    of = "judged sample" if several else "judged trial" if index.queries.distinct(choice) < total else "judged case"
    return _rate(sums, groups, of, cut, partial(estimated_rate, samples=sums.samples))


def _are_independent(groups: Iterable[CaseGroup]) -> bool:
    """Whether each trial is a cluster of its own."""
    found = list(groups)
    ran_with = {(group.target, group.prompt, group.variant) for group in found}
    return len(ran_with) < 2 and all(group.repeat == 1 and group.clustered_by is None for group in found)


def _sums(kinds: Counter[tuple[int, float]], passed: int, failed: int, errored: int) -> ClusterSums:
    """Sums of observations with one sample each."""
    whole = max(1, passed + failed + errored)
    return ClusterSums(kinds, passed + failed, 1.0, (passed / whole, (passed + errored) / whole), errored)


def _rate(
    sums: ClusterSums,
    groups: Iterable[CaseGroup],
    of: str,
    cut: str | None,
    estimated: Callable[[Sums], Estimate] = estimated_rate,
) -> Rate | None:
    if not sums.judged:
        return None
    found = estimated(sums.kinds)
    by = sorted({group.clustered_by or CASE for group in groups})
    interval = None if cut else found.interval
    return Rate(found.mean, interval, sums.judged, found.clusters, by, sums.bounds, sums.errored, of, cut)


class _GradeCounter:
    """Counts the grades of one assertion by cluster."""

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.counts = [0, 0, 0]
        self.kinds: Counter[tuple[int, float]] = Counter()
        self._cluster, self._judged, self._passed = 0, 0, 0

    def add(self, cluster: int, state: int, number: int) -> None:
        """Add grades of a cluster. The grades of each cluster must be added consecutively."""
        if cluster != self._cluster:
            self.end(cluster)
        self.counts[state] += number
        self._judged += number * (state != ERRORED)
        self._passed += number * (state == PASSED)

    def end(self, following: int = 0) -> None:
        """End a cluster."""
        if self._judged:
            self.kinds[self._judged, float(self._passed)] += 1
        self._cluster, self._judged, self._passed = following, 0, 0


def assertion_rates(index: CaseIndex, cut: str | None) -> list[AssertionRate]:
    """The pass rates of all assertions, most failures first, grouped by type if there are too many names."""
    groups = [group for _, group in index.groups()]
    early = any(group.alpha is not None for group in groups)
    known = index.assertions
    names = {name for _, name in known}
    by_name = len(names) <= _MOST_NAMES and None not in names
    shown = [(name if by_name and name is not None else kind) for kind, name in known]
    found: dict[str, _GradeCounter] = defaultdict(_GradeCounter)
    for (kind, _), name in zip(known, shown, strict=True):
        found[name].types[kind] = None
    lists = dict(index.grades())
    for cluster, grades, number in index.queries.grades():
        for assertion, state in zip(lists[grades][::2], lists[grades][1::2], strict=True):
            found[shown[assertion]].add(cluster, state, number)
    rates: list[AssertionRate] = []
    for name, graded in sorted(found.items(), key=lambda one: -(one[1].counts[FAILED] + one[1].counts[ERRORED])):
        graded.end()
        passed, failed, errored = graded.counts
        sums = _sums(graded.kinds, passed, failed, errored)
        rate = None if early else _rate(sums, groups, "grade", cut)
        rates.append(AssertionRate(name, list(graded.types), GradeCounts(passed, failed, errored), rate))
    return rates


class IndexFacts(Struct, frozen=True):
    """Counts and rates over all cases, for the rows read so far.

    Attributes:
        worst: number of distinct cases by status, each with its worst result; in the order of `STATUSES`.
        distinct: number of distinct cases.
        flaky: number of cases whose samples disagree.
        scores: histogram of the scores: for each bin, the numbers of passed and of failed cases.
        rate: pass rate of all cases.
        assertions: pass rates of all assertions.
    """

    worst: list[int]
    distinct: int
    flaky: int
    scores: list[tuple[int, int]]
    rate: Rate | None
    assertions: list[AssertionRate]

    def with_cut(self, cut: str | None) -> IndexFacts:
        """A copy without intervals if the run was stopped because of its results."""
        if cut is None:
            return self
        assertions = [msgspec.structs.replace(one, rate=_without_interval(one.rate, cut)) for one in self.assertions]
        return msgspec.structs.replace(self, rate=_without_interval(self.rate, cut), assertions=assertions)


def index_facts(index: CaseIndex) -> IndexFacts:
    """The facts stored in an index, or else computed from its tables."""
    return stored_facts(index) or _computed(index)


def stored_facts(index: CaseIndex) -> IndexFacts | None:
    """The facts stored in an index for its current rows, or None."""
    saved = index.saved(_facts_name(index))
    return None if saved is None else _decode(saved)


def save_facts(index: CaseIndex) -> None:
    """Compute the facts and store them in an index."""
    index.save(_facts_name(index), msgspec.json.encode(_computed(index)))


_decode = msgspec.json.Decoder(IndexFacts).decode


def _computed(index: CaseIndex) -> IndexFacts:
    queries, every = index.queries, CaseChoice()
    return IndexFacts(
        queries.counts(queries.outcomes(every)).by_status,
        queries.distinct(every),
        queries.flaky(),
        queries.scores(),
        rate_of_cases(index, every, sum(index.counts), None),
        assertion_rates(index, None),
    )


def _facts_name(index: CaseIndex) -> str:
    return f"facts {index.read.next_trial}"


def _without_interval(rate: Rate | None, cut: str) -> Rate | None:
    return None if rate is None else msgspec.structs.replace(rate, interval=None, cut=cut)
