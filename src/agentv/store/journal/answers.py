"""The lines of `journal.jsonl`: all answers received, and the checksums of all rows. Every line has its own checksum.

The first line is `{"format":"agentv-journal","version":1}`. Every other line is one JSON object that begins with
`crc32`, eight hex digits. The keys that follow determine its kind:

    row, sum    the checksum of a row: the key of the trial, and the CRC-32 of its line in `index.jsonl`; `at_ms` is the
                time since the run started, over all its processes
    summary     the CRC-32 of `summary.json`; `rows_bytes` is the size of `index.jsonl` when it was computed
    anew        ids of cases that run again: their answers in earlier lines are discarded
    spent, case the usage of one model call of an agent through the gateway: `spent` is the target, with `token_usage`
                and `cost_usd`
    key, case   an answer, with the key of the call and the id of the case; `target` if usage was reported; `judge` if a
                judge gave it; then `output`, `messages`, `token_usage`, `cost_usd`, `duration_ms`, `finish_reason`,
                `metadata` and `context` as the target returned them, `time_to_first_token_ms` if it was streamed,
                `attempts` if there were several, `earlier` if another run received it, `metered` if lines with `spent`
                have its usage, and `redacted` if a secret was removed from it

The checksum is zlib's CRC-32 of the line without the line end and without `"crc32":"xxxxxxxx",`.
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
    """An answer in the journal. `messages` are encoded field by field."""

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
    """The keys at the start of an answer's line."""

    key: str
    case: str
    target: str | UnsetType = UNSET
    judge: bool | UnsetType = UNSET


class AnswerFacts(Struct, gc=False):
    """The keys of an answer that are read from every line, such as the usage of judges."""

    key: str
    case: str
    judge: bool = False
    cost_usd: float | None = None
    token_usage: TokenUsage | None = None
    earlier: bool = False


def answer_row(answer: TargetResponse, *, redacted: bool = False) -> AnswerRow:
    """Return an answer as written to the journal. `redacted`: secrets were removed, so it is not the original one."""
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
    """Return the line of an answer, with the line end.

    Args:
        key: key of the call.
        case: id of the case that the call was made for.
        answer: the answer.
        target: name of the target; only written if usage was reported, so that a resumed run knows the cost of a call.
        redacted: as in `answer_row`.
        judge: whether a judge gave it; several trials of the case may share its verdict.
    """
    paid = answer.cost_usd is not None or answer.token_usage is not None
    body = b"%b,%b" % (
        to_json(_Head(key, case, target if target and paid else UNSET, judge or UNSET))[1:-1],
        to_json(answer_row(answer, redacted=redacted))[1:],
    )
    return b"%b%b\n" % (_CHECKSUM % crc32(b"{" + body), body)


class SpentLine(Struct, gc=False):
    """The usage of one model call of an agent, and the key of its trial."""

    spent: str
    case: str
    token_usage: TokenUsage | None
    cost_usd: float | None
    trial: str | UnsetType = UNSET


def spent_line(target: str, case: str, tokens: TokenUsage | None, cost_usd: float | None, trial: str = "") -> bytes:
    """Return the line of a model call of an agent, with the line end."""
    body = to_json(SpentLine(target, case, tokens, cost_usd, trial or UNSET))
    return b"%b%b\n" % (_CHECKSUM % crc32(body), body[1:])


def is_spent_line(line: bytes) -> bool:
    """Whether a line has the usage of a model call of an agent."""
    return line.startswith(_SPENT, _BODY)


class _DiscardLine(Struct, gc=False, rename={"cases": _DISCARDED}):
    """Cases whose answers are discarded."""

    cases: list[str]


def discard_line(cases: Sequence[str]) -> bytes:
    """Return the line that discards all earlier answers for these cases, with the line end."""
    body = to_json(_DiscardLine(list(cases)))
    return b"%b%b\n" % (_CHECKSUM % crc32(body), body[1:])


