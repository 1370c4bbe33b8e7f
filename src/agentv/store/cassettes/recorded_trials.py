"""Lines of cassettes, including trials of agents. Strictly validated, because people edit these files."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.errors import StoreError
from agentv.model.values.message import Role, portable
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import ModelReply
from agentv.ports import Call
from agentv.store.files.encoding import to_json
from agentv.store.journal.answers import answer_in

_Number = Annotated[float, Meta(ge=0)]
_Count = Annotated[int, Meta(ge=0)]
Place = tuple[str, str, int, int, str]
"""Sort key of the lines of a cassette: case, target, turn, sample and key."""


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
    duration_ms: float | None = None  # any number that the agent reported
    output: str | None = None
    native_name: str | None = None


class _Block(Struct, gc=False, forbid_unknown_fields=True):
    """A content block of any kind; the kind follows from its keys."""

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
    """A line with a call; its answer is validated as strictly as the engine requires."""

    key: str
    case: str
    target: str
    answer: _Answer
    sample: int = 1
    turn: int | None = None

    @property
    def place(self) -> Place:
        """Its sort key in a cassette."""
        return (self.case, self.target, self.turn or 0, self.sample, self.key)


_decode = msgspec.json.Decoder(Recorded).decode


def call_in(line: bytes) -> tuple[Recorded, TargetResponse]:
    """Return the call in a line, and its answer.

    Raises:
        ValueError, LookupError, TypeError: the line is malformed; the message says where.
    """
    return _decode(line), answer_in(msgspec.json.decode(line)["answer"])


_Positive = Annotated[int, Meta(ge=1)]
_TRIAL_PREFIX = "~~"
"""Prefix of the keys of recorded trials, which sorts them after the answers of their case."""

_MARK = b'"recording"'
_DIGITS = 16


class ShownMessage(Struct, gc=False, forbid_unknown_fields=True):
    """A message for readers of the file."""

    role: str
    text: str


class RequestLine(Struct, gc=False, forbid_unknown_fields=True):
    """The parts of a request, as digests."""

    conversation: _Positive
    method: str
    path: str
    model: str
    system: str
    tools: str
    parameters: str
    after: _Count
    messages: list[str]


class ReplyLine(Struct, gc=False, forbid_unknown_fields=True):
    """A reply. `base64` holds a body that is not UTF-8; `complete` is false if the connection closed before the end."""

    status: Annotated[int, Meta(ge=0, le=999)]
    content_type: str
    body: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    complete: bool | UnsetType = UNSET

    @classmethod
    def of(cls, reply: ModelReply) -> ReplyLine:
        """Return the line of a reply."""
        line = cls(reply.status, reply.content_type, complete=UNSET if reply.complete else False)
        try:
            line.body = reply.body.decode()
        except UnicodeDecodeError:
            line.base64 = base64.b64encode(reply.body).decode()
        return line

    def reply(self) -> ModelReply:
        """Return the reply in this line."""
        body = base64.b64decode(self.base64) if isinstance(self.base64, str) else (self.body or "").encode()
        return ModelReply(self.status, self.content_type, body, complete=self.complete is not False)


class ExchangeLine(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """One request, and its reply."""

    recording: str
    exchange: _Positive
    case: str
    target: str
    request: RequestLine
    asked: list[ShownMessage]
    system: str | UnsetType = UNSET
    tools: list[str] | UnsetType = UNSET
    reply: ReplyLine


class TrialLine(Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """The line of a trial."""

    key: str
    case: str
    target: str
    variant: str | UnsetType = UNSET
    sample: _Positive | UnsetType = UNSET
    suite: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    recording: str
    exchanges: _Positive
    asked: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """The recording of one trial."""

    trial: TrialLine
    exchanges: tuple[ExchangeLine, ...]

    @property
    def place(self) -> Place:
        """Its sort key in a cassette."""
        trial = self.trial
        variant = trial.variant or ""
        return (trial.case, trial.target, 0, trial.sample or 1, f"{_TRIAL_PREFIX}{variant}{_TRIAL_PREFIX}{trial.key}")

    @property
    def line_key(self) -> str:
        """A key that is distinct from the key of an answer to the same call."""
        return f"{_TRIAL_PREFIX}{self.trial.key}"

    def is_of(self, call: Call) -> bool:
        """Whether it records the same case, target, variant and sample, even if other things differ."""
        trial, request = self.trial, call.request
        own = (trial.case, trial.target, trial.variant or None, trial.sample or 1)
        return own == (request.case_id, call.target, request.variant, request.sample)

    def changed(self, call: Call) -> str:
        """Return a description of what changed in a call of the same trial since the recording."""
        asked = portable(call.request.messages, call.request.root)
        if msgspec.json.encode([one.as_json() for one in asked]) != msgspec.json.encode(self.trial.asked):
            return "the input"
        if (self.trial.workspace or "") != call.request.workspace_key:
            return "the workspace, the variant or the tools"
        return "a turn, a variable, the environment or the target's settings"

    def lines(self) -> bytes:
        """Return all its lines, with line ends."""
        return b"".join(to_json(line) + b"\n" for line in (self.trial, *self.exchanges))


def recording_digest(key: str, replies: Iterable[ReplyLine]) -> str:
    """Return a digest that distinguishes recordings of the same trial."""
    digest = sha256(key.encode())
    for reply in replies:
        digest.update(to_json(reply))
    return digest.hexdigest()[:_DIGITS]


class _Kind(Struct, gc=False):
    recording: str | UnsetType = UNSET
    exchange: int | UnsetType = UNSET


_kind = msgspec.json.Decoder(_Kind).decode
_trial = msgspec.json.Decoder(TrialLine).decode
_exchange = msgspec.json.Decoder(ExchangeLine).decode


def is_exchange(line: bytes) -> bool:
    """Whether a line is an exchange of a trial; False if it is not JSON."""
    try:
        return _MARK in line and _kind(line).exchange is not UNSET
    except (ValueError, TypeError):
        return False


def units_in(path: object, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes | RecordedTrial]]:
    """Yield the calls and recorded trials in the lines of a cassette, each with the number of its first line.

    Args:
        path: path of the cassette, for error messages.
        lines: the lines with their numbers.

    Raises:
        StoreError: a recording is incomplete, or parts of two are mixed.
    """
    trials: dict[str, tuple[int, TrialLine]] = {}
    exchanges: dict[str, dict[int, tuple[int, ExchangeLine]]] = {}
    for number, line in lines:
        if _MARK not in line:
            yield number, line
            continue
        try:
            kind = _kind(line)
            if kind.recording is UNSET:
                yield number, line
            elif kind.exchange is UNSET:
                found = _trial(line)
                first, _ = trials.setdefault(found.recording, (number, found))
                _check_single(path, number, first)
            else:
                one = _exchange(line)
                own = exchanges.setdefault(one.recording, {})
                first, _ = own.setdefault(one.exchange, (number, one))
                _check_single(path, number, first)
        except (ValueError, TypeError) as error:
            raise StoreError(f"{path}:{number}: not a cassette call: {error}") from error
    for recording, (number, trial) in trials.items():
        found_lines = exchanges.pop(recording, {})
        yield number, _whole(path, number, trial, [one for _, (_, one) in sorted(found_lines.items())])
    for own in exchanges.values():
        number, one = next(iter(own.values()))
        what = f"the recording {one.recording} of '{one.target}' for the case '{one.case}'"
        raise StoreError(f"{path}:{number}: an exchange of {what}, whose trial is not in the file: {_RECORD_AGAIN}")


_RECORD_AGAIN = "take all lines of a recording from one side of a merge, or delete them and record the trial again"


def _check_single(path: object, number: int, first: int) -> None:
    if first != number:
        raise StoreError(f"{path}:{number}: duplicate of line {first}, as after a merge: {_RECORD_AGAIN}")


def _whole(path: object, number: int, trial: TrialLine, exchanges: list[ExchangeLine]) -> RecordedTrial:
    if [one.exchange for one in exchanges] != list(range(1, trial.exchanges + 1)):
        what = f"'{trial.target}' for the case '{trial.case}'"
        count = f"{len(exchanges)} of {trial.exchanges} exchanges"
        raise StoreError(f"{path}:{number}: the recording of {what} is not whole ({count}): {_RECORD_AGAIN}")
    return RecordedTrial(trial, tuple(exchanges))
