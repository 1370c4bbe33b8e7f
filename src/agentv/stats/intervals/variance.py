"""Variance components of a score: cases, answers of the target, votes of the judge.

Plain Python. A vote is one judgement of one answer; an answer is one sample of one case.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Advice = Literal["more cases", "a steadier judge"]

NOTHING = 1e-12
"""A variance up to which it is rounding and no noise."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The variance of a score, split. Each part is 0 or more, in squared scores; None where the data cannot tell it.

    Attributes:
        cases: between the cases: how far their true scores differ.
        target: between the answers to one case. Where no answer was judged twice it holds the judge's part too.
        judge: between the votes on one answer; None where none was judged twice.
        counts: how many cases, answers and votes there were.
    """

    cases: float | None
    target: float | None
    judge: float | None
    counts: tuple[int, int, int]

    @property
    def of_mean(self) -> tuple[float, float, float]:
        """What cases, target and judge each add to the variance of the run's mean score, of cases of one size."""
        parts = (self.cases or 0.0, self.target or 0.0, self.judge or 0.0)
        cases, answers, votes = (part / count for part, count in zip(parts, self.counts, strict=True))
        return cases, answers, votes

    def advice(self) -> Advice | None:
        """What narrows the interval of the mean most; None: no noise.

        With as many calls, more cases narrow it at least as much as more samples of each, which only reduce the
        target's part.
        """
        cases, target, judge = self.of_mean
        if max(self.cases or 0.0, self.target or 0.0, self.judge or 0.0) <= NOTHING:
            return None
        return "a steadier judge" if judge > max(cases, target) else "more cases"


def split(votes: Iterable[tuple[Hashable, Hashable, float]]) -> Noise:
    """The parts of the variance, by analysis of variance of votes within answers within cases.

    Mean squares are set equal to what they are on average, level by level, for any numbers of answers and votes; a part
    that comes out below 0 is 0. Where all cases have as many answers, and all answers as many votes, and no part is
    below 0, these are also the REML estimates: R's `VarCorr(lmer(score ~ 1 + (1 | case/answer)))`.

    Source: S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992), section 5.3 and appendix F.1.

    Args:
        votes: the case, the answer (its sample number), and the score that one vote gave.

    Raises:
        ValueError: no votes.
    """
    answers: dict[Hashable, dict[Hashable, list[float]]] = {}
    for case, answer, score in votes:
        answers.setdefault(case, {}).setdefault(answer, []).append(score)
    if not answers:
        raise ValueError("there are no votes")
    return _Nested(answers).noise()


class _Nested:
    """Sums of squares over votes within answers within cases."""

    def __init__(self, scores: Mapping[Hashable, Mapping[Hashable, list[float]]]) -> None:
        every = [list(case.values()) for case in scores.values()]
        sizes = [[len(answer) for answer in case] for case in every]
        self.per_case = [sum(case) for case in sizes]
        self.counts = (len(every), sum(len(case) for case in sizes), sum(self.per_case))
        self.in_case = sum(sum(size * size for size in case) / sum(case) for case in sizes)
        self.in_all = sum(size * size for case in sizes for size in case) / self.counts[2]
        whole = sum(sum(answer) for case in every for answer in case) / self.counts[2]
        means = [sum(map(sum, case)) / size for case, size in zip(every, self.per_case, strict=True)]
        pairs = [(answer, mean) for case, mean in zip(every, means, strict=True) for answer in case]
        self.of_cases = sum(size * (mean - whole) ** 2 for size, mean in zip(self.per_case, means, strict=True))
        self.of_answers = sum(len(answer) * (sum(answer) / len(answer) - mean) ** 2 for answer, mean in pairs)
        self.of_votes = sum((one - sum(answer) / len(answer)) ** 2 for answer, _ in pairs for one in answer)

    def noise(self) -> Noise:
        cases, answers, votes = self.counts
        judge = self.of_votes / (votes - answers) if votes > answers else None
        target = self._target(judge or 0.0) if answers > cases else None
        return Noise(self._cases(judge or 0.0, target or 0.0) if cases > 1 else None, target, judge, self.counts)

    def _target(self, judge: float) -> float:
        cases, answers, votes = self.counts
        return max(0.0, (self.of_answers - (answers - cases) * judge) / (votes - self.in_case))

    def _cases(self, judge: float, target: float) -> float:
        cases, _, votes = self.counts
        noise = (cases - 1) * judge + (self.in_case - self.in_all) * target
        return max(0.0, (self.of_cases - noise) / (votes - sum(size * size for size in self.per_case) / votes))