def discarded_in(line: bytes) -> list[str] | None:
    """Return the cases whose answers a complete line discards, or None for any other line."""
    if not line.startswith(_DISCARD, _BODY):
        return None
    return msgspec.json.decode(b"{" + line[_BODY:], type=_DiscardLine).cases


def row_checksum_line(key: str, row: bytes, at_ms: float = 0.0) -> bytes:
    """Return the line with the checksum of a row, with the line end.

    Args:
        key: key of the trial.
        row: its line in `index.jsonl`, without the line end.
        at_ms: time since the run started.
    """
    body = b'%b%b","sum":"%08x","at_ms":%d}' % (_ROW, key.encode(), crc32(row), at_ms)
    return b"%b%b\n" % (_CHECKSUM % crc32(b"{" + body), body)


def is_row_checksum(line: bytes) -> bool:
    """Whether a line has the checksum of a row."""
    return line.startswith(_ROW, _BODY)


def row_checksum_in(line: bytes) -> tuple[str, int] | None:
    """Return the trial's key and the row's checksum in a complete line, or None for any other or invalid line."""
    if not is_row_checksum(line):
        return None
    key, _, rest = line[_BODY + len(_ROW) :].partition(b'"')
    try:
        return key.decode(), int(rest[len(_ROW_CHECKSUM) : len(_ROW_CHECKSUM) + 8], 16)
    except ValueError:
        return None


class SummaryChecksum(Struct, gc=False, frozen=True):
    """The checksum of a `summary.json`, eight hex digits, and the size of the rows that it was computed from."""

    summary: str
    rows_bytes: int


def summary_checksum_line(content: bytes, rows_bytes: int) -> bytes:
    """Return the line with the checksum of a `summary.json`, with the line end.

    Args:
        content: content of the file.
        rows_bytes: size of the rows that it was computed from.
    """
    body = to_json(SummaryChecksum(f"{crc32(content):08x}", rows_bytes))
    return b"%b%b\n" % (_CHECKSUM % crc32(body), body[1:])


def is_summary_checksum(line: bytes) -> bool:
    """Whether a line has the checksum of `summary.json`."""
    return line.startswith(_SUMMARY, _BODY)


def summary_checksum_in(line: bytes) -> SummaryChecksum | None:
    """Return the checksum of `summary.json` in a line without line end; None for any other or a damaged line."""
    if not is_summary_checksum(line) or (body := verified(line)) is None:
        return None
    try:
        return decoder_of(SummaryChecksum).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class _Timed(Struct, gc=False):
    at_ms: float = 0.0


def elapsed_in(line: bytes) -> float | None:
    """Return the time since the run started, in ms, in a line with the checksum of a row.

    Args:
        line: the line, without the line end.

    Returns:
        The time; None for any other or a damaged line.
    """
    if row_checksum_in(line) is None or (body := verified(line)) is None:
        return None
    return decoder_of(_Timed).decode(body).at_ms


def verified(line: bytes) -> bytes | None:
    """Return the JSON of a line without its checksum, or None if the checksum is wrong."""
    body = b"{" + line[_BODY:]
    return body if line[:_BODY] == _CHECKSUM % crc32(body) else None


def facts_in(line: bytes) -> AnswerFacts:
    """Return the facts of the answer in a complete line."""
    return decoder_of(AnswerFacts).decode(b"{" + line[_BODY:])


def is_redacted(body: bytes) -> bool:
    """Whether secrets were removed from the answer in the JSON of a line."""
    return body.endswith(b',"redacted":true}')


def answer_of(body: bytes) -> tuple[str, TargetResponse]:
    """Return the key and the answer in the JSON of a line, equal to those given to `answer_line`."""
    row = msgspec.json.decode(body)
    return row["key"], answer_in(row)


def answer_in(row: Mapping[str, Any]) -> TargetResponse:
    """Return the answer in a JSON object.

    Raises:
        LookupError, TypeError, ValueError: it is not an answer.
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
    """Return a content block, whose type is determined by its keys."""
    if "text" in row:
        return FileBlock(**row)
    if "sha256" in row:
        return DocumentBlock(**row)
    return ImageBlock(**row) if "path" in row else TextBlock(**row)
