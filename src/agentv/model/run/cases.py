"""Verdict of a case from its samples (SPEC section 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

from agentv.lazy_dataclass import dataclass
from agentv.model.run.grade import reaches
from agentv.model.run.trial import Status, TrialResult
from agentv.model.suite.suite import Aggregate


@dataclass(frozen=True, slots=True)
class RequiredGrade:
    """A required grade of one sample.

    Attributes:
        mark: what `value` must reach; 1 for `required: true`, else the number given.
        value: for `required: true` 1 or 0 as the grade passed; for a number the grade's score.
    """

    mark: float
    value: float

    @classmethod
    def of(cls, required: bool | float, score: float, passed: bool) -> RequiredGrade | None:
        """The gate that a grade is; None where it is none."""
        if required is False:
            return None
        if required is True:
            return cls(1.0, 1.0 if passed else 0.0)
        return cls(float(required), score)


@dataclass(frozen=True, slots=True)
class Sample:
    """What became of one sample of a case. `score` is 0..1; None where it was not judged."""

    status: Status
    score: float | None
    gates: tuple[RequiredGrade, ...] = ()


def sample_of(result: TrialResult) -> Sample:
    """What a finished trial says of its case."""
    gates = (RequiredGrade.of(one.entry.settings.required, one.grade.score, one.grade.passed) for one in result.scores)
    return Sample(result.status, result.score, tuple(gate for gate in gates if gate is not None))


def case_verdict(samples: Sequence[Sample], *, repeat: int, threshold: float, aggregate: Aggregate = "mean") -> Status:
    """The verdict of a case over its samples; a lone sample's verdict is the case's.

    An errored sample errs the case. A case with fewer judged samples than `repeat` is skipped: what was not judged
    never passes. `mean` holds the mean score against the threshold; the others count the samples whose own score
    reaches it: one (`pass_any`), every one (`pass_all`), or more than half of them (`majority`). Under all of them the
    mean of every gate must reach its mark: a gate is no matter of luck. Samples of a case that checks nothing are all
    shown, and so is the case.
    """
    if any(sample.status == "errored" for sample in samples):
        return "errored"
    judged = [sample for sample in samples if sample.status in ("passed", "failed")]
    if len(judged) < max(repeat, 1):
        shown = sum(sample.status == "shown" for sample in samples)
        return "shown" if shown >= max(repeat, 1) else "skipped"
    if len(judged) == 1:
        return judged[0].status
    return "passed" if _RULES[aggregate](judged, threshold) and gates_hold(judged) else "failed"


def _mean_passes(samples: Sequence[Sample], threshold: float) -> bool:
    return reaches(sum(sample.score or 0.0 for sample in samples) / len(samples), threshold)


def gates_hold(samples: Sequence[Sample]) -> bool:
    """Whether every gate holds in the mean. A sample that lacks a gate of the others counts 0 for it."""
    for same in zip_longest(*(sample.gates for sample in samples)):
        present = [gate for gate in same if gate is not None]
        if not reaches(sum(gate.value for gate in present) / len(same), max(gate.mark for gate in present)):
            return False
    return True


def _passes(samples: Sequence[Sample], threshold: float) -> int:
    return sum(reaches(sample.score or 0.0, threshold) for sample in samples)


_RULES: Mapping[Aggregate, Callable[[Sequence[Sample], float], bool]] = {
    "mean": _mean_passes,
    "pass_any": lambda samples, threshold: _passes(samples, threshold) > 0,
    "pass_all": lambda samples, threshold: _passes(samples, threshold) == len(samples),
    "majority": lambda samples, threshold: 2 * _passes(samples, threshold) > len(samples),
}
