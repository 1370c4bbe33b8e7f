"""Validation of cassette lines, since people edit these files and git merges them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agentv.model.values.message import Role
from agentv.model.values.response import TargetResponse
from agentv.store.journal.answers import answer_in

_Number = Annotated[float, Meta(ge=0)]
_Count = Annotated[int, Meta(ge=0)]
Place = tuple[str, str, int, int, str]
"""What the lines of a cassette are sorted by: case, target, turn, sample and key."""


class _Usage(Struct, gc=False, forbid_unknown_fields=True):
    input: _Count | None = None
    output: _Count | None = None
    total: _Count | None = None
    cached: _Count | None = None
    reasoning: _Count | None = None


class _Attempt(Struct, gc=False, forbid_unknown_fields=True):
    code: str
    message: str
    duration_ms: _Number
    waited_ms: _Number = 0.0


class _ToolCall(Struct, gc=False, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any]
    id: str | None = None
    duration_ms: float | None = None  # whatever the agent said
    output: str | None = None
    native_name: str | None = None


class _Block(Struct, gc=False, forbid_unknown_fields=True):
    """A block of any kind: its keys say which one."""

    value: str
    path: str | None = None
    text: str = ""
    sha256: str = ""
    digest: str = ""
    media_type: str = ""


class _Message(Struct, gc=False, forbid_unknown_fields=True):
    role: Role
    content: str | list[_Block] | dict[str, Any]
    name: str | None
    tool_calls: list[_ToolCall]


class _Answer(Struct, gc=False):
    output: str | None
    messages: list[_Message]
    token_usage: _Usage | None
    cost_usd: _Number | None
    duration_ms: _Number | None
    finish_reason: str | None
    metadata: dict[str, Any]
    attempts: list[_Attempt] = []
    earlier: bool = False
    context: list[Any] = []
    time_to_first_token_ms: _Number | None = None
    redacted: bool = False


class Recorded(Struct, gc=False):
    """A line, its answer as strictly as the engine will take it."""

    key: str
    case: str
    target: str
    answer: _Answer
    sample: int = 1
    turn: int | None = None

    @property
    def place(self) -> Place:
        """Its position in a cassette."""
        return (self.case, self.target, self.turn or 0, self.sample, self.key)


_decode = msgspec.json.Decoder(Recorded).decode


def call_in(line: bytes) -> tuple[Recorded, TargetResponse]:
    """The call that a line records, and its answer.

    Raises:
        ValueError, LookupError, TypeError: the line is malformed; the text names the place in it.
    """
    return _decode(line), answer_in(msgspec.json.decode(line)["answer"])
