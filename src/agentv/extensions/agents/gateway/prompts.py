"""Prompts of agents: the parts of a request to a model API that are compared with a recorded one.

Texts that differ between two runs of the same agent (ids, times, temporary paths) are first replaced with placeholders.
The replies that an agent gets are prepared in `trial_texts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from agentv.extensions.agents.gateway.trial_texts import dashed
from agentv.model.values.trace import ModelRequest
from agentv.model.values.values import Json, JsonObject, lazy_pattern

_MONTH = (
    r"\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\s+"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AP]M\b)?"
_NAME = r"[^/\s\"'`<>:;,()\]}]+"
_ZONE = r"(?:\s?(?:Z\b|[+-]\d\d:?\d\d\b|UTC\b|GMT\b))?"

_PATTERNS = {
    "uuid": r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",
    "date": "|".join(
        (
            rf"\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}{_ZONE})?",
            r"\b\d{1,2}/\d{1,2}/\d{4}\b",
            rf"(?:{_DAY})?{_MONTH}\s+\d{{1,2}},?\s+(?:at\s+)?{_CLOCK}{_ZONE}(?:\s\d{{4}}\b)?{_ZONE}",
            rf"(?:{_DAY})?{_MONTH}\s+\d{{1,2}},?\s+\d{{4}}\b(?:,?\s+(?:at\s+)?{_CLOCK}{_ZONE})?",
            rf"{_DAY}{_MONTH}\s+\d{{1,2}}\b",
            rf"(?:{_DAY})?\b\d{{1,2}}\s+{_MONTH}\s+\d{{4}}\b(?:\s+{_CLOCK}{_ZONE})?",
            rf"(?<![\w.:-]){_CLOCK}(?![\d:]){_ZONE}",
            r"\b1[6-9]\d{8}(?:\d{3})?(?:\.\d+)?\b",
        )
    ),
    "tmp": rf"(?:/private)?/(?:var/)?tmp/{_NAME}|/var/folders/{_NAME}/{_NAME}/T(?:/{_NAME})?",
    "port": r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+|(?<=\[::1\]:)\d+",
    "hash": r"\b[0-9a-f]{32,}\b",
    "id": (
        r"\b(?:call|toolu|msg|chatcmpl|resp|ses|prt|req)[_-](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{8,}"
        r"|(?<=\bID: )(?=[A-Za-z_-]*\d|[a-f]+\b)[\w-]{4,}|(?<=\bPID: )\d+|(?<=\bpid )\d+"
    ),
    "duration": r"\b\d+(?:\.\d+)?\s?(?:ns|us|µs|ms|s|secs?|seconds?|milliseconds?)\b",
}
_VOLATILE = lazy_pattern("|".join(f"(?P<{name}>{pattern})" for name, pattern in _PATTERNS.items()))

_IDS = frozenset({"call_id", "id", "item_id", "previous_response_id", "response_id", "tool_call_id", "tool_use_id"})
_OPAQUE_KEYS = _IDS | {"encrypted_content", "signature", "thoughtSignature", "thought_signature"}
"""Keys of a request whose texts do not affect what is asked."""

_MARKER = "cache_control"
"""Key of a marker that moves along with the conversation."""

_DEEPEST = 100


class Placeholders:
    """Replaces texts that are new in each run with placeholders.

    Args:
        texts: text → its placeholder, such as the path of a workspace → `[workspace]`. A path is also found in its
            dashed form, from which agents make the name of a project's directory.
    """

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        known = {text: name for text, name in (texts or {}).items() if len(text) > 1}  # not the root directory
        as_names = ((dashed(text), name) for text, name in known.items() if text.startswith("/"))
        self._texts = sorted((*known.items(), *as_names), key=lambda pair: -len(pair[0]))

    def in_text(self, text: str) -> str:
        """Return the text with placeholders."""
        for found, name in self._texts:
            text = text.replace(found, name)
        return _VOLATILE.sub(lambda match: f"[{match.lastgroup}]", text)

    def in_json(self, value: Json, depth: int = 0) -> Json:
        """Return the value with placeholders in its texts and without opaque keys."""
        if isinstance(value, str):
            return self.in_text(value)
        if depth == _DEEPEST:
            return None
        if isinstance(value, Mapping):
            opaque = {key for key, inner in value.items() if key in _OPAQUE_KEYS and isinstance(inner, str)} | {_MARKER}
            return {key: self.in_json(inner, depth + 1) for key, inner in value.items() if key not in opaque}
        if isinstance(value, list):
            return [self.in_json(inner, depth + 1) for inner in value]
        return value


_MESSAGES = ("messages", "input", "contents")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_TOOLS = ("tools", "tool_choice", "toolConfig", "tool_config")
_PER_RUN = frozenset({"metadata", "user", "prompt_cache_key", "safety_identifier", "client_metadata", "session_id"})
"""Keys of a body that identify the run, the user or the session."""

_SYSTEM_ROLES = ("system", "developer")
_OF_MODEL = ("assistant", "model")
_TEXT_KEYS = ("text", "content", "output", "parts", "response", "functionResponse")
"""Keys of a message's content that hold its texts."""

