"""The verdict of a trial or an assert-set, from its graded assertions (SPEC section 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.run.grade import PLACES, reaches, weighted_mean
from agentv.model.run.trial import Score
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Aggregation
from agentv.model.values.response import Failure


class Combined(Struct, frozen=True):
    """The verdict over a list of graded assertions.

    Attributes:
        score: Σ weight × counted / Σ weight, 0..1; meaningless if `error` is set.
        passed: whether the score reaches the threshold and every gate holds.
        error: why there is no verdict; None if there is one.
    """

    score: float
    passed: bool
    error: Failure | None = None


ZERO_HINT = "use a higher one, or mark an assertion 'required: true'"
"""Hint for a threshold of 0."""

NOTHING_COUNTS = Failure("nothing-counts", "nothing was graded: no assertion has a weight, and none is required")


def combined(scores: Sequence[Score], threshold: float) -> Combined:
    """Return the verdict over a list of graded assertions.

        score  = Σ weight × counted / Σ weight
        passed = score ≥ threshold − 1e-9 and every required grade passed its gate

    An assertion of weight 0 is shown but not counted; its error only counts if it is required. If no assertion has a
    weight, the gates alone decide. Without gates either, nothing was graded, which is an error and never a pass.

    Source: SPEC section 10.
    """
    pairs: list[tuple[float, float]] = []
    required = errored = False
    gated = True
    for score in scores:  # one pass: this runs for every trial
        settings, grade = score.entry.settings, score.grade
        if settings.weight:
            pairs.append((settings.weight, grade.counted))
        if settings.required:  # a gate of 0 holds for every score
            required = True
            gated = gated and passes_gate(score)
        errored = errored or grade.error is not None
    error = _first_error(scores) if errored else None
    if error is not None:
        return Combined(0.0, False, error)
    if pairs:
        mean = weighted_mean(pairs)
        return Combined(mean, gated and reaches(mean, threshold))
    if required:
        return Combined(1.0 if gated else 0.0, gated)
    return Combined(0.0, False, NOTHING_COUNTS)


def combined_parts(parts: Sequence[Sequence[Score]], threshold: float, aggregation: Aggregation) -> Combined:
    """Return the verdict over the turns of a case and its own assertions, where each part has one score.

    A part without weights has no score, but its gates count.

    Args:
        parts: the grades of each turn, then those of the case.
        threshold: threshold of the case.
        aggregation: how the scores of the parts are combined.

    Source: AgentV 4.42.4, conversation evaluation.
    """
    scores = [score for part in parts for score in part]
    whole = combined(scores, threshold)
    weighed = [part for part in parts if any(score.entry.settings.weight for score in part)]
    if whole.error is not None or not weighed:
        return whole
    values = [combined(part, threshold).score for part in weighed]
    score = round(_AGGREGATIONS[aggregation](values), PLACES)
    return Combined(score, reaches(score, threshold) and all(map(passes_gate, scores)))


_AGGREGATIONS: Mapping[Aggregation, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}


def always_passes(threshold: float | None, entries: Iterable[AssertionEntry]) -> bool:
    """Whether every answer would pass, because a score of 0 reaches the threshold and nothing is required."""
    if threshold is None or not reaches(0.0, threshold):
        return False
    return all(reaches(0.0, entry.settings.required) for entry in entries)  # False is a threshold of 0, True one of 1


def passes_gate(score: Score) -> bool:
    """Whether a grade passes its gate; True if it is not required.

    `required: true`: the grade must pass. `required: N`: it must score at least N.
    """
    required = score.entry.settings.required
    if required is False:
        return True
    if score.grade.error is not None:
        return False
    return score.grade.passed if required is True else reaches(score.grade.score, required)


def counts(score: Score) -> bool:
    """Whether an assertion affects the verdict: by its weight, or as a gate."""
    return score.entry.settings.weight > 0 or score.entry.settings.required is not False


def _first_error(scores: Iterable[Score]) -> Failure | None:
    errored = [score for score in scores if score.grade.error is not None and counts(score)]
    if not errored or errored[0].grade.error is None:
        return None
    failure = errored[0].grade.error
    more = f" (and {len(errored) - 1} more errored)" if len(errored) > 1 else ""
    return replace(failure, message=f"{errored[0].entry.name}: {failure.message}{more}")
