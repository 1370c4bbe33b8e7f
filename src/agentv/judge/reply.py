"""Read the verdict in a judge's reply, if exactly one is certainly the judge's own (SPEC section 9).

On a scale it is eva's line `SCORE=<int> REASON=<sentence>` (seed 004). The line that counts is read strictly, but lines
that merely look like one are detected loosely, so that none can be hidden. Of several verdicts on one answer the median
counts; the others show how sure the judge is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from agentv.judge.material import CONFIRM
from agentv.judge.normalization import as_ascii
from agentv.judge.question import RubricQuestion
from agentv.judge.quotation import PLACES_SHOWN
from agentv.judge.shapes import MODES, ReadVerdict, UnreadableError, without_surrogates
from agentv.model.run.grade import PLACES, Check
from agentv.model.run.rubric import JudgeFailure, Verdict
from agentv.model.values.formatting import shorten
from agentv.model.values.response import MOST_BROKEN, TargetResponse, is_cut, spoken
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject

_LONGEST = 100_000
"""Maximum length of a reply in characters; a verdict takes a few hundred."""

_OBJECT_LINE = re.compile(r"^[ \t]*(?:```\w*[ \t]*)?(?=\{)", re.MULTILINE)
_LINE_END = re.compile(r"[ \t]*(?:```)?[ \t]*\r?$", re.MULTILINE)
_FENCE = re.compile(r"```[\w-]*\s(.*)```", re.DOTALL)


def reply_text(response: TargetResponse) -> str:
    """Return the text of a judge's reply, without its thoughts and without a code fence around all of it.

    Raises:
        UnreadableError: the reply is empty, was cut off at its length limit, or is longer than a verdict can be.
    """
    if is_cut(reason := response.finish_reason):
        raise UnreadableError(f"it was cut off at its length limit ({reason}); raise the judge's 'max_tokens'")
    output = (response.output or "").strip().lstrip("\ufeff")
    said = spoken(output).strip()
    if not said:
        raise UnreadableError("it contains thoughts and nothing else" if output else "it is empty")
    if len(said) > _LONGEST:
        raise UnreadableError(f"it is {len(said):,} characters long; {_LONGEST:,} is the most that is read")
    fenced = _FENCE.fullmatch(said)
    return said if fenced is None or "```" in fenced[1] else fenced[1].strip()


def read_reply(said: str, question: RubricQuestion) -> ReadVerdict:
    """Return the verdict in a judge's reply.

    Raises:
        UnreadableError: the reply has no verdict, several disagree, or it may quote what the judge was shown.
    """
    if question.rubric.mode == "scale":
        return read_scale(said, question)
    shape, shown = MODES[question.rubric.mode], question.shown
    rows, confirmed = verdicts_in(said, shape.key, question.word)
    try:
        readings = [shape.read(row, question.rubric) for row in rows]
        if any(one.stance != readings[0].stance for one in readings):
            raise UnreadableError("it contains several verdicts that disagree")
        if confirmed and all(shown.contains({key: row[key] for key in row if key != CONFIRM}) for row in rows):
            raise UnreadableError(f"all of it also appears in {PLACES_SHOWN}, and nothing in your own words")
        if not confirmed and shown.contains(shape.stance_in(rows[0])):
            raise UnreadableError(f"its verdict also appears in {PLACES_SHOWN}, so it may be a quotation")
    except RecursionError:
        raise UnreadableError("its objects are nested too deep") from None
    return readings[-1]


def verdicts_in(said: str, key: str, word: str) -> tuple[list[JsonObject], bool]:
    """Return the JSON objects with the key of a verdict, and whether they carry the confirmation word.

    Objects with the word count if they are alone on their lines; without it, only one that is the whole reply counts.

    Raises:
        UnreadableError: the reply has no such object, or one that reports an error.
    """
    rows = confirmed = [row for row in _with_word(said, word) if key in row]
    if not confirmed:
        try:
            row = _DECODER.decode(said)
        except (ValueError, RecursionError):
            row = None
        rows = [row] if isinstance(row, dict) and key in row else []
    error = next((row["error"] for row in rows if row.get("error")), None)
    if error is not None:
        raise UnreadableError(f"it reports an error: {shorten(str(error), 100)}")
    if rows:
        return rows, bool(confirmed)
    if f'"{key}"' not in said:
        raise UnreadableError(f"it contains no JSON object with the key '{key}'")
    raise UnreadableError(f"its verdict is not the whole reply, and does not carry the word for '{CONFIRM}'")


def _with_word(said: str, word: str) -> Iterator[JsonObject]:
    """Yield every outermost object on lines of its own whose key `confirm` holds the word, in order."""
    last = said.lower().rfind(word)  # a model may change the word's case
    end = broken = 0
    for found in _OBJECT_LINE.finditer(said, 0, max(0, last)):
        if found.end() < end or broken == MOST_BROKEN:
            continue
        try:
            row, end = _DECODER.raw_decode(said, found.end())
        except (ValueError, RecursionError, UnreadableError):
            broken += 1
            continue
        given = row.get(CONFIRM)
        if isinstance(given, str) and given.strip().lower() == word and _LINE_END.match(said, end) is not None:
            yield row


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise UnreadableError("a key appears twice in one of its objects")
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


_LINE = re.compile(
    r"^[ \t]*[*_`]{0,3}SCORE[ \t]*=[ \t]*(?P<points>[+-]?[0-9]{1,9})[*_`]{0,3}[ \t]+"
    r"(?:[*_`]{0,3}CONFIRM[ \t]*=[ \t]*[*_`]{0,3}(?P<word>\w{1,64})[*_`]{0,3}[ \t]+)?"
    r"[*_`]{0,3}REASON[ \t]*=[ \t]*(?P<reason>\S.*?)"
    r"(?:[ \t]+[*_`]{0,3}CONFIRM[ \t]*=[ \t]*[*_`]{0,3}(?P<last>\w{1,64})[*_`]{0,3}[.]?[ \t]*)?$",
    re.MULTILINE,
)
"""A line that is a verdict as a whole; a model may set it in bold, or as code."""

_MENTION = re.compile(r"score\s*=\s*([+-]?\d{1,9}(?:[.,/]\d+)?)")


class UnconfirmedError(UnreadableError):
    """A verdict on a scale may be a draft: there is other text around it, and it lacks the confirmation word."""


def read_scale(said: str, question: RubricQuestion) -> ReadVerdict:
    """Return the verdict in a judge's reply on a scale.

    Lines with the confirmation word are certainly the judge's, so if there are any, no others count.

    Raises:
        UnconfirmedError: the line may be a draft.
        UnreadableError: no line is a verdict, several disagree, the points are off the scale, or the line may quote
            what the judge was shown: the same points appear there or, if the line has the word, the same points and
            reason.
    """
    every = list(_LINE.finditer(said))
    marked = [line for line in every if question.word in [word.lower() for word in line.group("word", "last") if word]]
    if not every:
        raise UnreadableError("it contains no line 'SCORE=<whole number> REASON=<sentence>'")
    found = {int(line["points"]) for line in marked or every}
    mentions = [] if marked else _MENTION.findall(as_ascii(said).casefold())
    if len(found) > 1 or any(_plain(one) not in {str(points) for points in found} for one in mentions):
        raise UnreadableError("it contains several scores that disagree")
    points, reason = found.pop(), without_surrogates((marked or every)[-1]["reason"].strip())
    reading = _reading(points, reason, question)
    if not marked and _LINE.sub("", said).strip():
        raise UnconfirmedError("its line 'SCORE=' stands beside other words, and does not carry the word for CONFIRM")
    shown = question.shown
    copied = all(shown.has_points(points, _CONFIRMED.sub("", line["reason"])) for line in marked)
    if copied if marked else shown.has_points(points):
        raise UnreadableError(f"SCORE={points} also appears in {PLACES_SHOWN}, so it may be a quotation")
    return reading


_CONFIRMED = re.compile(r"CONFIRM[ \t]*=[ \t]*\w{1,64}")


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


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Total usage of several calls; None where no call reported it.

    Attributes:
        unpriced: whether some call used tokens at an unknown price, so that the total cost is unknown too.
    """

    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    unpriced: bool = False

    def plus(self, one: TargetResponse | Verdict | JudgeFailure | UsageTotal) -> UsageTotal:
        """Return the total with one more call, or with the calls of a verdict."""
        usage, cost = one.token_usage, one.cost_usd
        if self.token_usage is not None:
            usage = self.token_usage if usage is None else self.token_usage + usage
        unpriced = self.unpriced or (one.token_usage is not None and cost is None)
        if self.cost_usd is not None:
            cost = self.cost_usd + (cost or 0.0)
        return UsageTotal(usage, None if unpriced else cost, unpriced)


def median_of_votes(votes: Sequence[Verdict | JudgeFailure]) -> Verdict | JudgeFailure:
    """Return the median verdict of the votes, or a failure if one vote failed, since a median needs them all.

    In scale mode an unreadable vote fails the answer, so it also decides the outcome.

    Args:
        votes: an odd number of votes.
    """
    total = UsageTotal()
    for vote in votes:
        total = total.plus(vote)
    usage, cost = total.token_usage, total.cost_usd
    verdicts: list[Verdict] = []
    for number, vote in enumerate(votes, 1):
        if isinstance(vote, JudgeFailure):
            message = f"vote {number} of {len(votes)}: {vote.message}"
            return replace(vote, message=message, token_usage=usage, cost_usd=cost)
        verdicts.append(vote)
    undecided = [vote for vote in verdicts if vote.undecided]
    ranked = undecided or sorted(verdicts, key=lambda vote: vote.counted)
    return replace(
        ranked[len(ranked) // 2],
        votes=tuple(vote.counted for vote in verdicts),
        shared=all(vote.shared for vote in verdicts),
        token_usage=usage,
        cost_usd=cost,
    )
