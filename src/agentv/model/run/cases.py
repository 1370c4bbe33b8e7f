"""Verdicts of cases over their samples (SPEC section 10), and clusters of cases that are not independent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from agentv.model.run.grade import reaches
from agentv.model.run.trial import Status, TrialResult
from agentv.model.suite.suite import Aggregate

if TYPE_CHECKING:
    from agentv.model.run.trial import Trial


class RequiredGrade(Struct, frozen=True):
    """The gate of a required assertion, for one sample.

    Attributes:
        mark: threshold for `value`: 1 for `required: true`, else the configured number.
        value: for `required: true`, 1 if the grade passed, else 0; for a number, the grade's score.
    """

    mark: float
    value: float

    @classmethod
    def of(cls, required: bool | float, score: float, passed: bool) -> RequiredGrade | None:
        """Return the gate for a grade, or None if it is not required."""
        if required is False:
            return None
        if required is True:
            return cls(1.0, 1.0 if passed else 0.0)
        return cls(float(required), score)


class Sample(Struct, frozen=True):
    """Result of one sample of a case. `score` is 0..1; None if it was not graded."""

    status: Status
    score: float | None
    gates: tuple[RequiredGrade, ...] = ()


def sample_of(result: TrialResult) -> Sample:
    """Return the sample of a finished trial."""
    gates = (RequiredGrade.of(one.entry.settings.required, one.grade.score, one.grade.passed) for one in result.scores)
    return Sample(result.status, result.score, tuple(gate for gate in gates if gate is not None))


def case_verdict(samples: Sequence[Sample], *, repeat: int, threshold: float, aggregate: Aggregate = "mean") -> Status:
    """Return the verdict of a case over its samples; with one sample, it is that sample's verdict.

    An errored sample makes the case errored. A case with fewer graded samples than `repeat` is skipped, because an
    ungraded sample never passes. `mean` compares the mean score with the threshold; the others count the samples whose
    own score reaches it: one (`pass_any`), every one (`pass_all`), or more than half of them (`majority`). In all modes
    the mean of every gate must also reach its threshold, so that one lucky sample does not satisfy a gate. Samples of a
    case without checks are all shown, and so is the case.
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


_GRADED = frozenset[Status]({"passed", "failed", "errored"})


def disagree(verdicts: Iterable[Status]) -> bool:
    """Whether graded verdicts differ, such as those of one case on several targets."""
    return len(_GRADED.intersection(verdicts)) > 1


def gates_hold(samples: Sequence[Sample]) -> bool:
    """Whether the mean of every gate reaches its threshold. A sample that lacks a gate counts as 0 for it."""
    for same in zip_longest(*(sample.gates for sample in samples)):
        present = [gate for gate in same if gate is not None]
        if not reaches(sum(gate.value for gate in present) / len(same), max(gate.mark for gate in present)):
            return False
    return True


def _passes(samples: Sequence[Sample], threshold: float) -> int:
    return sum(reaches(sample.score or 0.0, threshold) for sample in samples)


_RULES: Mapping[Aggregate, Callable[[Sequence[Sample], float], bool]] = {
    "mean": lambda samples, mark: reaches(sum(sample.score or 0.0 for sample in samples) / len(samples), mark),
    "pass_any": lambda samples, threshold: _passes(samples, threshold) > 0,
    "pass_all": lambda samples, threshold: _passes(samples, threshold) == len(samples),
    "majority": lambda samples, threshold: 2 * _passes(samples, threshold) > len(samples),
}


CONVERSATION = "conversation_id"
"""The default key of clusters."""

CASE = "case"
"""Name of the clusters of cases without a key: each case is its own cluster."""

ClusterId = tuple[str, ...]
"""Identity of a cluster: the same for all trials whose results are not independent."""


class Clustered(Protocol):
    """The fields of a row that determine its cluster.

    Attributes:
        cluster_key: the `cluster:` of the suite or the command line; None if neither sets one.
        cluster: the case's value for that key.
    """

    test_id: str
    suite: str
    eval_path: str | None
    conversation_id: str | None
    cluster_key: str | None
    cluster: str | None


class TrialCluster(Struct):
    """The fields of a planned trial that determine its cluster; the same as in its later row."""

    test_id: str
    suite: str
    eval_path: str | None
    conversation_id: str | None
    cluster_key: str | None
    cluster: str | None

    @classmethod
    def of(cls, trial: Trial, eval_path: str | None = None) -> TrialCluster:
        """Return the fields of a trial; `eval_path` is the path in its row, by default the suite's own path."""
        case, suite = trial.case, trial.suite
        path = suite.path if eval_path is None else eval_path
        return cls(case.id, suite.name, path, case.conversation_id, case.cluster_key, case.cluster)


def cluster_of(row: Clustered) -> ClusterId:
    """Return the cluster of a trial: by its suite's `cluster`, or else its conversation, or else its case.

    All samples of a case on all targets and with all prompts are in one cluster. Suites with the same `cluster` key
    share clusters, because the same customer, say, appears in both; conversations and cases are specific to a file.
    """
    if row.cluster_key is not None and row.cluster is not None:
        return ("cluster", row.cluster_key, row.cluster)
    file = (row.eval_path or "", row.suite)
    if row.conversation_id is not None:
        return ("conversation", *file, row.conversation_id)
    return ("case", *file, row.test_id)


def key_of_cluster(row: Clustered) -> str | None:
    """Return the key that forms a trial's cluster, such as `conversation_id`; None if the case is the cluster."""
    if row.cluster_key is not None and row.cluster is not None:
        return row.cluster_key
    return CONVERSATION if row.conversation_id is not None else None
