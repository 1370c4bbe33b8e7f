"""The verdict in a judge's reply, if exactly one is certainly the judge's own (SPEC section 9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agentv.judge.delimiter import CONFIRM
from agentv.judge.question import RubricQuestion
from agentv.judge.quotation import PLACES_SHOWN
from agentv.judge.scale import read_scale
from agentv.judge.shapes import ReadVerdict, UnreadableError
from agentv.judge.typed_shapes import MODES
from agentv.model.values.response import MOST_BROKEN, TargetResponse, is_cut, spoken
from agentv.model.values.values import Json, JsonObject

_LONGEST = 100_000
"""Characters of a reply: a verdict takes a few hundred."""

_OBJECT_LINE = re.compile(r"^[ \t]*(?:```\w*[ \t]*)?(?=\{)", re.MULTILINE)
_LINE_END = re.compile(r"[ \t]*(?:```)?[ \t]*\r?$", re.MULTILINE)
_FENCE = re.compile(r"```[\w-]*\s(.*)```", re.DOTALL)


def said_in(response: TargetResponse) -> str:
    """What a judge says, without its thoughts and without one code fence around all of it.

    Raises:
        UnreadableError: it says nothing, was cut at its length limit, or is longer than a verdict can be.
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
    """The verdict in what a judge says.

    Raises:
        UnreadableError: the reply has no verdict, several disagree, or it may quote what the judge was shown.
    """
    if question.rubric.mode == "scale":
        return read_scale(said, question)
    shape, shown = MODES[question.rubric.mode], question.shown
    rows, confirmed = verdicts_in(said, shape.key, question.mark)
    try:
        readings = [shape.read(row, question.rubric) for row in rows]
        if any(one.stance != readings[0].stance for one in readings):
            raise UnreadableError("it contains several verdicts that disagree")
        if confirmed and all(shown.has({key: row[key] for key in row if key != CONFIRM}) for row in rows):
            raise UnreadableError(f"all of it also appears in {PLACES_SHOWN}, and nothing in your own words")
        if not confirmed and shown.has(shape.stance_in(rows[0])):
            raise UnreadableError(f"its verdict also appears in {PLACES_SHOWN}, so it may be a quotation")
    except RecursionError:
        raise UnreadableError("its objects are nested too deep") from None
    return readings[-1]


def verdicts_in(said: str, key: str, word: str) -> tuple[list[JsonObject], bool]:
    """The objects with the key of a verdict, and whether they carry the call's word.

    Those with the word count if alone on their lines; without it, only one that is the whole reply counts.

    Raises:
        UnreadableError: the reply has none.
    """
    confirmed = [row for row in _with_word(said, word) if key in row]
    if confirmed:
        return confirmed, True
    try:
        row = _DECODER.decode(said)
    except (ValueError, RecursionError):
        row = None
    if isinstance(row, dict) and key in row:
        return [row], False
    if f'"{key}"' not in said:
        raise UnreadableError(f"it contains no JSON object with the key '{key}'")
    raise UnreadableError(f"its verdict is not the whole reply, and does not carry the word for '{CONFIRM}'")


def _with_word(said: str, word: str) -> Iterator[JsonObject]:
    """Every outermost object on lines of its own whose key `confirm` holds the word, in their order."""
    last = said.lower().rfind(word)  # a model may write a word in other letters
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
