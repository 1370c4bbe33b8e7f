"""Placeholders for texts that differ between two runs of the same agent: ids, times, temporary paths.

Two prompts are compared by what is left. What an agent gets is made in `trial_texts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.values import Json

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

_OPAQUE_KEYS = frozenset(
    {
        "call_id",
        "encrypted_content",
        "id",
        "item_id",
        "previous_response_id",
        "response_id",
        "signature",
        "thoughtSignature",
        "thought_signature",
        "tool_call_id",
        "tool_use_id",
    }
)
"""Keys of a request whose texts say nothing of what is asked."""

_MARKER = "cache_control"
"""Key of a mark that moves along a conversation."""

_DEEPEST = 100
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]")


class Placeholders:
    """Replaces what is new for each run.

    Args:
        texts: text → what stands for it, such as the path of a workspace → `[workspace]`. A path is also found where
            other signs than letters and digits became `-`, as in names of directories that agents make for a project.
    """

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = sorted(_forms(texts or {}), key=lambda pair: -len(pair[0]))

    def in_text(self, text: str) -> str:
        """The text with placeholders."""
        for found, name in self._texts:
            text = text.replace(found, name)
        return _VOLATILE.sub(lambda match: f"[{match.lastgroup}]", text)

    def in_json(self, value: Json, depth: int = 0) -> Json:
        """The value with placeholders in its texts, without keys that say nothing."""
        if isinstance(value, str):
            return self.in_text(value)
        if depth == _DEEPEST:
            return None
        if isinstance(value, Mapping):
            return {key: self.in_json(inner, depth + 1) for key, inner in value.items() if not _is_opaque(key, inner)}
        if isinstance(value, list):
            return [self.in_json(inner, depth + 1) for inner in value]
        return value


def _is_opaque(key: str, value: Json) -> bool:
    return key == _MARKER or (key in _OPAQUE_KEYS and isinstance(value, str))


def _forms(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for text, name in texts.items():
        if len(text) > 1:  # not the root directory
            yield text, name
            if text.startswith("/"):
                yield _NOT_IN_NAMES.sub("-", text), name
