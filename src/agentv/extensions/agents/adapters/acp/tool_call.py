"""One tool call of an agent, put together from its updates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agentv.extensions.agents.acp_values import AcpToolNames, acp_tool_names
from agentv.model.values.trace import ToolCallStep, ToolStatus
from agentv.model.values.values import Json, JsonObject

READING_KINDS = frozenset({"read", "search", "think", "fetch", "switch_mode"})
"""Kinds of tools that change nothing."""

_PATH_KEYS = ("path", "file_path", "filePath", "abs_path", "absolute_path", "notebook_path", "destination")


@dataclass(slots=True)
class AcpToolCall:
    """A call as far as it is known. Each update replaces what it names."""

    id: str
    started_ms: float
    title: str = ""
    first_title: str = ""
    kind: str = ""
    status: str = "pending"
    raw_input: Any = None
    raw_output: Any = None
    content: Sequence[Any] = ()
    locations: Sequence[Any] = ()
    named: str = ""
    ended_ms: float | None = None
    denied: bool = False
    parent: str | None = None

    def update(self, fields: Mapping[str, Any], now_ms: float) -> None:
        """Take over what an update says."""
        self.title = _text(fields.get("title")) or self.title
        self.first_title = self.first_title or self.title
        self.kind = _text(fields.get("kind")) or self.kind
        self.status = _text(fields.get("status")) or self.status
        self.raw_input = fields.get("rawInput") if fields.get("rawInput") is not None else self.raw_input
        self.raw_output = fields.get("rawOutput") if fields.get("rawOutput") is not None else self.raw_output
        self.content = _items(fields.get("content")) or self.content
        self.locations = _items(fields.get("locations")) or self.locations
        self.named = _name_in_meta(fields.get("_meta"), "toolName") or self.named
        self.parent = _name_in_meta(fields.get("_meta"), "parentToolUseId") or self.parent
        if self.ended and self.ended_ms is None:
            self.ended_ms = now_ms

    @property
    def ended(self) -> bool:
        """Whether the agent says that it is over."""
        return self.status in {"completed", "failed"}

    @property
    def names(self) -> AcpToolNames:
        """The names of its tool."""
        return acp_tool_names(self.id, (self.title, self.first_title), self.kind, self.named, self.raw_input)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names: its locations, its arguments, its diffs."""
        found = [*_paths_in(self.locations), *_paths_in(self.content)]
        if isinstance(self.raw_input, Mapping):
            found += [one for key in _PATH_KEYS if isinstance(one := self.raw_input.get(key), str) and one]
        return tuple(dict.fromkeys(found))

    def step(self, *, cancelled: bool) -> ToolCallStep:
        """The step of the trace; `cancelled`: the agent was ended before it was over."""
        failed, names = self.status == "failed", self.names
        said = self.raw_output if self.raw_output is not None else _said(self.content)
        ended = self.ended_ms
        return ToolCallStep(
            name=names.name,
            arguments=self._arguments(),
            native_name=names.native_name,
            id=self.id,
            result=None if failed else _json(said),
            error=_as_text(said) or "the tool failed" if failed else None,
            status=self._status(cancelled=cancelled),
            started_ms=self.started_ms,
            duration_ms=None if ended is None else round(ended - self.started_ms, 3),
            parent=self.parent,
        )

    def _status(self, *, cancelled: bool) -> ToolStatus:
        if self.status == "completed":
            return "completed"
        if self.denied:
            return "denied"
        if self.status == "failed":
            return "failed"
        return "cancelled" if cancelled else "unknown"

    def _arguments(self) -> JsonObject:
        if isinstance(self.raw_input, Mapping):
            return cast("JsonObject", self.raw_input)
        if self.raw_input is not None:
            return {"input": _json(self.raw_input)}
        paths = self.paths
        return {"path": paths[0]} if paths else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _name_in_meta(meta: Any, key: str) -> str:
    """A text that agents put into `_meta`, on its own or under their name."""
    if not isinstance(meta, Mapping):
        return ""
    for place in (meta, *(one for one in meta.values() if isinstance(one, Mapping))):
        if isinstance(place.get(key), str):
            return str(place[key])
    return ""


def _paths_in(items: Sequence[Any]) -> Iterator[str]:
    return (one["path"] for one in items if isinstance(one, Mapping) and isinstance(one.get("path"), str))


def _said(content: Sequence[Any]) -> str | None:
    """The text of a call's content; None where it has none."""
    inner = [one.get("content") for one in content if isinstance(one, Mapping)]
    texts = [one["text"] for one in inner if isinstance(one, Mapping) and isinstance(one.get("text"), str)]
    return "\n".join(texts) if texts else None


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> Json:
    return cast("Json", value)
