"""eva's verdict: a line `SCORE=<int> REASON=<sentence>` of the judge's own (SPEC section 9, seed 004).

The line that counts is read strictly, all that merely looks like one loosely: what can be overlooked can be hidden.
"""

from __future__ import annotations

import re
import unicodedata

from agentv.judge.echo import PLACES_SHOWN
from agentv.judge.question import Question
from agentv.judge.shapes import Reading, UnreadableError, speakable
from agentv.model.grade import PLACES, Check

_LINE = re.compile(
    r"^[ \t]*[*_`]{0,3}SCORE[ \t]*=[ \t]*(?P<points>[+-]?[0-9]{1,9})[*_`]{0,3}[ \t]+"
    r"[*_`]{0,3}REASON[ \t]*=[ \t]*(?P<reason>\S.*)$",
    re.MULTILINE,
)
"""The whole line is the verdict; a model may set it in bold, or as code."""

_MENTION = re.compile(r"score\s*=\s*(?P<points>[+-]?\d{1,9}(?:[.,/]\d+)?)")


def read_scale(own_words: str, question: Question) -> Reading:
    """The verdict in what a judge said of its own.

    Args:
        own_words: the reply without what stands between the question's markers.
        question: that was replied to; its rubric has a scale.

    Raises:
        UnreadableError: no line is a verdict, they disagree, the points are off the scale, or the same points stand
            in what the judge was shown, so that the line may be a quotation of it.
    """
    rubric = question.rubric
    if rubric.scale is None or rubric.pass_threshold is None:
        raise ValueError("a rubric in scale mode has a scale and a threshold")
    low, high = rubric.scale
    lines = list(_LINE.finditer(own_words))
    if not lines:
        raise UnreadableError("it holds no line 'SCORE=<whole number> REASON=<sentence>'")
    said = {int(line["points"]) for line in lines}
    if len(said) > 1 or any(one not in {str(points) for points in said} for one in _mentions(own_words)):
        raise UnreadableError("it holds several scores that disagree")
    points = said.pop()
    if not low <= points <= high:
        raise UnreadableError(f"SCORE={points} is not on the scale from {low} to {high}")
    if question.shown.has_points(points):
        raise UnreadableError(f"SCORE={points} also stands in {PLACES_SHOWN}, so it may be a quotation")
    passed = points >= rubric.pass_threshold
    reason = speakable(lines[-1]["reason"].strip())
    what = f"scores {rubric.pass_threshold} or more on the scale from {low} to {high}"
    return Reading(
        score=round((points - low) / (high - low), PLACES),
        checks=(Check(what, passed, f"SCORE={points} REASON={reason}"),),
        reason=reason,
        stance=points,
        passed=passed,
        details={"points": points},
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
