"""Recorder of one turn: what the lines of a stream mean becomes the steps of a trace; values out of events."""

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
    """Takes what the lines of a stream mean in one turn, and builds the trace.

    Times are those of the arrival of the line.

    Args:
        prompt: what the agent is asked.
        before: activity of the turns before this one.
        on_progress: called after each step, with the activity of all turns.

    Attributes:
        version, model: of the agent; empty where it does not say.
        offered: native names of the tools that it offers its model; None: it does not list them.
        turns: calls of its model, as far as the stream shows them: one begins with a new message, or where the agent
            says or calls something after the result of a tool.
        own_turns: those without its sub-agents'.
        tool_calls: how many tools it has called.
        tokens: the sum of the usages, or None.
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
        self._texts: dict[int, tuple[list[str], list[str]]] = {}  # and thoughts, by the place of the message
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
        """The agent says something; the texts of one non-empty `message_id` are one message."""
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
        """It calls a tool; a second one with the same `call_id` completes the first one's arguments.

        `name`: the canonical one, where the agent tells more than the native one does; empty: that of the native one.
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
        """The tool has ended: `completed`, or `failed` with an error."""
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
        """One call of its model has ended, as the agent reports it."""
        self._steps.append(UsageStep(model, tokens, cost_usd, started_ms=self.now_ms))
        self._costs.append(cost_usd)
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens
        self._progress()

    def denied(self, native_name: str, reason: str, call_id: str = "") -> None:
        """A permission was refused; `call_id` of the call that it was asked for."""
        place = self._calls.get(call_id) if call_id else None
        step = self._steps[place] if place is not None else None
        parent = None
        if place is not None and isinstance(step, ToolCallStep):
            parent = step.parent
            self._steps[place] = structs.replace(step, status="denied")
        self._steps.append(PermissionStep(canonical_name(native_name), False, reason or None, self.now_ms, parent))
        self._progress()

    def agent(self, version: str = "", model: str = "") -> None:
        """What the agent says of itself; empty: nothing new."""
        self.version, self.model = version or self.version, model or self.model

    @property
    def answer(self) -> str:
        """The text of the agent's last message that has any, not that of a sub-agent."""
        for place in range(len(self._steps) - 1, 0, -1):
            step = self._steps[place]
            if isinstance(step, MessageStep) and step.parent is None and any(self._texts[place][0]):
                return "".join(self._texts[place][0])
        return ""

    def steps(self, *, cancelled: bool = False) -> tuple[Step, ...]:
        """All steps so far; `cancelled`: the agent was ended before its calls were over."""
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
        """The sum of the costs that the agent reports; None where it reports none, or one is unknown."""
        known = [one for one in self._costs if one is not None]
        return sum(known) if known and len(known) == len(self._costs) else None

    @property
    def activity(self) -> AgentActivity:
        """What the agent has done in all its turns."""
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
    """A text; empty for anything else."""
    return values.string(event.get(key))


def texts(event: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The texts of a list; none for anything else."""
    return tuple(one for one in values.items(event.get(key)) if isinstance(one, str))


def mapping(event: Mapping[str, Any], key: str) -> JsonObject:
    """An object; empty for anything else."""
    return values.mapping(event.get(key))


def items(event: Mapping[str, Any], key: str) -> list[JsonObject]:
    """The objects of a list; none for anything else."""
    return objects_in(event.get(key))


def number(event: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative; None for anything else."""
    return values.number(event.get(key))


def count(event: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative; 0 for anything else."""
    return values.count(event.get(key)) or 0


def difference(used: JsonObject, earlier: JsonObject) -> JsonObject:
    """What a turn used, out of the counts of its session before and after it."""
    counts = {key: number(used, key) for key in used}
    return {key: max(0, one - (number(earlier, key) or 0)) for key, one in counts.items() if one is not None}
