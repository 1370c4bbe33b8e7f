"""Why cases moved: of each the two answers that show it best, and the assertions that did not end alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from agentv.app.compare.cases import Place
from agentv.model.comparison import CaseKey, CheckChange, Evidence, MovedCase, Pair
from agentv.model.grade import TOLERANCE
from agentv.model.trial import Score, TrialResult

Samples = dict[CaseKey, TrialResult]

_WORST, _BEST = min, max


def worst_first(pair: Pair) -> tuple[int, float, CaseKey]:
    """Sort key: what passed and now fails, then by the difference; what failed and now passes comes last."""
    return (-1 if pair.broken else 1 if pair.fixed else 0, pair.delta, pair.after_key)


def moved_cases(
    pairs: Sequence[Pair],
    base: Iterable[TrialResult],
    candidate: Iterable[TrialResult],
    shared: Container[str],
) -> tuple[MovedCase, ...]:
    """The pairs with their evidence, read from the runs once more: so memory holds the answers of these alone.

    Where a case got several samples, a loss is shown by the best one of the base and the worst one of the candidate,
    a win the other way round.
    """
    before = _chosen(base, {pair.before_key: _BEST if _fell(pair) else _WORST for pair in pairs}, shared)
    after = _chosen(candidate, {pair.after_key: _WORST if _fell(pair) else _BEST for pair in pairs}, shared)
    return tuple(_moved(pair, before.get(pair.before_key), after.get(pair.after_key)) for pair in pairs)


def _fell(pair: Pair) -> bool:
    return pair.broken or (pair.delta < 0 and not pair.fixed)


def _chosen(
    results: Iterable[TrialResult], wanted: dict[CaseKey, Callable[..., TrialResult]], shared: Container[str]
) -> Samples:
    """Of each case that is wanted, one sample; of equals the first."""
    found: Samples = {}
    for result in results:
        key = Place.of(result.trial).key(shared)
        choose = wanted.get(key)
        if choose is not None:
            found[key] = choose(found[key], result, key=_score) if key in found else result
    return found


def _score(result: TrialResult) -> float:
    return result.score or 0.0


def _moved(pair: Pair, before: TrialResult | None, after: TrialResult | None) -> MovedCase:
    changes = tuple(_changes(before.scores, after.scores)) if before and after else ()
    return MovedCase(pair, _evidence(before), _evidence(after), changes)


def _evidence(result: TrialResult | None) -> Evidence | None:
    if result is None:
        return None
    return Evidence(result.status, result.score, result.output, result.trial.sample, result.trial.repeat)


def _changes(before: Sequence[Score], after: Sequence[Score]) -> Iterator[CheckChange]:
    """The assertions that did not end alike, in the candidate's order, then those that it does not have."""
    old, new = dict(_numbered(before)), dict(_numbered(after))
    for name in {**new, **old}:
        change = _change(old.get(name), new.get(name))
        if change is not None:
            yield change


def _numbered(scores: Iterable[Score]) -> Iterator[tuple[tuple[str, str, int], Score]]:
    """Assertions by name, type, and which of several alike they are."""
    seen: Counter[tuple[str, str]] = Counter()
    for score in scores:
        name = (score.entry.name, score.entry.type)
        seen[name] += 1
        yield (*name, seen[name]), score


def _change(before: Score | None, after: Score | None) -> CheckChange | None:
    some = after or before
    if some is None or (before and after and _alike(before, after)):
        return None
    return CheckChange(
        name=some.entry.name,
        type=some.entry.type,
        before=_score_of(before),
        after=_score_of(after),
        passed_before=_passed(before),
        passed_after=_passed(after),
        evidence=_said(after) if after else None,
    )


def _alike(before: Score, after: Score) -> bool:
    if _passed(before) != _passed(after):
        return False
    one, other = _score_of(before), _score_of(after)
    return one == other or (one is not None and other is not None and abs(one - other) <= TOLERANCE)


def _score_of(score: Score | None) -> float | None:
    return None if score is None or score.grade.error else score.grade.score


def _passed(score: Score | None) -> bool | None:
    return None if score is None or score.grade.error else score.grade.passed


def _said(score: Score) -> str | None:
    """What an assertion said of its verdict: why it broke, the first check that agrees with it, or its reason."""
    grade = score.grade
    if grade.error is not None:
        return grade.error.message
    agreeing = (check.evidence or check.text for check in grade.checks if check.passed == grade.passed)
    return next(agreeing, grade.reason)
