"""Writing and parsing `trace.json`.

The file is one object: `version`, the attributes of `Trace`, `native` (the name of the file with the native stream),
and `steps`, where each step is an object with a `type`, on its own line. See `docs/reference/traces.md`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from agentv.model.values.json_text import TOO_DEEP, plain, text
from agentv.model.values.response import Failure
from agentv.model.values.trace import TRACE_VERSION, Step, ToolCallStep, Trace, UsageStep

TRACE_FILE = "trace.json"
LARGEST_FILE = 256_000_000
"""Maximum size of a `trace.json`, in bytes."""


class _Document(msgspec.Struct, kw_only=True):
    """The object of the file, with `steps` not yet decoded. Attributes are in the order of the file."""

    version: int
    source: str = ""
    agent: str = ""
    agent_version: str = ""
    session_id: str = ""
    stop_reason: str = ""
    error: str = ""
    session_cost_usd: float | None = None
    duration_ms: float | None = None
    partial: str = ""
    metadata: dict[str, Any] = {}
    native: str = ""
    steps: msgspec.Raw


_ATTRIBUTES = tuple(name for name in _Document.__struct_fields__ if name not in ("version", "native", "steps"))
_OPTIONAL = ("error", "session_cost_usd")
_encode = msgspec.json.Encoder().encode
_decode_document = msgspec.json.Decoder(_Document).decode
_decode_step: Any = msgspec.json.Decoder(Step).decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


def document(trace: Trace) -> bytes:
    """Return the content of `trace.json`."""
    attributes = {name: plain(getattr(trace, name), cut=True) for name in _ATTRIBUTES}
    written = {name: one for name, one in attributes.items() if one not in ("", None) or name not in _OPTIONAL}
    head = {"version": TRACE_VERSION, **written, "native": native_name(trace)}
    lines = b"".join(b'  "%s": %s,\n' % (name.encode(), _encode(value)) for name, value in head.items())
    rows = b",\n".join(b"    " + _encode(_plain_step(step)) for step in trace.steps)
    return b"{\n" + lines + (b'  "steps": [\n' + rows + b"\n  ]\n}\n" if rows else b'  "steps": []\n}\n')


def one_line_document(trace: Trace) -> str:
    """Return the content of `trace.json` on one line."""
    return _encode(msgspec.json.decode(document(trace))).decode()


def parse(data: bytes, name: str = TRACE_FILE) -> Trace | Failure:
    """Parse the content of a `trace.json`; `name` is the file name in error messages."""
    try:
        found = _decode_document(data)
        rows = _split(found.steps)
    except RecursionError:
        return Failure("bad-trace", f"{name}: {TOO_DEEP}")
    except ValueError as error:
        return _failure(name, _line_of(data, str(error)), str(error))
    if found.version > TRACE_VERSION:
        message = f"its version is {found.version}; this agentv reads up to {TRACE_VERSION}"
        return _failure(name, _line_of(data, "$.version"), message)
    if found.native and found.native != Path(found.native).name:
        return _failure(name, _line_of(data, "$.native"), "'native' must be the name of a file beside it")
    steps: list[Step] = []
    end = max(data.rfind(b'"steps"'), 0)
    for row in rows:
        raw = bytes(row)
        begin = data.find(raw, end)
        end = begin + len(raw)
        try:
            steps.append(_checked(_decode_step(raw)))
        except (ValueError, RecursionError) as error:
            line = data.count(b"\n", 0, max(begin, 0)) + 1
            return _failure(name, line, TOO_DEEP if isinstance(error, RecursionError) else str(error))
    found.metadata = plain(found.metadata, cut=True)
    attributes = {name: getattr(found, name) for name in _ATTRIBUTES}
    return Trace(tuple(steps), native_name=found.native, **attributes)


def _failure(name: str, line: int, message: str) -> Failure:
    return Failure("bad-trace", f"{name}:{line}: {message.replace('JSON is malformed: ', '')}")


def _line_of(data: bytes, message: str) -> int:
    """Return the line of an error from msgspec, whose message names a byte or the path of a key."""
    byte = re.search(r"\(byte (\d+)\)", message)
    key = re.search(r"\$\.(\w+)", message)
    at = len(data.rstrip()) if "truncated" in message else 0
    if byte is not None:
        at = int(byte[1])
    elif key is not None:
        at = max(data.find(b'"%s"' % key[1].encode()), 0)
    return data.count(b"\n", 0, at) + 1


def _checked(step: Step) -> Step:
    """Return a step of a file with its values made plain.

    Raises:
        ValueError: it is nested too deeply, or has a negative token count.
    """
    if isinstance(step, ToolCallStep):
        return replace(step, arguments=plain(step.arguments), result=plain(step.result))
    if isinstance(step, UsageStep) and step.tokens is not None:
        for name, count in asdict(step.tokens).items():
            if count is not None and count < 0:
                raise ValueError(f"Expected `int` >= 0 - at `$.tokens.{name}`")
    return step


def _plain_step(step: Step) -> msgspec.Struct:
    values: dict[str, Any] = {name: plain(value, cut=True) for name, value in asdict(step).items() if name != "tokens"}
    if isinstance(step, UsageStep) and step.tokens is not None:
        counts = asdict(step.tokens)
        values["tokens"] = {which: plain(count) for which, count in counts.items() if count is not None}
    return type(step)(**values)


def native_name(trace: Trace) -> str:
    """Return a safe name for the file with the native stream: without directories, and never `trace.json`."""
    name = Path(text(trace.native_name)).name.replace("\0", "")
    if not trace.native and not name:
        return ""
    return f"native-{name}" if name in ("", TRACE_FILE) else name
