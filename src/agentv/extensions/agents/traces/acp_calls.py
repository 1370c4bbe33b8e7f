"""One tool call of the Agent Client Protocol, put together from its updates (agentclientprotocol.com)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentv.extensions.agents.acp_values import AcpToolNames, acp_tool_names
from agentv.extensions.agents.traces.values import arguments_of, items, mapping, string, text_of
from agentv.model.values.trace import ToolCallStep, ToolStatus
from agentv.model.values.values import Json, JsonObject


@dataclass(slots=True)
class AcpCall:
    """A call as far as it is known: each update replaces what it names."""

    id: str
    started_ms: float | None = None
    ended_ms: float | None = None
    title: str = ""
    first_title: str = ""
    kind: str = ""
    named: str = ""
    status: str = ""
    raw_input: Any = None
    raw_output: Any = None
    content: Any = None
    locations: Any = None
    parent: str | None = None
    denied: bool = False

    def update(self, fields: JsonObject, at_ms: float | None) -> None:
        """Take over what an update says."""
        for key, name in _TEXTS.items():
            setattr(self, name, string(fields.get(key)) or getattr(self, name))
        for key, name in _VALUES.items():
            if fields.get(key) is not None:
                setattr(self, name, fields[key])
        self.first_title = self.first_title or self.title
        self.named = _in_meta(fields.get("_meta"), "toolName") or self.named
        self.parent = _in_meta(fields.get("_meta"), "parentToolUseId") or self.parent
        if self.status in {"completed", "failed"} and self.ended_ms is None:
            self.ended_ms = at_ms

    @property
    def names(self) -> AcpToolNames:
        """The names of its tool."""
        return acp_tool_names(self.id, (self.title, self.first_title), self.kind, self.named, self.raw_input)

    def step(self, *, cancelled: bool) -> ToolCallStep:
        """The step of the trace.

        Args:
            cancelled: the agent was ended before the call was over.
        """
        failed, names = self.status == "failed", self.names
        said = self.raw_output if self.raw_output is not None else text_of(self.content) or None
        took = None if None in (self.started_ms, self.ended_ms) else (self.ended_ms or 0) - (self.started_ms or 0)
        return ToolCallStep(
            name=names.name,
            arguments=self._arguments(),
            native_name=names.native_name,
            id=self.id,
            result=None if failed else said,
            error=text_of(said) or "the tool failed" if failed else None,
            status=self._status(cancelled=cancelled),
            started_ms=self.started_ms,
            duration_ms=None if took is None else round(max(took, 0.0), 3),
            parent=self.parent,
        )

    def _status(self, *, cancelled: bool) -> ToolStatus:
        if self.denied and self.status != "completed":
            return "denied"
        if self.status in {"completed", "failed"}:
            return "completed" if self.status == "completed" else "failed"
        return "cancelled" if cancelled else "unknown"

    def _arguments(self) -> JsonObject:
        if self.raw_input is not None:
            return arguments_of(self.raw_input)
        named = [mapping(one).get("path") for one in (*items(self.locations), *items(self.content))]
        path: Json = next((one for one in named if isinstance(one, str) and one), None)
        return {} if path is None else {"path": path}


_TEXTS = {"title": "title", "kind": "kind", "status": "status", "name": "named"}
_VALUES = {"rawInput": "raw_input", "rawOutput": "raw_output", "content": "content", "locations": "locations"}


def _in_meta(meta: Any, key: str) -> str:
    """A text that agents put into `_meta`, on its own or under their name."""
    said = mapping(meta)
    places = (said, *(mapping(one) for one in said.values()))
    return next((found for place in places if (found := string(place.get(key)))), "")
