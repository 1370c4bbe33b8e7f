"""How cases were judged and sampled: what a run's flags changed although the cases themselves are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from agentv.model.comparison import CaseOutcome, Pair

_MOVES = ", which by itself may move the pass rate"
"""Of one target, more samples alone turn a case that passes six times in ten from a coin's throw into a failure."""


def setting_notes(pairs: Sequence[Pair]) -> Iterator[str]:
    """Sentences on settings that differ between the two runs, and on what is compared instead of a mean.

    A lower pass mark makes failures pass without a better answer, which no number of the comparison tells.
    """
    for what, of in _SETTINGS.items():
        found = Counter((of(pair.before), of(pair.after)) for pair in pairs)
        for (before, after), number in found.items():
            if before != after:
                yield f"the {what} differs: {before} → {after} in {number} of {len(pairs)} cases{_MOVES}"
    decided = sum(pair.by_verdict for pair in pairs)
    if decided:
        yield (
            f"{decided} of {len(pairs)} cases were sampled until decided: when that ends hangs on what came out, so"
            " they are compared by their verdicts, 1 or 0, and not by their mean scores"
        )


def same_settings(pair: Pair) -> bool:
    """Whether both runs judged and sampled the case alike, so that its verdicts can be compared."""
    return all(of(pair.before) == of(pair.after) for of in _SETTINGS.values())


def _threshold(case: CaseOutcome) -> str:
    return f"{case.threshold:g}"


def _repeat(case: CaseOutcome) -> str:
    return str(case.repeat) if case.alpha is None else f"at most {case.repeat} until decided at {case.alpha:g}"


_SETTINGS: Mapping[str, Callable[[CaseOutcome], str]] = {
    "pass mark": _threshold,
    "repeat": _repeat,
    "aggregate": lambda case: case.aggregate,
}
