"""The lines of `journal.jsonl`: every answer received, and the checksum of every row, each with a checksum of its own.

The first line is `{"format":"agentv-journal","version":1}`. Every other line is one JSON object that begins with
`crc32`, eight hex digits. The keys that follow determine its kind:

    row, sum    the checksum of a row: the key of a trial, and the CRC-32 of its line in `index.jsonl`; `at_ms` is the
                time since the run began, over all its processes
    summary     the CRC-32 of `summary.json`, and of the `index.jsonl` that it is the totals of `rows_bytes`, its size
    anew        ids of cases that run again: their answers up to here are discarded
    spent, case what one model call of an agent took that passed the gateway: `spent` is the target, with `token_usage`
                and `cost_usd`
    key, case   an answer: of which call, for which case; `target` if it reported a cost; `judge`; then `output`,
                `messages`, `token_usage`, `cost_usd`, `duration_ms`, `finish_reason`, `metadata` and `context` as the
                target gave them, `time_to_first_token_ms` where it streamed them, `attempts` where the call was made
                more than once, `earlier` where it is another run's, and `redacted` where a secret was taken out of it,
                `metered` where lines with `spent` say what it took

The checksum is zlib's CRC-32 of the line without its end and without `"crc32":"xxxxxxxx",`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentv.model.values.message import Block, DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Attempt, TargetResponse
from agentv.model.values.retrieved import context_json, read_context
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.store.files.encoding import decoder_of, to_json

VERSION = 1

HEADER = b'{"format":"agentv-journal","version":%d}\n' % VERSION

_CHECKSUM = b'{"crc32":"%08x",'
_BODY = len(_CHECKSUM % 0)
_DISCARDED = "anew"
_DISCARD = f'"{_DISCARDED}":['.encode()
_SPENT = b'"spent":"'
_ROW = b'"row":"'
_ROW_CHECKSUM = b',"sum":"'
_SUMMARY = b'"summary":"'
_KEY = b'{"key":"'


class AnswerRow(Struct, gc=False):
    """An answer in the journal. `messages` are the model's own dataclasses, field by field."""

    output: str | None
    messages: Sequence[Message]
    token_usage: TokenUsage | None
    cost_usd: float | None
    duration_ms: float | None
    finish_reason: str | None
    metadata: JsonObject
    attempts: Sequence[Attempt] | UnsetType = UNSET
    earlier: bool | UnsetType = UNSET
    metered: bool | UnsetType = UNSET
    context: Sequence[Json] | UnsetType = UNSET
    time_to_first_token_ms: float | UnsetType = UNSET
    redacted: bool | UnsetType = UNSET


class _Head(Struct, gc=False):
    """How the line of an answer begins."""

    key: str
    case: str
    target: str | UnsetType = UNSET
    judge: bool | UnsetType = UNSET


class AnswerFacts(Struct, gc=False):
    """The parts of an answer that are read even if its trial does not need it, such as what a judge's took."""

    key: str
    case: str
    judge: bool = False
    cost_usd: float | None = None
    token_usage: TokenUsage | None = None
    earlier: bool = False


def answer_row(answer: TargetResponse, *, redacted: bool = False) -> AnswerRow:
    """An answer as it is written. `redacted`: secrets were taken out of it, so that it is not what was answered."""
    return AnswerRow(
        answer.output,
        answer.messages,
        answer.token_usage,
        answer.cost_usd,
        answer.duration_ms,
        answer.finish_reason,
        answer.metadata or {},
        answer.attempts or UNSET,
        answer.earlier or UNSET,
        answer.metered or UNSET,
        context_json(answer.context) or UNSET,
        UNSET if answer.time_to_first_token_ms is None else answer.time_to_first_token_ms,
        redacted or UNSET,
    )


def answer_line(
    key: str, case: str, answer: TargetResponse, *, target: str = "", redacted: bool = False, judge: bool = False
) -> bytes:
    """The line of one answer, its end included.

    Args:
        key: of the call.
        case: the id of the case that it was made for.
        answer: what came back.
        target: who gave it; written where it was paid for, so that a run that goes on knows what a call of it takes.
        redacted: as for `answer_row`.
        judge: a judge gave it, whose verdict several trials of the case may share.
    """
    paid = answer.cost_usd is not None or answer.token_usage is not None
    body = b"%b,%b" % (
        to_json(_Head(key, case, target if target and paid else UNSET, judge or UNSET))[1:-1],
        to_json(answer_row(answer, redacted=redacted))[1:],
    )
    return b"%b%b\n" % (_CHECKSUM % crc32(b"{" + body), body)


class SpentLine(Struct, gc=False):
    """What one model call of an agent took, and the key of its trial."""

    spent: str
    case: str
    token_usage: TokenUsage | None
    cost_usd: float | None
    trial: str | UnsetType = UNSET


def spent_line(target: str, case: str, tokens: TokenUsage | None, cost_usd: float | None, trial: str = "") -> bytes:
    """The line of a model call of an agent, its end included."""
    body = to_json(SpentLine(target, case, tokens, cost_usd, trial or UNSET))
    return b"%b%b\n" % (_CHECKSUM % crc32(body), body[1:])


def is_spent_line(line: bytes) -> bool:
    """Return true if a line says what a model call of an agent took."""
    return line.startswith(_SPENT, _BODY)


class _DiscardLine(Struct, gc=False, rename={"cases": _DISCARDED}):
    """Cases whose answers are discarded."""

    cases: list[str]


