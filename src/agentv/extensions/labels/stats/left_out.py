"""Parts of a run's answers that labels leave out by more than chance: labels of other parts say nothing of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, lgamma, log, log1p
from typing import TypeVar

from agentv.extensions.labels.answers import CheckedAnswer, JudgeKey, VerdictKey
from agentv.model.run.labelled.labels import Label
from agentv.reports.text.escaping import one_line

LEFT_OUT = 0.01
"""How likely it must be, at least, that labels of random answers leave out so much."""

_NEVER = float("-inf")

Counts = tuple[int, int]
"""How many the judge failed, and how many it passed."""


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Answers of one kind, such as those by one rubric.

    Attributes:
        answers: of the run.
        labelled: of these, or of answers of other runs.
    """

    answers: Counts
    labelled: Counts


def left_out(parts: Sequence[AnswerPart], *, elsewhere: bool) -> int | None:
    """The place of the largest part without a label, if random labels would rarely leave out such a part.

    Each verdict of the judge has a draw of its own. Beside each part, all parts without labels are tested together:
    many small ones may be left out that none of them shows. The lower tail of the labelled share is bounded as that of
    a sum of independent terms that are not negative: exp(-t² / 2Σ E[x²]), t being how far it is below its mean. Source:
    A. Maurer, "A bound on the deviation probability for sums of non-negative random variables", Journal of Inequalities
    in Pure and Applied Mathematics 4 (2003), 15.

    Args:
        parts: of all answers that are corrected by these labels.
        elsewhere: the labels are of other runs, whose answers should be distributed over the parts as those here are.
    """
    lacking = [place for place, one in enumerate(parts) if not any(one.labelled)]
    if not lacking:
        return None
    answers, labels = _sums([one.answers for one in parts]), _sums([one.labelled for one in parts])
    chances = [_log_chance(one.answers, answers, labels, elsewhere=elsewhere) for one in parts]
    largest = max(lacking, key=lambda place: sum(parts[place].answers))
    if any(chances[place] < log(LEFT_OUT / len(parts)) for place in lacking):
        return min(lacking, key=lambda place: chances[place])
    sizes = [sum(one.answers) / sum(answers) for one in parts]
    drawn = [1 - exp(one) for one in chances]
    expected = fsum(size * chance for size, chance in zip(sizes, drawn, strict=True))
    squares = fsum(size * size * chance for size, chance in zip(sizes, drawn, strict=True))
    below = expected - fsum(size for size, one in zip(sizes, parts, strict=True) if any(one.labelled))
    unlikely = below > 0 and below * below > 2 * squares * -log(LEFT_OUT)
    return largest if unlikely else None


def _sums(counts: Sequence[Counts]) -> Counts:
    return sum(one[0] for one in counts), sum(one[1] for one in counts)


def _log_chance(part: Counts, answers: Counts, labels: Counts, *, elsewhere: bool) -> float:
    """The logarithm of how likely labels of random answers leave out a part."""
    found = 0.0
    for verdict in (False, True):
        size, whole, number = part[verdict], answers[verdict], labels[verdict]
        if elsewhere:
            share = min(size / whole if whole else 0.0, sum(part) / sum(answers))  # one answer says little of a verdict
            found += number * log1p(-share) if share < 1 else (_NEVER if number else 0.0)
        elif whole - size < number:
            return _NEVER
        else:
            found += _log_choose(whole - size, number) - _log_choose(whole, number)
    return found


def _log_choose(whole: int, number: int) -> float:
    return lgamma(whole + 1) - lgamma(number + 1) - lgamma(whole - number + 1)


Drawn = Mapping[JudgeKey, Collection[VerdictKey]]
Labelled = Sequence[tuple[JudgeKey, str, bool]]

_LONGEST_RUBRIC = 60

Name = TypeVar("Name", bound=Hashable)


def left_out_of_run(answers: Sequence[CheckedAnswer], drawn: Drawn) -> str | None:
    """What labels of answers of the run leave out, for messages; None: they are of random answers of all.

    Args:
        answers: of one judge, each different from the others.
        drawn: those with a label that counts, of each of its assertions.
    """
    labelled = [one for one in answers if one.verdict_key in drawn.get(one.judge, ())]
    found = [(one.judge, one.key[2], one.passed) for one in labelled]
    return _left_out(answers, found, elsewhere=False)


def left_out_elsewhere(answers: Sequence[CheckedAnswer], labels: Mapping[JudgeKey, Iterable[Label]]) -> str | None:
    """The same of labels of other runs.

    Args:
        answers: as above.
        labels: of each of its assertions.
    """
    judges = dict.fromkeys(one.judge for one in answers)
    known = {(judge, one.key, one.judge_passed): one for judge in judges for one in labels.get(judge, ())}
    found = [(judge, label.rubric_sha256, label.judge_passed) for (judge, *_), label in known.items()]
    return _left_out(answers, found, elsewhere=True)


def _left_out(answers: Sequence[CheckedAnswer], labelled: Labelled, *, elsewhere: bool) -> str | None:
    """What is left out, by the assertion, the rubric and the judge's verdict of each labelled answer."""
    judges = list(dict.fromkeys(one.judge for one in answers))
    sizes = Counter((one.judge, one.passed) for one in answers)
    known = Counter((judge, passed) for judge, _, passed in labelled)
    place = left_out(_parts(judges, sizes, known), elsewhere=elsewhere)
    if place is not None:
        return f"'{judges[place][0]}'"
    for judge in judges:
        if not known[judge, False] + known[judge, True]:
            continue  # left out by chance
        own = [one for one in answers if one.judge == judge]
        rubrics = {one.key[2]: one.rubric for one in own}
        by_rubric = Counter((one.key[2], one.passed) for one in own)
        found = Counter((rubric, passed) for of, rubric, passed in labelled if of == judge)
        place = left_out(_parts(list(rubrics), by_rubric, found), elsewhere=elsewhere)
        if place is not None:
            return f"the rubric \"{one_line(list(rubrics.values())[place], _LONGEST_RUBRIC)}\" of '{judge[0]}'"
    return None


def _parts(
    names: Sequence[Name], sizes: Mapping[tuple[Name, bool], int], labelled: Mapping[tuple[Name, bool], int]
) -> list[AnswerPart]:
    def of(counts: Mapping[tuple[Name, bool], int], name: Name) -> tuple[int, int]:
        return counts.get((name, False), 0), counts.get((name, True), 0)

    return [AnswerPart(of(sizes, one), of(labelled, one)) for one in names]
