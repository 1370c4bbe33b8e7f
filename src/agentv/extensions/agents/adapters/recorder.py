"""Recorder of one turn, which builds the steps of a trace, and functions that read values from events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from agentv.extensions.agents.traces import values
from agentv.model.values.tool_names import canonical_name
from agentv.model.values.trace import AgentActivity, MessageStep, PermissionStep, Step, ToolCallStep, UsageStep
from agentv.model.values.usage import TokenUsage, total_tokens
from agentv.model.values.values import Json, JsonObject, objects_in

Progress = Callable[[AgentActivity], None]


class Recording:
    """Records what the agent does in one turn, and builds the steps of its trace.

    Times are those at which the line of an event arrived.

    Args:
        prompt: text of the prompt.
        before: activity of the earlier turns.
        on_progress: called after each step, with the activity of all turns.

    Attributes:
        version, model: the agent's version and model; empty if unknown.
        offered: native names of the tools that the agent offers its model; None if it does not list them.
        turns: number of model calls that the stream shows: one begins with each new message, and with the first text
            or tool call after a tool result.
        own_turns: `turns` without those of sub-agents.
        tool_calls: number of tool calls.
        tokens: sum of the usages, or None.
    """

    def __init__(
        self, prompt: str, before: AgentActivity | None = None, on_progress: Progress = lambda _: None
    ) -> None:
        self._start = time.monotonic()
        self._before = before or AgentActivity()
        self._on_progress = on_progress
        self._steps: list[Step] = [MessageStep("user", prompt, started_ms=0.0)]
        self._calls: dict[str, int] = {}
        self._open: dict[str | None, tuple[str, int]] = {}
        self._after_result: dict[str | None, bool] = {}
        self._last_tool = self._before.last_tool
        self._texts: dict[int, tuple[list[str], list[str]]] = {}  # index of a message → texts, reasoning
        self.tokens: TokenUsage | None = None
        self._costs: list[float | None] = []
        self.version = self.model = ""
        self.offered: tuple[str, ...] | None = None
        self.turns = self.own_turns = 0
        self.tool_calls = 0

    @property
    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return round((time.monotonic() - self._start) * 1000, 3)

    def message(self, text: str, *, reasoning: str = "", message_id: str = "", parent: str | None = None) -> None:
        """Record text of the agent. Texts with the same non-empty `message_id` form one message."""
        identity, place = self._open.get(parent, ("", -1))
        follows = bool(message_id) and identity == message_id
        if not follows:
            self._begin_turn(parent, new=bool(message_id))
        self._after_result[parent] = False
        place = place if follows else -1
        if text or reasoning:
            if place < 0:
                place = len(self._steps)
                self._steps.append(MessageStep("assistant", "", None, self.now_ms, parent or None))
                self._texts[place] = ([], [])
            texts, thoughts = self._texts[place]
            texts.append(text)
            thoughts.append(reasoning)
        self._open[parent] = (message_id, place)
        self._progress()

    def tool_call(
        self, call_id: str, native_name: str, arguments: JsonObject, *, parent: str | None = None, name: str = ""
    ) -> None:
        """Record a tool call. A second call with the same `call_id` completes the arguments of the first.

        `name` is the canonical name, or empty to derive it from the native name.
        """
        place = self._calls.get(call_id) if call_id else None
        step = self._steps[place] if place is not None else None
        if place is not None and isinstance(step, ToolCallStep):
            native = native_name or step.native_name
            name, merged = canonical_name(native), {**step.arguments, **arguments}
            self._steps[place] = structs.replace(step, name=name, native_name=native, arguments=merged)
        else:
            self._begin_turn(parent)
            name = name or canonical_name(native_name)
            began, identity = self.now_ms, call_id or None
            self._calls[call_id] = len(self._steps)
            made = ToolCallStep(name, arguments, native_name, identity, started_ms=began, parent=parent or None)
            self._steps.append(made)
            self.tool_calls += 1
            self._last_tool = name
        self._progress()

    def tool_result(self, call_id: str, result: Json, *, error: str | None = None) -> None:
        """Record the end of a tool call: `completed`, or `failed` with an error."""
        place = self._calls.get(call_id)
        step = self._steps[place] if place is not None else None
        if place is None or not isinstance(step, ToolCallStep):
            return
        failed = "denied" if step.status == "denied" else "failed"
        took = None if step.started_ms is None else round(self.now_ms - step.started_ms, 3)
        status = "completed" if error is None else failed
        self._steps[place] = structs.replace(step, result=result, error=error, status=status, duration_ms=took)
        self._after_result[step.parent] = True
        self._open.pop(step.parent, None)
        self._progress()

    def usage(self, model: str | None, tokens: TokenUsage | None, cost_usd: float | None = None) -> None:
        """Record the usage of a model call, as the agent reports it."""
        self._steps.append(UsageStep(model, tokens, cost_usd, started_ms=self.now_ms))
        self._costs.append(cost_usd)
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens
        self._progress()

    def denied(self, native_name: str, reason: str, call_id: str = "") -> None:
        """Record a denied permission. `call_id` is the call that needed it, if it is known."""
        place = self._calls.get(call_id) if call_id else None
        step = self._steps[place] if place is not None else None
        parent = None
        if place is not None and isinstance(step, ToolCallStep):
            parent = step.parent
            self._steps[place] = structs.replace(step, status="denied")
        self._steps.append(PermissionStep(canonical_name(native_name), False, reason or None, self.now_ms, parent))
        self._progress()

    def agent(self, version: str = "", model: str = "") -> None:
        """Record the agent's version and model. Empty values change nothing."""
        self.version, self.model = version or self.version, model or self.model

    @property
    def answer(self) -> str:
        """Text of the agent's last message that has any. Sub-agents do not count."""
        for place in range(len(self._steps) - 1, 0, -1):
            step = self._steps[place]
            if isinstance(step, MessageStep) and step.parent is None and any(self._texts[place][0]):
                return "".join(self._texts[place][0])
        return ""

    def steps(self, *, cancelled: bool = False) -> tuple[Step, ...]:
        """Return all steps so far. If the agent was ended (`cancelled`), calls without a result are marked so."""
        return tuple(self._finished(place, step, cancelled) for place, step in enumerate(self._steps))

    def _finished(self, place: int, step: Step, cancelled: bool) -> Step:
        if isinstance(step, MessageStep) and place in self._texts:
            texts, thoughts = self._texts[place]
            return structs.replace(step, text="".join(texts), reasoning="".join(thoughts) or None)
        if cancelled and isinstance(step, ToolCallStep) and step.status == "unknown":
            return structs.replace(step, status="cancelled")
        return step

    @property
    def cost_usd(self) -> float | None:
        """Sum of the costs that the agent reports; None if it reports none or one is unknown."""
        known = [one for one in self._costs if one is not None]
        return sum(known) if known and len(known) == len(self._costs) else None

    @property
    def activity(self) -> AgentActivity:
        """What the agent has done in all turns so far."""
        before = self._before
        tokens = before.tokens if self.tokens is None else (before.tokens or 0) + total_tokens(self.tokens)
        cost = before.cost_usd if self.cost_usd is None else (before.cost_usd or 0.0) + self.cost_usd
        turns, calls = before.turns + self.turns, before.tool_calls + self.tool_calls
        return AgentActivity(self._last_tool, turns, calls, tokens, cost)

    def _begin_turn(self, parent: str | None, *, new: bool = False) -> None:
        if new or self._after_result.get(parent, True):
            self.turns += 1
            self.own_turns += not parent
            self._after_result[parent] = False

    def _progress(self) -> None:
        self._on_progress(self.activity)


def text(event: Mapping[str, Any], key: str) -> str:
    """Return the string at a key; "" for any other value."""
    return values.string(event.get(key))


def texts(event: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the strings of the list at a key; none for any other value."""
    return tuple(one for one in values.items(event.get(key)) if isinstance(one, str))


def mapping(event: Mapping[str, Any], key: str) -> JsonObject:
    """Return the object at a key; an empty one for any other value."""
    return values.mapping(event.get(key))


def items(event: Mapping[str, Any], key: str) -> list[JsonObject]:
    """Return the objects of the list at a key; none for any other value."""
    return objects_in(event.get(key))


def number(event: Mapping[str, Any], key: str) -> float | None:
    """Return the non-negative number at a key; None for any other value."""
    return values.number(event.get(key))


def count(event: Mapping[str, Any], key: str) -> int:
    """Return the non-negative integer at a key; 0 for any other value."""
    return values.count(event.get(key)) or 0


def difference(used: JsonObject, earlier: JsonObject) -> JsonObject:
    """Return what a turn used, from the counts of its session after and before it."""
    counts = {key: number(used, key) for key in used}
    return {key: max(0, one - (number(earlier, key) or 0)) for key, one in counts.items() if one is not None}
