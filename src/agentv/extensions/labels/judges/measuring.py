"""The figures of judges that graded the same labelled answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import fmean, median
from typing import NamedTuple

from agentv.extensions.labels.judges.asking import NOT_ASKED, MeasuredVerdict
from agentv.extensions.labels.stats.agreement import ConfusionMatrix, LabelledUnit, mean_pairwise_agreement
from agentv.extensions.labels.stats.compare_result import (
    MOST_ERRORS,
    ComparedJudge,
    VoteCount,
    VotesOfJudge,
    majority_passes,
)
from agentv.extensions.labels.stats.paired_accuracy import PersonLabel, accuracy_difference, accuracy_of, share_right
from agentv.extensions.labels.stats.posterior import JudgeCounts

FEWEST_IN_JURY = 3
"""Judges from which on their majority is shown too: two have none."""


@dataclass(frozen=True, slots=True)
class GradedByJudge:
    """A judge's votes on each answer.

    Attributes:
        drew: the answers were drawn by its verdicts.
    """

    name: str
    model: str
    drew: bool
    votes: tuple[tuple[MeasuredVerdict, ...], ...]

    @property
    def failures(self) -> list[MeasuredVerdict]:
        """For each answer that it was asked about and gave no verdict on, the first vote that failed."""
        firsts = (next((one for one in votes if one.passed is None), NOT_ASKED) for votes in self.votes)
        return [one for one in firsts if one is not NOT_ASKED]

    @property
    def is_usable(self) -> bool:
        """Whether it gave enough verdicts."""
        failed = sum(any(one.passed is None for one in votes) for votes in self.votes)
        return failed <= MOST_ERRORS * len(self.votes)

    def has_verdict(self, place: int) -> bool:
        """Whether all votes on an answer are there."""
        return all(one.passed is not None for one in self.votes[place])

    def verdicts(self, votes: int | None = None) -> list[bool]:
        """What the majority of the first votes says of each answer; None: of all votes."""
        return [majority_passes([one.passed is True for one in of_answer[:votes]]) for of_answer in self.votes]

    def at(self, places: Sequence[int]) -> GradedByJudge:
        """The same for some answers; what is known of all that were drawn is not known of them."""
        votes = tuple(self.votes[place] for place in places)
        return replace(self, votes=votes, drew=self.drew and len(votes) == len(self.votes))


class ComparedRows(NamedTuple):
    """The judges, the most accurate of them, and what votes add."""

    judges: tuple[ComparedJudge, ...]
    reference: int | None
    votes: tuple[VotesOfJudge, ...]


class ComparedOnAnswers(NamedTuple):
    """The rows, and the number of answers that they are of."""

    answers: int
    rows: ComparedRows


def compared(
    labels: Sequence[PersonLabel],
    counts: JudgeCounts | None,
    graded: Sequence[GradedByJudge],
    margin: float,
    redact: Callable[[str], str],
) -> ComparedOnAnswers:
    """The figures of judges on the labelled answers that all of them gave a verdict on.

    A judge with too few verdicts has no figures, and keeps no answer out of those of the others.

    Args:
        labels: by people.
        counts: of the judge that they were drawn by; None: they were not drawn.
        graded: each judge's votes on these answers.
        margin: how much less accurate a judge may be and count as not worse.
        redact: takes secrets out of what a judge failed with.
    """
    usable = [one for one in graded if one.is_usable]
    places = [place for place in range(len(labels)) if all(one.has_verdict(place) for one in usable)]
    if not usable or not places:
        rows = tuple(_failed(one, redact) for one in graded)
        return ComparedOnAnswers(0, ComparedRows(rows, None, ()))
    kept = [labels[place] for place in places]
    members = {id(one): one.at(places) for one in usable}
    shown: list[tuple[ComparedJudge, list[bool]]] = []
    for one in graded:
        if id(one) in members:
            row = _measured(members[id(one)], kept, counts)
            shown.append(
                (replace(row, errors=len(one.failures), error=_error(one, redact)), members[id(one)].verdicts())
            )
        else:
            shown.append((_failed(one, redact), []))
    if len(members) >= FEWEST_IN_JURY:
        jury = _jury(list(members.values()))
        shown.append((_measured(jury, kept, counts), jury.verdicts()))
    judges, reference = _against_best(kept, shown, margin)
    votes = tuple(_votes(one, kept, counts) for one in members.values() if max(map(len, one.votes)) > 1)
    return ComparedOnAnswers(len(kept), ComparedRows(judges, reference, votes))


def _failed(one: GradedByJudge, redact: Callable[[str], str]) -> ComparedJudge:
    return ComparedJudge(one.name, one.model, _most_votes(one), len(one.failures), _error(one, redact))


def _error(one: GradedByJudge, redact: Callable[[str], str]) -> str | None:
    failure = next((found.failure for found in one.failures), None)
    return None if failure is None else redact(f"{failure.message} [{failure.code}]")


def _measured(one: GradedByJudge, labels: Sequence[PersonLabel], counts: JudgeCounts | None) -> ComparedJudge:
    verdicts = one.verdicts()
    return ComparedJudge(
        one.name,
        one.model,
        _most_votes(one),
        0,
        None,
        ConfusionMatrix.of((verdict, label.passed) for verdict, label in zip(verdicts, labels, strict=True)),
        accuracy_of(labels, verdicts, counts, drawn_by=one.drew),
        _mean_cost(one),
        _latency(one),
    )


def _most_votes(one: GradedByJudge) -> int:
    return max(map(len, one.votes), default=1)


def _mean_cost(one: GradedByJudge, votes: int | None = None) -> float | None:
    """Mean cost of the first votes on an answer; None if the cost of a call is not known.

    Votes that share the calls of another answer with the same text are not counted.
    """
    sums = []
    for of_answer in one.votes:
        made = [vote for vote in of_answer[:votes] if vote.duration_ms is not None]
        if len(made) < len(of_answer[:votes]):
            continue
        costs = [vote.cost_usd for vote in made]
        if None in costs:
            return None
        sums.append(sum(cost for cost in costs if cost is not None))
    return fmean(sums) if sums else None


def _latency(one: GradedByJudge) -> float | None:
    """Median time of a verdict: votes are asked for at once, so that the slowest decides."""
    times = [
        max(vote.duration_ms for vote in of_answer if vote.duration_ms is not None)
        for of_answer in one.votes
        if any(vote.duration_ms is not None for vote in of_answer)
    ]
    return median(times) if times else None


def _jury(members: Sequence[GradedByJudge]) -> GradedByJudge:
    """The majority of judges; each member's majority is one vote."""
    votes = tuple(tuple(_as_one(member.votes[place]) for member in members) for place in range(len(members[0].votes)))
    return GradedByJudge(f"majority of {len(members)} judges", "", drew=False, votes=votes)