SHOWN = 1000
"""Characters of a message that a cassette shows; the digest covers the whole message."""

_DIGITS = 16


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt, with placeholders.

    Attributes:
        digest: hash of the whole message.
        text: the full text for people.
    """

    role: str
    digest: str
    text: str

    @property
    def is_reply(self) -> bool:
        """Whether the model wrote it, so that an earlier reply contains it."""
        return self.role in _OF_MODEL


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a model, with placeholders.

    Attributes:
        path: protocol and path, without the query.
        model: name of the model; empty if the path contains it, or if none exists.
        system, tools, parameters: digests of the system prompt, of the tools, and of the other parameters.
        messages: the conversation so far.
        system_text: the system prompt for people.
        tool_names: names of the tools in order.
    """

    method: str
    path: str
    model: str
    system: str
    tools: str
    parameters: str
    messages: tuple[PromptMessage, ...]
    system_text: str = ""
    tool_names: tuple[str, ...] = ()

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of the messages."""
        return tuple(message.digest for message in self.messages)


def prompt_of(request: ModelRequest, placeholders: Placeholders) -> Prompt:
    """Return the prompt of a request in any protocol. A body that is not a JSON object counts as parameters."""
    path = placeholders.in_text(f"{request.protocol}{request.path.partition('?')[0]}")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        body = None
    if not isinstance(body, dict):
        text = placeholders.in_text(request.body.decode(errors="replace"))
        return Prompt(request.method, path, "", "", "", _digest(text), ())
    clean = {key: placeholders.in_json(value) for key, value in body.items() if key not in _PER_RUN}
    model = body.get("model")
    clean.pop("model", None)
    system: list[Json] = [clean.pop(key) for key in _SYSTEM if key in clean]
    tools = [clean.pop(key) for key in _TOOLS if key in clean]
    messages = list(_messages_of(clean))
    while messages and messages[0].get("role") in _SYSTEM_ROLES:  # OpenAI's chat API begins with the system prompt
        system.append(messages.pop(0))
    return Prompt(
        request.method,
        path,
        model if isinstance(model, str) else "",
        system=_digest(system),
        tools=_digest(tools),
        parameters=_digest(clean),
        messages=tuple(PromptMessage(_role(one), _digest(one), _text(one)) for one in messages),
        system_text="\n".join(map(_text, system)),
        tool_names=tuple(_names_of(tools)),
    )


def shared(before: Sequence[str], now: Sequence[str]) -> int:
    """Return the length of the common start of two sequences, such as the digests of two conversations."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(now)))


def _messages_of(body: dict[str, Json]) -> Iterator[JsonObject]:
    """Remove the messages from a body and yield them."""
    for key in _MESSAGES:
        found = body.pop(key, None)
        for one in found if isinstance(found, list) else [] if found is None else [found]:
            yield one if isinstance(one, Mapping) else {"role": "user", "content": one}


def _role(message: JsonObject) -> str:
    """Return the role of a message. An item of OpenAI's responses without one gets it from its type."""
    role = message.get("role") or message.get("type")
    if role in ("function_call", "reasoning", "custom_tool_call", "local_shell_call"):
        return "assistant"
    return role if isinstance(role, str) else "user"


def _text(value: Json) -> str:
    """Return the texts of a message, or its JSON if it has none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(one) for one in value)
    if isinstance(value, Mapping):
        texts = [_text(value[key]) for key in _TEXT_KEYS if value.get(key)]
        if texts:
            return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False, default=str)


def _names_of(tools: Json) -> Iterator[str]:
    """Yield the names of tools, in the form of any protocol."""
    if isinstance(tools, list):
        for one in tools:
            yield from _names_of(one)
    elif isinstance(tools, Mapping):
        name = tools.get("name")
        if isinstance(name, str):
            yield name
        else:
            for key in ("function", "functionDeclarations", "function_declarations"):
                yield from _names_of(tools.get(key))


def _digest(value: Json) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]
