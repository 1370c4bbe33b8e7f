"""What a comparison of judges shows, and which of them it recommends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentv.extensions.labels.stats.agreement import ConfusionMatrix, JudgeAccuracy
from agentv.extensions.labels.stats.paired_accuracy import AccuracyDifference
from agentv.model.run.compared.verdicts import Verdict

NOT_WORSE = frozenset({"better", "equivalent", "non-inferior"})

MOST_ERRORS = 0.1
"""Share of answers without a verdict above which a judge is not compared: it may fail on the hard ones."""


@dataclass(frozen=True, slots=True)
class ComparedJudge:
    """A judge, or a majority of judges, on the answers that all compared judges gave a verdict on.

    Attributes:
        name: as it was given.
        model: provider and model; empty for a majority of judges.
        errors: answers without a verdict.
        error: why, for the first of them.
        matrix, accuracy: None if it gave too few verdicts.
        cost_usd: mean of a verdict; None if it is not known.
        latency_ms: median of a verdict.
        difference: its accuracy less that of the reference; None for the reference, and with too few answers.
        verdict: what the difference shows at the margin; None for the reference.
    """

    name: str
    model: str
    votes: int
    errors: int
    error: str | None
    matrix: ConfusionMatrix | None = None
    accuracy: JudgeAccuracy | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    difference: AccuracyDifference | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class VoteCount:
    """A judge by the majority of its first votes.

    Attributes:
        difference: its accuracy less that with two votes fewer; None for one vote, and with too few answers.
        cost_usd: mean of all these votes on an answer.
    """

    votes: int
    accuracy: JudgeAccuracy
    difference: AccuracyDifference | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class VotesOfJudge:
    """What votes add to one judge.

    Attributes:
        agreement: share of pairs of votes on an answer that agree.
    """

    judge: str
    counts: tuple[VoteCount, ...]
    agreement: float | None


@dataclass(frozen=True, slots=True)
class AssertionComparison:
    """Judges compared on the labelled answers of one assertion.

    Attributes:
        model: of the judge of the run.
        answers: labelled answers that all judges gave a verdict on.
        weighted: they are a random part of the run, and weighted by their probability.
        notes: labels and answers that do not count.
        reference: index of the most accurate judge; None: none gave enough verdicts.
    """

    assertion: str
    model: str
    answers: int
    weighted: bool
    notes: tuple[str, ...]
    judges: tuple[ComparedJudge, ...]
    reference: int | None
    votes: tuple[VotesOfJudge, ...] = ()

    @property
    def cheapest(self) -> ComparedJudge | None:
        """The cheapest of the most accurate judge and those that are not worse; None if no price is known."""
        if self.reference is None:
            return None
        best = self.judges[self.reference]
        priced = [one for one in self.judges if one.cost_usd is not None and (one is best or one.verdict in NOT_WORSE)]
        return min(priced, key=lambda one: one.cost_usd or 0.0, default=None)

    @property
    def undecided(self) -> tuple[ComparedJudge, ...]:
        """Judges that may be cheaper than the cheapest, and of which the labels show too little."""
        cheapest = self.cheapest
        limit = None if cheapest is None else cheapest.cost_usd
        return tuple(
            one
            for one in self.judges
            if one.verdict == "inconclusive" and (limit is None or one.cost_usd is None or one.cost_usd < limit)
        )


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Judges compared on the labelled answers of a run.

    Attributes:
        margin: how much less accurate a judge may be and count as not worse, 0..1.
        new_calls: calls that were made; the others were stored.
        spent_usd: what these cost; None if it is not known.
    """

    run: str
    margin: float
    new_calls: int
    spent_usd: float | None
    assertions: tuple[AssertionComparison, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every judge gave enough verdicts."""
        return all(judge.accuracy is not None for one in self.assertions for judge in one.judges)


def majority_passes(verdicts: Sequence[bool]) -> bool:
    """Whether more than half pass; a tie fails."""
    return 2 * sum(verdicts) > len(verdicts)