def _as_one(votes: Sequence[MeasuredVerdict]) -> MeasuredVerdict:
    costs = [one.cost_usd for one in votes]
    times = [one.duration_ms for one in votes if one.duration_ms is not None]
    return MeasuredVerdict(
        majority_passes([one.passed is True for one in votes]),
        cost_usd=None if None in costs else sum(one for one in costs if one is not None),
        duration_ms=max(times) if len(times) == len(votes) else None,
    )


def _against_best(
    labels: Sequence[PersonLabel], shown: Sequence[tuple[ComparedJudge, list[bool]]], margin: float
) -> tuple[tuple[ComparedJudge, ...], int]:
    """Each judge with its difference to the most accurate one; of equally accurate ones the cheapest.

    The labels say which one that is, so any pair could have been compared: all pairs are corrected for.
    """
    usable = [place for place, (row, _) in enumerate(shown) if row.accuracy is not None]
    reference = min(
        usable,
        key=lambda place: (
            -round(share_right(labels, shown[place][1]), 12),
            float("inf") if (cost := shown[place][0].cost_usd) is None else cost,
            place,
        ),
    )
    best = shown[reference][1]
    rows = []
    for place, (row, verdicts) in enumerate(shown):
        if row.accuracy is None or place == reference:
            rows.append(row)
            continue
        found = accuracy_difference(labels, verdicts, best, comparisons=comb(len(usable), 2), margin=margin)
        rows.append(replace(row, difference=found, verdict="inconclusive" if found is None else found.verdict))
    return tuple(rows), reference


def _votes(one: GradedByJudge, labels: Sequence[PersonLabel], counts: JudgeCounts | None) -> VotesOfJudge:
    """The judge by 1, 3, 5, … votes."""
    most = _most_votes(one)
    steps = range(1, most + 1, 2)
    rows, before = [], None
    for votes in steps:
        verdicts = one.verdicts(votes)
        found = None
        if before is not None:
            found = accuracy_difference(labels, verdicts, before, comparisons=len(steps) - 1)
        cost = _mean_cost(one, votes)
        drew = one.drew and votes == most
        rows.append(VoteCount(votes, accuracy_of(labels, verdicts, counts, drawn_by=drew), found, cost))
        before = verdicts
    units = [
        LabelledUnit({str(number): vote.passed is True for number, vote in enumerate(votes)}, label.cluster)
        for votes, label in zip(one.votes, labels, strict=True)
    ]
    return VotesOfJudge(one.name, tuple(rows), mean_pairwise_agreement(units))
