"""The trace of one answer, built from `session/update` notifications (https://agentclientprotocol.com)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from agentv.extensions.agents.acp_values import AcpCall, AcpMessage
from agentv.model.values.trace import MessageStep, PermissionStep, Step
from agentv.model.values.usage import TokenUsage

_CALLS = frozenset({"tool_call", "tool_call_update"})


class TraceBuilder:
    """Takes updates as they come; gives the steps when the answer is there.

    Args:
        prompt: what the agent is asked.
        on_progress: called after each update that counts for a limit, or costs.

    Attributes:
        turns: calls of the model, as far as updates show them: one begins where the agent says or calls something
            after results of tools.
        cost_usd: of the session so far; None where the agent does not say.
        model: its name, where the agent says.
        latest: the call that was updated last.
    """

    def __init__(self, prompt: str, on_progress: Callable[[], None] = lambda: None) -> None:
        self._start = time.monotonic()
        self._on_progress = on_progress
        self._prompt = MessageStep("user", prompt, started_ms=0.0)
        self._parts: list[AcpMessage | AcpCall | PermissionStep] = []
        self._open: AcpMessage | None = None
        self._after_result = True
        self.calls: dict[str, AcpCall] = {}
        self.turns = 0
        self.cost_usd: float | None = None
        self.model: str | None = None
        self.latest: AcpCall | None = None

    @property
    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return round((time.monotonic() - self._start) * 1000, 3)

    def update(self, fields: Mapping[str, Any]) -> str | None:
        """Take an update; what is wrong with it. Kinds that say nothing of the work are passed over."""
        kind = fields.get("sessionUpdate")
        if not isinstance(kind, str):
            return "has no 'sessionUpdate'"
        if kind in _CALLS:
            return self._call(fields)
        if kind in {"agent_message_chunk", "agent_thought_chunk"}:
            return self._chunk(fields, thought=kind == "agent_thought_chunk")
        if kind == "usage_update":
            self._usage(fields)
        elif kind == "config_option_update":
            self.model = model_in(fields.get("configOptions")) or self.model
        return None

    def permission(self, call: Mapping[str, Any], *, allowed: bool, reason: str) -> None:
        """Record what was answered to a request for permission."""
        known = self.calls.get(str(call.get("toolCallId")))
        made = known or AcpCall(str(call.get("toolCallId")), self.now_ms)
        self._open = None
        if known is not None:
            known.denied = not allowed
        self._parts.append(PermissionStep(made.names.name, allowed, reason, self.now_ms))

    def use(self, fields: Mapping[str, Any]) -> AcpCall:
        """The call that a request for permission is about, which may be new."""
        self._call(fields)
        return self.calls[str(fields.get("toolCallId"))]

    @property
    def answer(self) -> str:
        """The text of the last message."""
        return next((one.text for one in reversed(self._parts) if isinstance(one, AcpMessage) and one.texts), "")

    @property
    def denied(self) -> bool:
        """Whether anything was refused."""
        return any(isinstance(one, PermissionStep) and not one.allowed for one in self._parts)

    def steps(self, *, cancelled: bool = False) -> tuple[Step, ...]:
        """All steps so far."""
        steps: list[Step] = [self._prompt]
        for one in self._parts:
            if isinstance(one, AcpCall):
                steps.append(one.step(cancelled=cancelled))
            else:
                steps.append(one.step() if isinstance(one, AcpMessage) else one)
        return tuple(steps)

    def _call(self, fields: Mapping[str, Any]) -> str | None:
        identity = fields.get("toolCallId")
        if not isinstance(identity, str) or not identity:
            return "has no 'toolCallId'"
        self._open = None
        call = self.calls.get(identity)
        if call is None:
            call = self.calls[identity] = AcpCall(identity, self.now_ms)
            self._parts.append(call)
            self._count_turn()
        call.update(fields, self.now_ms)
        self.latest = call
        if call.ended:
            self._after_result = True
        self._on_progress()
        return None

    def _chunk(self, fields: Mapping[str, Any], *, thought: bool) -> str | None:
        content = fields.get("content")
        if not isinstance(content, Mapping):
            return "has no 'content'"
        text = content.get("text") if content.get("type") == "text" else f"[{content.get('type')}]"
        if not isinstance(text, str):
            return "has a 'text' that is not text"
        self._count_turn()
        said = self._open
        identity = fields.get("messageId")
        follows = said is not None and said.identity in (None, identity) and not (thought and said.texts)
        if said is None or not follows:
            said = self._open = AcpMessage("assistant", identity, self.now_ms)
            self._parts.append(said)
        (said.thoughts if thought else said.texts).append(text)
        said.identity = identity if not thought else said.identity
        self._on_progress()
        return None

    def _count_turn(self) -> None:
        if self._after_result:
            self.turns += 1
            self._after_result = False

    def _usage(self, fields: Mapping[str, Any]) -> None:
        cost = fields.get("cost")
        amount = cost.get("amount") if isinstance(cost, Mapping) and cost.get("currency") == "USD" else None
        if isinstance(amount, int | float) and not isinstance(amount, bool) and amount > 0:
            self.cost_usd = float(amount)
            self._on_progress()


def is_call(fields: Mapping[str, Any]) -> bool:
    """Whether an update is about a tool call."""
    return fields.get("sessionUpdate") in _CALLS


def model_in(options: Any) -> str | None:
    """The model that a session is set to, out of its options."""
    for one in options if isinstance(options, list) else ():
        if isinstance(one, Mapping) and one.get("category") == "model" and isinstance(one.get("currentValue"), str):
            return str(one["currentValue"])
    return None


def usage_of(usage: Any) -> TokenUsage | None:
    """Token counts of a PromptResponse."""
    if usage is None:
        return None
    return TokenUsage(
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.cached_read_tokens,
        usage.thought_tokens,
    )
