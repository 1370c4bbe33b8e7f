"""Messages between a worker and the process that started it, as MessagePack with a length prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from pathlib import PurePath
from typing import Any

import msgspec

LENGTH = 4
"""Bytes of the length prefix of each message, in big-endian order."""

LONGEST = 1 << 30
"""Longest message in bytes. A greater length means that user code has written to the socket."""

CLOSED_STATUS = 117
"""Exit status of a worker whose socket was closed by user code."""

_SURROGATES, _INTEGER, _PAIRS = 1, 2, 3
"""Extension codes for values that MessagePack does not support: text with half of a surrogate pair, an integer of more
than 64 bits, and a mapping with such keys.
"""


class Begin(msgspec.Struct, tag="begin", array_like=True):
    """First message to a worker.

    Attributes:
        directory: first entry of its `sys.path`; empty for none.
        path: the rest of `sys.path`.
        debug: whether `breakpoint()` is allowed, as the standard streams are the terminal's.
    """

    directory: str
    path: list[str]
    debug: bool = False


class Call(msgspec.Struct, tag="call", array_like=True):
    """Call `adapter`, a function of agentv's, with the user's function and the payload.

    Attributes:
        file: file of the function. Without `file` and `module`, the adapter gets None instead of a function.
        module: module of the function.
        name: name of the function, dotted for a method.
        code: code of the failure if the call raises.
        what: owner of the function, with which the failure's message begins.
    """

    id: int
    adapter: str
    file: str | None
    module: str | None
    name: str
    payload: Any
    code: str
    what: str


class Cancel(msgspec.Struct, tag="cancel", array_like=True):
    """Cancel a call, whose result is no longer awaited."""

    id: int


class Withdraw(msgspec.Struct, tag="withdraw", array_like=True):
    """Return the calls that have not begun."""


class Answer(msgspec.Struct, tag="answer", array_like=True):
    """The result of an Ask of the worker."""

    id: int
    value: Any = None
    error: str | None = None


class Close(msgspec.Struct, tag="close", array_like=True):
    """Cancel running coroutines, and exit as a Python program does."""


class Ready(msgspec.Struct, tag="ready", array_like=True):
    """The worker has started."""


class Value(msgspec.Struct, tag="value", array_like=True):
    """The return value of a call.

    Attributes:
        duration_ms: duration in milliseconds, without the loading of the module.
        loaded: files of the modules that were loaded since the last message.
        cpu_ms: CPU time of its thread in milliseconds.
    """

    id: int
    value: Any = None
    duration_ms: float = 0.0
    loaded: list[str] = []
    cpu_ms: float = 0.0


class Failed(msgspec.Struct, tag="failed", array_like=True):
    """The failure of a call. `cause` is the text of the exception itself."""

    id: int
    code: str
    message: str
    cause: str = ""
    loaded: list[str] = []


class Unsendable(msgspec.Struct, tag="unsendable", array_like=True):
    """A call returned a value that cannot be sent. `kind` is the name of its type."""

    id: int
    kind: str


class Withdrawn(msgspec.Struct, tag="withdrawn", array_like=True):
    """Calls that will not begin in this worker. `blocked` is the line that blocks its event loop, if any."""

    ids: list[int]
    blocked: str = ""


class Ask(msgspec.Struct, tag="ask", array_like=True):
    """A call to the process that started the worker, made by the user's code in the call `call`."""

    id: int
    call: int
    name: str
    arguments: list[Any]


Request = Begin | Call | Cancel | Withdraw | Answer | Close
Reply = Ready | Value | Failed | Unsendable | Withdrawn | Ask


def packed(message: msgspec.Struct) -> bytes:
    """Encode a message with its length prefix.

    Raises:
        TypeError: it contains an object that is not plain data and has no `as_json`.
        RecursionError: it is nested too deeply.
    """
    try:
        body = _ENCODER.encode(message)
    except (UnicodeEncodeError, OverflowError):
        fields = {name: _portable(getattr(message, name)) for name in message.__struct_fields__}
        body = _ENCODER.encode(type(message)(**fields))
    return len(body).to_bytes(LENGTH, "big") + body


def unpacker(messages: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return a decoder for the bodies of these messages."""
    return msgspec.msgpack.Decoder(messages, ext_hook=_restored)


def _plain(value: object) -> Any:
    """Return a mapping as a dict, and an object with `as_json` as its JSON.

    Raises:
        TypeError: the value is neither.
    """
    if isinstance(value, Mapping):
        return dict(value)
    as_json = getattr(value, "as_json", None)
    if as_json is None:
        raise TypeError(type(value).__name__)
    return as_json()


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain, decimal_format="number")


def _portable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() or _is_whole(value) else _extension(_SURROGATES, value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return _extension(_INTEGER, str(value))
    if isinstance(value, Mapping):
        pairs = [(_portable(key), _portable(item)) for key, item in value.items()]
        if any(isinstance(key, msgspec.msgpack.Ext) for key, _ in pairs):  # extension values cannot be keys
            return msgspec.msgpack.Ext(_PAIRS, _ENCODER.encode(pairs))
        return dict(pairs)
    if type(value) in (list, tuple):
        return type(value)(map(_portable, value))
    return value


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _extension(code: int, text: str) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, text.encode("utf-8", "surrogatepass"))


def _restored(code: int, data: memoryview) -> Any:
    if code == _PAIRS:
        return dict(_PAIRS_DECODER.decode(data))
    text = bytes(data).decode("utf-8", "surrogatepass")
    return int(text) if code == _INTEGER else text


_PAIRS_DECODER = msgspec.msgpack.Decoder(list[tuple[Any, Any]], ext_hook=_restored)


class UnsendableError(TypeError):
    """A value cannot be converted to plain data. The message is the name of its type."""


def plain(value: object) -> Any:
    """Convert a value to mappings, lists, text, bytes and numbers.

    msgspec converts dataclasses, attrs classes, enums, decimals, dates and UUIDs. `_builtin_of` converts pydantic
    models, NumPy scalars and arrays, paths, and other mappings and sequences.

    Raises:
        UnsendableError: the value, or a part of it, cannot be converted.
        RecursionError: the value is nested too deeply, or contains itself.
    """
    return msgspec.to_builtins(value, builtin_types=(bytes, bytearray, Decimal), enc_hook=_builtin_of)


_DERIVED: Mapping[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}
"""Base class → conversion of instances of its subclasses, such as markupsafe's Markup."""


def _builtin_of(value: object) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    for base, plain_of in _DERIVED.items():
        if isinstance(value, base):
            return plain_of(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, AbstractSet) or (isinstance(value, Sequence) and not isinstance(value, str | bytes)):
        return list(value)
    for name in ("model_dump", "as_json"):
        dump = getattr(value, name, None)
        if callable(dump) and not isinstance(value, type):
            return dump()
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise UnsendableError(type(value).__name__)
