"""The lines of `journal.jsonl`: every answer received, with a checksum.

The first line is `{"format":"agentv-journal","version":1}`. Every other line is one JSON object: `crc32`, eight hex
digits, then `key`, `output`, `messages`, `token_usage`, `cost_usd`, `duration_ms`, `finish_reason`, `metadata` as the
target gave them. The checksum is zlib's CRC-32 of the line without its end and without `"crc32":"xxxxxxxx",`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from agentv.model.message import Block, DocumentBlock, FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.response import TargetResponse, TokenUsage
from agentv.model.values import JsonObject
from agentv.store.encoding import to_json

VERSION = 1

HEADER = b'{"format":"agentv-journal","version":%d}\n' % VERSION

_SEAL = b'{"crc32":"%08x",'
_SEALED = len(_SEAL % 0)


class AnswerRow(Struct, gc=False):
    """One answer. `messages` are the model's own dataclasses, field by field."""

    key: str
    output: str | None
    messages: Sequence[Message]
    token_usage: TokenUsage | None
    cost_usd: float | None
    duration_ms: float | None
    finish_reason: str | None
    metadata: JsonObject


def answer_line(key: str, answer: TargetResponse) -> bytes:
    """The line of one answer, its end included."""
    body = to_json(
        AnswerRow(
            key,
            answer.output,
            answer.messages,
            answer.token_usage,
            answer.cost_usd,
            answer.duration_ms,
            answer.finish_reason,
            answer.metadata or {},
        )
    )
    return b"%b%b\n" % (_SEAL % crc32(body), body[1:])


def unsealed(line: bytes) -> bytes | None:
    """What a line says, without its checksum; None where the checksum does not agree."""
    body = b"{" + line[_SEALED:]
    return body if line[:_SEALED] == _SEAL % crc32(body) else None


def answer_of(body: bytes) -> tuple[str, TargetResponse]:
    """The key and the answer that an unsealed line holds: field for field what was given to `answer_line`."""
    row = msgspec.json.decode(body)
    usage = row["token_usage"]
    return row["key"], TargetResponse(
        output=row["output"],
        messages=tuple(_message(message) for message in row["messages"]),
        token_usage=TokenUsage(**usage) if usage else None,
        cost_usd=row["cost_usd"],
        duration_ms=row["duration_ms"],
        finish_reason=row["finish_reason"],
        metadata=row["metadata"],
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
    """A block is told by the fields that it has."""
    if "text" in row:
        return FileBlock(**row)
    if "sha256" in row:
        return DocumentBlock(**row)
    return ImageBlock(**row) if "path" in row else TextBlock(**row)
