"""The verdict in a judge's reply, if exactly one is certainly the judge's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentv.judge.confirmed import DECODER, objects_with
from agentv.judge.delimiter import CONFIRM
from agentv.judge.modes import MODES
from agentv.judge.question import RubricQuestion
from agentv.judge.quotation import PLACES_SHOWN
from agentv.judge.scale import read_scale
from agentv.judge.shapes import ReadVerdict, UnreadableError, VerdictShape
from agentv.lazy_dataclass import dataclass
from agentv.model.values.values import Json, JsonObject

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

    def is_copy(self, question: RubricQuestion) -> bool:
        """Whether the whole verdict, except the confirmation word, also appears in what the judge was shown."""
        row = {key: value for key, value in self.row.items() if key != CONFIRM}
        return question.shown.has(self.source, row)

    def is_shown(self, question: RubricQuestion, shape: VerdictShape) -> bool:
        """Whether the same verdict, with any reasons, also appears in what the judge was shown."""
        return self.is_copy(question) or question.shown.decides(shape.stance_in(self.row))


def read_reply(reply: str, question: RubricQuestion) -> ReadVerdict:
    """The verdict of a reply.

    Verdicts that carry the question's word are surely the judge's: where there are such, no others count, and they
    need no more than something of its own. Of a reply without the word, text between the question's markers and
    repetitions of the question are passed over; all verdicts in what is left must agree, and one of them at least
    must not stand in what the judge was shown.

    Raises:
        UnreadableError: there is no such verdict.
    """
    if not reply.strip():
        raise UnreadableError("it is empty")
    if question.rubric.mode == "scale":
        return read_scale(reply, lambda: _own_words(reply, question), question)
    shape = MODES[question.rubric.mode]
    marked = [one for one in objects_with(question.mark, reply) if shape.key in one[0]]
    if marked:
        return _confirmed([_Candidate(row, source) for row, source in marked], shape, question)
    return _own(list(_candidates(_own_words(reply, question), shape.key)), shape, question)


def _confirmed(candidates: list[_Candidate], shape: VerdictShape, question: RubricQuestion) -> ReadVerdict:
    for one in candidates:
        _check_depth(one.row)
    agreed = _agreed([shape.read(one.row, question.rubric) for one in candidates])
    if all(one.is_copy(question) for one in candidates):
        raise UnreadableError(f"all of it also appears in {PLACES_SHOWN}, and nothing in your own words")
    return agreed


def _own(candidates: list[_Candidate], shape: VerdictShape, question: RubricQuestion) -> ReadVerdict:
    readings, own = [], None
    for one in candidates:
        quoted = one.is_shown(question, shape)
        try:
            reading = shape.read(one.row, question.rubric)
        except UnreadableError:
            if quoted:  # the answer may hold JSON of its own with such a key
                continue
            raise
        readings.append(reading)
        own = own if quoted else reading
    if not readings:
        raise UnreadableError(f"it contains no JSON object with the key '{shape.key}'")
    _agreed(readings)
    if own is None:
        raise UnreadableError(f"its verdict also appears in {PLACES_SHOWN}, so it may be a quotation")
    return own


def _agreed(readings: list[ReadVerdict]) -> ReadVerdict:
    if any(one.stance != readings[0].stance for one in readings):
        raise UnreadableError("it contains several verdicts that disagree")
    return readings[-1]


def _own_words(reply: str, question: RubricQuestion) -> str:
    if len(reply) > _LONGEST:
        raise UnreadableError(f"it is {len(reply):,} characters long; {_LONGEST:,} is the most that is read")
    for message in question.messages:
        if message.role != "assistant" and message.text in reply:
            reply = reply.replace(message.text, " ")
    return question.delimiter.outside(reply)


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


def _check_depth(row: JsonObject) -> None:
    for _ in _rows_in(row):
        pass


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
            value, end = DECODER.raw_decode(text, start)
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