def discard_line(cases: Sequence[str]) -> bytes:
    """The line that discards the answers for these cases before it, its end included."""
    body = to_json(_DiscardLine(list(cases)))
    return b"%b%b\n" % (_CHECKSUM % crc32(body), body[1:])


def discarded_in(line: bytes) -> list[str] | None:
    """The cases whose answers a whole line discards; None for any other line."""
    if not line.startswith(_DISCARD, _BODY):
        return None
    return msgspec.json.decode(b"{" + line[_BODY:], type=_DiscardLine).cases


def row_checksum_line(key: str, row: bytes, at_ms: float = 0.0) -> bytes:
    """The line with the checksum of a row, including its end.

    Args:
        key: of the trial.
        row: its line in `index.jsonl`, without its end.
        at_ms: time since the run began.
    """
    body = b'%b%b","sum":"%08x","at_ms":%d}' % (_ROW, key.encode(), crc32(row), at_ms)
    return b"%b%b\n" % (_CHECKSUM % crc32(b"{" + body), body)


def is_row_checksum(line: bytes) -> bool:
    """Return true if a line says that it is the checksum of a row."""
    return line.startswith(_ROW, _BODY)


def row_checksum_in(line: bytes) -> tuple[str, int] | None:
    """The trial's key and the checksum in a whole line; None for any other line, or one that agentv did not write."""
    if not is_row_checksum(line):
        return None
    key, _, rest = line[_BODY + len(_ROW) :].partition(b'"')
    try:
        return key.decode(), int(rest[len(_ROW_CHECKSUM) : len(_ROW_CHECKSUM) + 8], 16)
    except ValueError:
        return None


class SummaryChecksum(Struct, gc=False, frozen=True):
    """The checksum of a `summary.json`, eight hex digits, and the size of the rows that it is the totals of."""

    summary: str
    rows_bytes: int


def summary_checksum_line(content: bytes, rows_bytes: int) -> bytes:
    """The line with the checksum of a `summary.json`, its end included.

    Args:
        content: of the file.
        rows_bytes: size of the rows that it is the totals of.
    """
    body = to_json(SummaryChecksum(f"{crc32(content):08x}", rows_bytes))
    return b"%b%b\n" % (_CHECKSUM % crc32(body), body[1:])


def is_summary_checksum(line: bytes) -> bool:
    """Return true if a line says that it is the checksum of `summary.json`."""
    return line.startswith(_SUMMARY, _BODY)


def summary_checksum_in(line: bytes) -> SummaryChecksum | None:
    """What a whole line, without its end, says of `summary.json`; None for any other line, or a damaged one."""
    if not is_summary_checksum(line) or (body := verified(line)) is None:
        return None
    try:
        return decoder_of(SummaryChecksum).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class _Timed(Struct, gc=False):
    at_ms: float = 0.0


def elapsed_in(line: bytes) -> float | None:
    """Time since the run began, in ms, at a line with the checksum of a row; None for any other line, or a damaged one.

    Args:
        line: without its end.
    """
    if row_checksum_in(line) is None or (body := verified(line)) is None:
        return None
    return decoder_of(_Timed).decode(body).at_ms


def verified(line: bytes) -> bytes | None:
    """The JSON of a line without its own checksum; None if that checksum is wrong."""
    body = b"{" + line[_BODY:]
    return body if line[:_BODY] == _CHECKSUM % crc32(body) else None


def facts_in(line: bytes) -> AnswerFacts:
    """The facts of the answer in a whole line."""
    return decoder_of(AnswerFacts).decode(b"{" + line[_BODY:])


def is_redacted(body: bytes) -> bool:
    """Return true if secrets were taken out of the answer in the JSON of a line."""
    return body.endswith(b',"redacted":true}')


def answer_of(body: bytes) -> tuple[str, TargetResponse]:
    """The key and the answer in the JSON of a line: field for field what was given to `answer_line`."""
    row = msgspec.json.decode(body)
    return row["key"], answer_in(row)


def answer_in(row: Mapping[str, Any]) -> TargetResponse:
    """The answer that an object of JSON holds.

    Raises:
        LookupError, TypeError, ValueError: it holds none.
    """
    usage = row["token_usage"]
    return TargetResponse(
        output=row["output"],
        messages=tuple(_message(message) for message in row["messages"]),
        token_usage=TokenUsage(**usage) if usage else None,
        cost_usd=row["cost_usd"],
        duration_ms=row["duration_ms"],
        finish_reason=row["finish_reason"],
        metadata=row["metadata"],
        attempts=tuple(Attempt(**attempt) for attempt in row.get("attempts", ())),
        earlier=row.get("earlier", False),
        metered=row.get("metered", False),
        context=read_context(row.get("context")),
        time_to_first_token_ms=row.get("time_to_first_token_ms"),
    )


def _message(row: dict[str, Any]) -> Message:
    content = row["content"]
    return Message(
        role=row["role"],
        content=tuple(_block(block) for block in content) if isinstance(content, list) else content,
        name=row["name"],
        tool_calls=tuple(ToolCall(**call) for call in row["tool_calls"]),
    )


def _block(row: dict[str, Any]) -> Block:
    """A content block; its keys determine its type."""
    if "text" in row:
        return FileBlock(**row)
    if "sha256" in row:
        return DocumentBlock(**row)
    return ImageBlock(**row) if "path" in row else TextBlock(**row)
