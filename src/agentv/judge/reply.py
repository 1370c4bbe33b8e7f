"""The one verdict in a judge's reply, if there is one that is surely the judge's own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentv.judge.echo import PLACES_SHOWN
from agentv.judge.modes import MODES
from agentv.judge.question import Question
from agentv.judge.scale import read_scale
from agentv.judge.shapes import Reading, Shape, UnreadableError
from agentv.model.values import Json, JsonObject

_LONGEST = 100_000
"""Characters of a reply: a verdict takes a few hundred."""

_MOST_IN_VAIN = 1_000_000
"""Characters parsed from braces that turned out to begin no JSON: enough for quoted code, some 20 ms of work."""

_START = 100
"""What a start in vain costs beside its characters, in characters."""

_DEEPEST = 32
"""Levels of objects and lists: a verdict has three."""

_TOO_DEEP = "its objects are nested too deep"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An object of a reply that has the key of a verdict, and the text of the outermost object around it."""

    row: JsonObject
    source: str

    def is_quoted(self, question: Question) -> bool:
        """Whether it also stands in the answer, or in what else the question's author did not write."""
        return question.shown.has(self.source, self.row)


def read_reply(reply: str, question: Question) -> Reading:
    """The verdict of a reply.

    Text between the question's markers, and repetitions of the question, are passed over. All verdicts in what is
    left must agree, and one of them at least must be the judge's own words. Verdicts that carry the mark of a repair
    request are surely the judge's, so where there are such, no others count.

    Raises:
        UnreadableError: there is no such verdict.
    """
    own_words = _own_words(reply, question)
    if question.rubric.mode == "scale":
        return read_scale(own_words, question)
    shape = MODES[question.rubric.mode]
    candidates = list(_candidates(own_words, shape.key))
    confirmed = [one for one in candidates if question.mark is not None and one.row.get("confirm") == question.mark]
    if confirmed:
        return _agreed([shape.read(one.row, question.rubric) for one in confirmed])
    return _own(candidates, shape, question)


def _own(candidates: list[_Candidate], shape: Shape, question: Question) -> Reading:
    readings, own = [], None
    for one in candidates:
        quoted = one.is_quoted(question)
        try:
            reading = shape.read(one.row, question.rubric)
        except UnreadableError:
            if quoted:  # the answer may hold JSON of its own with such a key
                continue
            raise
        readings.append(reading)
        own = own if quoted else reading
    if not readings:
        raise UnreadableError(f"it holds no JSON object with the key '{shape.key}'")
    _agreed(readings)
    if own is None:
        raise UnreadableError(f"its verdict also stands in {PLACES_SHOWN}, so it may be a quotation")
    return own


def _agreed(readings: list[Reading]) -> Reading:
    if any(one.stance != readings[0].stance for one in readings):
        raise UnreadableError("it holds several verdicts that disagree")
    return readings[-1]


def _own_words(reply: str, question: Question) -> str:
    if not reply.strip():
        raise UnreadableError("it is empty")
    if len(reply) > _LONGEST:
        raise UnreadableError(f"it is {len(reply):,} characters long; {_LONGEST:,} is the most that is read")
    for message in question.messages:
        if message.role != "assistant" and message.text in reply:
            reply = reply.replace(message.text, " ")
    return question.fence.outside(reply)


def _candidates(text: str, key: str) -> Iterator[_Candidate]:
    for value, source in _objects(text):
        for row in _rows_in(value):
            if key in row:
                yield _Candidate(row, source)


def _rows_in(value: Json) -> Iterator[JsonObject]:
    """An object and all objects within it: a verdict may be wrapped, and one must not hide inside another."""
    level: list[Json] = [value]
    for _ in range(_DEEPEST):
        yield from (one for one in level if isinstance(one, dict))
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return
    raise UnreadableError(_TOO_DEEP)


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _objects(text: str) -> Iterator[tuple[Json, str]]:
    """Every outermost JSON object in a text, with its own text, in their order."""
    in_vain = 0
    start = text.find("{")
    while start >= 0:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except RecursionError:
            raise UnreadableError(_TOO_DEEP) from None
        except ValueError as error:  # that of a number with thousands of digits has no position
            end = start + 1
            in_vain += getattr(error, "pos", len(text)) - start + _START
            if in_vain > _MOST_IN_VAIN:
                raise UnreadableError("it is full of braces that begin no JSON") from None
        else:
            yield value, text[start:end]
        start = text.find("{", end)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise UnreadableError("a key stands twice in one of its objects")
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
