"""eva's verdict: a line `SCORE=<int> REASON=<sentence>` of the judge's own (SPEC section 9, seed 004).

The line that counts is read strictly, all that merely looks like one loosely: what can be overlooked can be hidden.
"""

from __future__ import annotations

import re

from agentv.judge.confusables import as_ascii
from agentv.judge.question import RubricQuestion
from agentv.judge.quotation import PLACES_SHOWN
from agentv.judge.shapes import ReadVerdict, UnreadableError, speakable
from agentv.model.run.grade import PLACES, Check

_LINE = re.compile(
    r"^[ \t]*[*_`]{0,3}SCORE[ \t]*=[ \t]*(?P<points>[+-]?[0-9]{1,9})[*_`]{0,3}[ \t]+"
    r"(?:[*_`]{0,3}CONFIRM[ \t]*=[ \t]*[*_`]{0,3}(?P<word>\w{1,64})[*_`]{0,3}[ \t]+)?"
    r"[*_`]{0,3}REASON[ \t]*=[ \t]*(?P<reason>\S.*?)"
    r"(?:[ \t]+[*_`]{0,3}CONFIRM[ \t]*=[ \t]*[*_`]{0,3}(?P<last>\w{1,64})[*_`]{0,3}[.]?[ \t]*)?$",
    re.MULTILINE,
)
"""The whole line is the verdict; a model may set it in bold, or as code."""

_MENTION = re.compile(r"score\s*=\s*([+-]?\d{1,9}(?:[.,/]\d+)?)")


class UnconfirmedError(UnreadableError):
    """A verdict on a scale that may be a draft: it stands beside other words, and does not carry the call's word."""


def read_scale(said: str, question: RubricQuestion) -> ReadVerdict:
    """The verdict in what a judge says.

    Lines that carry the word of the question are surely the judge's, so where there are such, no others count.

    Raises:
        UnconfirmedError: the line may be a draft.
        UnreadableError: no line is a verdict, they disagree, the points are off the scale, or the line may be a
            quotation of what the judge was shown: the same points stand there or, of a line with the word, the same
            points and reason.
    """
    every = list(_LINE.finditer(said))
    marked = [line for line in every if question.mark in _words_of(line)]
    if not every:
        raise UnreadableError("it contains no line 'SCORE=<whole number> REASON=<sentence>'")
    found = {int(line["points"]) for line in marked or every}
    mentions = [] if marked else _MENTION.findall(as_ascii(said).casefold())
    if len(found) > 1 or any(_plain(one) not in {str(points) for points in found} for one in mentions):
        raise UnreadableError("it contains several scores that disagree")
    points, reason = found.pop(), speakable((marked or every)[-1]["reason"].strip())
    reading = _reading(points, reason, question)
    if not marked and _LINE.sub("", said).strip():
        raise UnconfirmedError("its line 'SCORE=' stands beside other words, and does not carry the word for CONFIRM")
    shown = question.shown
    copied = all(shown.has_points(points, _CONFIRMED.sub("", line["reason"])) for line in marked)
    if copied if marked else shown.has_points(points):
        raise UnreadableError(f"SCORE={points} also appears in {PLACES_SHOWN}, so it may be a quotation")
    return reading


_CONFIRMED = re.compile(r"CONFIRM[ \t]*=[ \t]*\w{1,64}")


def _words_of(line: re.Match[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in (line["word"], line["last"]) if word)


def _reading(points: int, reason: str, question: RubricQuestion) -> ReadVerdict:
    rubric = question.rubric
    if rubric.scale is None or rubric.pass_threshold is None:
        raise ValueError("a rubric in scale mode has a scale and a threshold")
    low, high = rubric.scale
    if not low <= points <= high:
        raise UnreadableError(f"SCORE={points} is not on the scale from {low} to {high}")
    passed = points >= rubric.pass_threshold
    what = f"scores {rubric.pass_threshold} or more on the scale from {low} to {high}"
    return ReadVerdict(
        score=round((points - low) / (high - low), PLACES),
        checks=(Check(what, passed, f"SCORE={points} REASON={reason}"),),
        reason=reason,
        stance=points,
        passed=passed,
        details={"points": points, "scale": [low, high], "pass_threshold": rubric.pass_threshold},
    )


def _plain(number: str) -> str:
    try:
        return str(int(number))
    except ValueError:
        return number
