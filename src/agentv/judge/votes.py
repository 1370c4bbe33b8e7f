"""Several verdicts on one answer: the median counts, the others show how sure the judge is (SPEC section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from agentv.model.run.rubric import JudgeFailure, Verdict
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Total usage of several calls; None where no call reported it.

    Attributes:
        unpriced: some call took tokens at a price that is not known: a sum of the others would pretend to be all.
    """

    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    unpriced: bool = False

    def plus(self, one: TargetResponse | Verdict | JudgeFailure | UsageTotal) -> UsageTotal:
        """Total with one more call, or with a verdict and its calls."""
        usage, cost = one.token_usage, one.cost_usd
        if self.token_usage is not None:
            usage = self.token_usage if usage is None else self.token_usage + usage
        unpriced = self.unpriced or (one.token_usage is not None and cost is None)
        if self.cost_usd is not None:
            cost = self.cost_usd + (cost or 0.0)
        return UsageTotal(usage, None if unpriced else cost, unpriced)


def outcome_of(votes: Sequence[Verdict | JudgeFailure]) -> Verdict | JudgeFailure:
    """What the votes come to: the median verdict; a failure where one vote failed, since a median needs them all.

    In scale mode a vote that cannot be read fails the answer, so it fails the whole likewise.

    Args:
        votes: an odd number.
    """
    usage = UsageTotal()
    for vote in votes:
        usage = usage.plus(vote)
    return replace(_chosen(votes), token_usage=usage.token_usage, cost_usd=usage.cost_usd)


def _chosen(votes: Sequence[Verdict | JudgeFailure]) -> Verdict | JudgeFailure:
    verdicts: list[Verdict] = []
    for number, vote in enumerate(votes, 1):
        if isinstance(vote, JudgeFailure):
            return replace(vote, message=f"vote {number} of {len(votes)}: {vote.message}")
        verdicts.append(vote)
    undecided = [vote for vote in verdicts if vote.undecided]
    ranked = undecided or sorted(verdicts, key=lambda vote: vote.counted)
    return replace(
        ranked[len(ranked) // 2],
        votes=tuple(vote.counted for vote in verdicts),
        shared=all(vote.shared for vote in verdicts),
    )
