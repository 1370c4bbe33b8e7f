"""eva's verdict: a line `SCORE=<int> REASON=<sentence>` of the judge's own (SPEC section 9, seed 004).

The line that counts is read strictly, all that merely looks like one loosely: what can be overlooked can be hidden.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

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

_MENTION = re.compile(r"score\s*=\s*(?P<points>[+-]?\d{1,9}(?:[.,/]\d+)?)")


def read_scale(reply: str, own_words: Callable[[], str], question: RubricQuestion) -> ReadVerdict:
    """The verdict in what a judge said of its own.

    Lines that carry the word of the question are surely the judge's, so where there are such, no others count.

    Args:
        reply: all of it.
        own_words: gives the reply without what stands between the question's markers.
        question: that was replied to; its rubric has a scale.

    Raises:
        UnreadableError: no line is a verdict, they disagree, the points are off the scale, or the line may be a
            quotation of what the judge was shown: the same points stand there or, of a line with the word, the same
            points and reason.
    """
    marked = [line for line in _LINE.finditer(reply) if question.mark in _words_of(line)]
    lines = marked or list(_LINE.finditer(own_words()))
    if not lines:
        raise UnreadableError("it contains no line 'SCORE=<whole number> REASON=<sentence>'")
    found = {int(line["points"]) for line in lines}
    mentions = () if marked else _mentions(own_words())
    if len(found) > 1 or any(one not in {str(points) for points in found} for one in mentions):
        raise UnreadableError("it contains several scores that disagree")
    points, reason = found.pop(), speakable(lines[-1]["reason"].strip())
    reading = _reading(points, reason, question)
    shown = question.shown
    if (
        all(shown.has_line(points, _unmarked(line["reason"])) for line in marked)
        if marked
        else shown.has_points(points)
    ):
        raise UnreadableError(f"SCORE={points} also appears in {PLACES_SHOWN}, so it may be a quotation")
    return reading


def _unmarked(reason: str) -> str:
    return _CONFIRMED.sub("", reason)


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


def _mentions(text: str) -> list[str]:
    """Whatever stands behind `SCORE=`, however it is written; whole numbers without sign and zeros that say nothing."""
    seen = "".join(one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) not in _UNSEEN)
    return [_plain(one["points"]) for one in _MENTION.finditer(seen.casefold())]


_UNSEEN = frozenset({"Cf", "Mn", "Me"})
"""Zero-width and direction marks, and accents that stand alone."""


def _plain(number: str) -> str:
    try:
        return str(int(number))
    except ValueError:
        return number
