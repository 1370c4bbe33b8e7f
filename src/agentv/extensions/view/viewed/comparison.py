"""Two runs compared: the verdict first, then the cases that moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from agentv.app.compare.comparing import compare_each
from agentv.errors import UsageError
from agentv.extensions.view.index.case_index import CaseIndex
from agentv.extensions.view.shown_comparison import ShownComparison, shown_of
from agentv.extensions.view.viewed.cases import ViewedCase
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.model.run.comparison import CaseKey, CasePair, Comparison, ComparisonSettings
from agentv.reports.text.paths import without_directories

MOST_MOVED = 200
"""Cases that moved one way that an answer holds; all are counted."""

CHANGES = ("worse", "better", "lower", "higher", "same", "unjudged", "edited", "added", "gone")
"""How a case can have changed."""


class ComparedRun(Struct, frozen=True):
    """One of the runs."""

    run_id: str
    targets: tuple[str, ...] = ()


class ChangedCase(Struct, frozen=True):
    """A case in both runs.

    Attributes:
        change: `worse`: it passed and now fails; `better`; `lower` or `higher`: by score.
    """

    case: ViewedCase
    base: ViewedCase
    change: str


class CaseName(Struct, frozen=True):
    """A case by its names."""

    suite: str
    id: str
    target: str
    prompt: str | None
    variant: str | None


class ViewedComparison(Struct, frozen=True):
    """A candidate against a base.

    Attributes:
        comparison: the verdict and what it is based on, in the words of `agentv compare`.
        counts: how many cases changed how.
        moved: the cases that moved, the worst first, then the best.
        gone: cases that only the base has.
    """

    base: ComparedRun
    candidate: ComparedRun
    comparison: ShownComparison
    counts: dict[str, int]
    moved: list[ChangedCase]
    gone: list[CaseName]


def viewed_comparison(runs: tuple[str, str], base: GrowingRun, candidate: GrowingRun) -> ViewedComparison:
    """The comparison of two runs; where it is not possible, why.

    Raises:
        StoreError: a run cannot be read.
    """
    (found,) = compared(base, [candidate])
    if isinstance(found, UsageError):
        return refused_comparison(runs, found)
    counts, worse, better = _moves(found)
    with base.index() as before, candidate.index() as after:
        pairs = [*worse, *reversed(better)]
        moved = [one for pair in pairs if (one := _changed(pair, before, after)) is not None]
    return told_comparison(runs, found, counts, moved)


def compared(base: GrowingRun, candidates: Sequence[GrowingRun]) -> list[Comparison | UsageError]:
    """Each candidate compared with the base as `agentv compare` does; an error: why that is not possible."""
    return compare_each(str(base.path), [str(one.path) for one in candidates], ComparisonSettings(limit=0))


def refused_comparison(runs: tuple[str, str], error: UsageError) -> ViewedComparison:
    """Two runs that cannot be compared, and why."""
    refused = ShownComparison("", without_directories(str(error)))
    base_run, candidate_run = map(ComparedRun, runs)
    return ViewedComparison(base_run, candidate_run, refused, dict.fromkeys(CHANGES, 0), [], [])


def told_comparison(
    runs: tuple[str, str], found: Comparison, counts: dict[str, int], moved: list[ChangedCase]
) -> ViewedComparison:
    """A comparison with the cases of it that are shown."""
    gone = [_name(key) for key in islice(found.left_out.only_base, MOST_MOVED)]
    before_run, after_run = ComparedRun(runs[0], found.base.targets), ComparedRun(runs[1], found.candidate.targets)
    return ViewedComparison(before_run, after_run, shown_of(found), counts, moved, gone)


def _moves(found: Comparison) -> tuple[dict[str, int], Sequence[CasePair], Sequence[CasePair]]:
    """How many cases changed how; those that lost the most, and those that gained the most."""
    counts = counts_of(found)
    worse: list[CasePair] = []
    better: list[CasePair] = []
    for pair in found.pairs:  # worst first
        change = change_of(pair)
        if change in ("worse", "lower") and len(worse) < MOST_MOVED:
            worse.append(pair)
        elif change in ("better", "higher"):
            better.append(pair)
            del better[:-MOST_MOVED]
    return counts, worse, better


def counts_of(found: Comparison) -> dict[str, int]:
    """How many cases changed how."""
    left = found.left_out
    counts = dict.fromkeys(CHANGES, 0)
    for pair in found.pairs:
        counts[change_of(pair)] += 1
    counts["unjudged"] += len(left.errored) + len(left.unfinished)
    counts["edited"], counts["added"], counts["gone"] = len(left.edited), len(left.only_candidate), len(left.only_base)
    return counts


def change_of(pair: CasePair) -> str:
    """How a case changed: one of `CHANGES`."""
    if "errored" in (pair.before.status, pair.after.status):
        return "unjudged"
    if pair.broken or pair.fixed:
        return "worse" if pair.broken else "better"
    return "same" if not pair.delta or pair.by_verdict else "lower" if pair.delta < 0 else "higher"


def _changed(pair: CasePair, before: CaseIndex, after: CaseIndex) -> ChangedCase | None:
    base, case = case_at(before, pair.before.places), case_at(after, pair.after.places)
    if base is None or case is None:
        return None
    return ChangedCase(case, base, change_of(pair))


def case_at(index: CaseIndex, places: Iterable[int]) -> ViewedCase | None:
    """The case with a row at one of these places; None: the index does not have it yet."""
    for number in _trials(index, places):
        case = index.case_of(number)
        for entry in index.entries([] if case is None else [case]):
            return ViewedCase.of(entry)
    return None


def _trials(index: CaseIndex, places: Iterable[int]) -> Iterator[int]:
    return (number for place in places if (number := index.trial_at(place)) is not None)


def _name(key: CaseKey) -> CaseName:
    return CaseName(key.suite, key.case_id, key.target, key.prompt, key.variant)
