"""The alternative annotator test: may a judge stand in for any one of the people who label?

Source: N. Calderon, R. Reichart, R. Dror, "The alternative annotator test for LLM-as-a-judge: how to statistically
justify replacing human annotators with LLMs", ACL 2025.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from agentv.stats.intervals.student import t_tails

FEWEST_PEOPLE = 3
FEWEST_ANSWERS = 30
"""Answers that a person must share with others: the test's t statistic needs as many."""

COST_BENEFIT = 0.15
"""By how much a judge may be worse than a person and still be worth its price: the paper's value for skilled people."""

_ERROR_RATE = 0.05


@dataclass(frozen=True, slots=True)
class AgainstPerson:
    """The judge beside one person, each held against the other people.

    Attributes:
        answers: that the person and at least one other person labelled.
        judge, people: share of answers on which the judge, and the person, agrees with the others at least as well.
        p_value: that the judge is worse by more than `COST_BENEFIT`.
        better: the judge is not worse, corrected for the number of people.
    """

    person: str
    answers: int
    judge: float
    people: float
    p_value: float
    better: bool


@dataclass(frozen=True, slots=True)
class AlternativeAnnotator:
    """The result of the test.

    Attributes:
        winning_rate: share of people that the judge may stand in for; it passes from one half.
        advantage: mean chance that the judge agrees with the others at least as well as a person does.
    """

    against: tuple[AgainstPerson, ...]
    winning_rate: float
    advantage: float

    @property
    def passed(self) -> bool:
        """Whether the judge may stand in for a person."""
        return self.winning_rate >= 0.5


def alternative_annotator(
    answers: Sequence[tuple[bool, Mapping[str, bool]]], cost_benefit: float = COST_BENEFIT
) -> AlternativeAnnotator | None:
    """The test on (judge's verdict, person → label) of each answer.

    Returns:
        None: fewer than three people share 30 answers each with others.
    """
    differences: dict[str, list[tuple[bool, bool]]] = {}
    for judge, labels in answers:
        for person, label in labels.items():
            others = [one for other, one in labels.items() if other != person]
            if others:
                of_judge, of_person = others.count(judge), others.count(label)
                differences.setdefault(person, []).append((of_judge >= of_person, of_person >= of_judge))
    known = {person: found for person, found in sorted(differences.items()) if len(found) >= FEWEST_ANSWERS}
    if len(known) < FEWEST_PEOPLE:
        return None
    p_values = [_p_value([people - judge for judge, people in found], cost_benefit) for found in known.values()]
    rejected = _benjamini_yekutieli(p_values)
    against = tuple(
        AgainstPerson(
            person,
            len(found),
            sum(judge for judge, _ in found) / len(found),
            sum(people for _, people in found) / len(found),
            p_value,
            better,
        )
        for (person, found), p_value, better in zip(known.items(), p_values, rejected, strict=True)
    )
    wins = sum(rejected) / len(against)
    return AlternativeAnnotator(against, wins, sum(one.judge for one in against) / len(against))


def _p_value(differences: Sequence[int], margin: float) -> float:
    """One-sided t test that the mean difference is below the margin."""
    count = len(differences)
    mean = sum(differences) / count
    variance = sum((one - mean) ** 2 for one in differences) / (count - 1)
    if variance == 0:
        return 0.0 if mean < margin else 1.0
    statistic = (mean - margin) / sqrt(variance / count)
    half = t_tails(statistic, count - 1) / 2
    return half if statistic < 0 else 1 - half


def _benjamini_yekutieli(p_values: Sequence[float]) -> list[bool]:
    """Which hypotheses are rejected, at a false discovery rate of 5% under any dependence."""
    count = len(p_values)
    share = _ERROR_RATE / (count * sum(1 / rank for rank in range(1, count + 1)))
    order = sorted(range(count), key=p_values.__getitem__)
    last = max((rank for rank, place in enumerate(order, 1) if p_values[place] <= rank * share), default=0)
    chosen = set(order[:last])
    return [place in chosen for place in range(count)]
