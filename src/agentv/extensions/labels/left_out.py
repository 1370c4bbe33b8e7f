"""Assertions and rubrics that labels leave out: verdicts by them cannot be corrected by labels of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from agentv.extensions.labels.stats.left_out import AnswerPart, left_out
from agentv.reports.text.escaping import one_line

if TYPE_CHECKING:
    from agentv.extensions.labels.checked_answers import CheckedAnswer, JudgeKey, VerdictKey
    from agentv.model.run.labelled.labels import Label

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
