"""Build the trace of a session from its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from agentv.extensions.agents.traces.values import (
    Problems,
    epoch_ms,
    items,
    mapping,
    records_of,
    tokens_of,
    with_valid_parents,
)
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import names_of_call
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, ToolStatus, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class SessionFile:
    """The files of a session.

    Attributes:
        data: content of the session's file.
        others: file name → content of related files, such as those of sub-agents.
    """

    data: bytes
    others: Mapping[str, bytes] = field(default_factory=dict)


class SessionRecorder:
    """Collects the steps of a session, and builds its trace.

    Args:
        source: name of the agent.

    Attributes:
        problems: what could not be read.
    """

    def __init__(self, source: str) -> None:
        self.problems = Problems()
        self.about: dict[str, str] = {"agent": source, "version": "", "session": "", "project": ""}
        self.stop_reason = ""
        self.error = ""
        self.parent: str | None = None
        self.cost_usd: float | None = None
        self._source = source
        self._steps: list[Step] = []
        self._calls: dict[str, int] = {}
        self._usages: dict[str, int] = {}
        self._messages: dict[str, int] = {}
        self._texts: dict[int, tuple[list[str], list[str]]] = {}
        self._first_ms: float | None = None
        self._now_ms: float | None = None

    def records(self, data: bytes) -> Iterator[JsonObject]:
        """Yield the records of one of the session's files."""
        return (mapping(record) for _, record in records_of(data, self.problems))

    def set_time(self, timestamp: Json) -> None:
        """Set the time of the following records."""
        at = epoch_ms(timestamp)
        if at is None:
            return
        self._first_ms = at if self._first_ms is None else self._first_ms
        self._now_ms = at

    @property
    def _started_ms(self) -> float | None:
        if self._now_ms is None or self._first_ms is None:
            return None
        return round(max(0.0, self._now_ms - self._first_ms), 3)

    def message(self, role: Role, text: str, *, reasoning: str = "", key: str = "") -> None:
        """Add a message. Texts with the same non-empty `key` form one message, until the next message of the user."""
        if not text and not reasoning:
            return
        if text and self.parent is None:
            self.stop_reason = self.error = ""  # the session continued
        if role == "user":
            self._messages.clear()
            self._usages.clear()
        place = self._messages.get(key) if key else None
        if place is None:
            place = len(self._steps)
            self._texts[place] = ([], [])
            self._steps.append(MessageStep(role, "", None, self._started_ms, self.parent))
            if key:
                self._messages[key] = place
        texts, thoughts = self._texts[place]
        texts += [text] if text else []
        thoughts += [reasoning] if reasoning else []

    def call(self, identity: str, native: str, arguments: JsonObject) -> None:
        """Add a tool call. A call with the id of an unfinished one is the same call and is ignored."""
        place = self._calls.get(identity) if identity else None
        known = None if place is None else self._steps[place]
        if not native or (isinstance(known, ToolCallStep) and known.status == "unknown"):
            return
        if identity:
            self._calls[identity] = len(self._steps)
        name, native = names_of_call(native, arguments)
        began, parent = self._started_ms, self.parent
        self._steps.append(ToolCallStep(name, arguments, native, identity or None, started_ms=began, parent=parent))

    def knows(self, identity: str) -> bool:
        """Whether there is a call with this id."""
        return identity in self._calls

    def result(
        self, identity: str, result: Json, *, error: str | None = None, status: ToolStatus | None = None
    ) -> None:
        """Record the end of a call. The default status is failed if there is an error, else completed."""
        place = self._calls.get(identity)
        if place is None or not isinstance(call := self._steps[place], ToolCallStep):
            self.problems.note(f"a result belongs to no call: '{identity[:40]}'")
            return
        now, begun = self._started_ms, call.started_ms
        took = None if now is None or begun is None else round(max(0.0, now - begun), 3)
        state = status or ("completed" if error is None else "failed")
        self._steps[place] = replace(call, result=result, error=error, status=state, duration_ms=took)
        if state == "denied":
            tool = call.native_name or call.name
            self._steps.append(PermissionStep(tool, allowed=False, reason=error, started_ms=now, parent=call.parent))

    def usage(
        self, model: str, tokens: TokenUsage | None, cost: float | None = None, error: str | None = None, key: str = ""
    ) -> None:
        """Add a model call. It replaces an earlier one with the same non-empty `key`."""
        step = UsageStep(model or None, tokens, cost, self._started_ms, error=error, parent=self.parent)
        place = self._usages.get(key) if key else None
        if place is not None:
            self._steps[place] = step
            return
        if key:
            self._usages[key] = len(self._steps)
        self._steps.append(step)

    def usage_row(self, model: str, row: Json) -> None:
        """Add a model call, with the token counts of a usage object of any known API."""
        self.usage(model, tokens_of(row))

    def ended_in_error(self, error: str, model: str = "") -> None:
        """Record a failure of a model call or the agent; it is the session's error unless the session continues."""
        self.usage(model, None, error=error)
        if self.parent is None:
            self.stop_reason, self.error = "error", error

    def trace(self, native: bytes) -> Trace | Failure:
        """Return the trace of all records, or a Failure if there is no message and no tool call."""
        for place, (texts, thoughts) in self._texts.items():
            step = self._steps[place]
            if isinstance(step, MessageStep):
                joined = "\n\n".join(thoughts) or None
                self._steps[place] = replace(step, text="\n\n".join(texts), reasoning=joined)
        if not any(isinstance(step, MessageStep | ToolCallStep) for step in self._steps):
            why = f": {self.problems}" if self.problems else ""
            return Failure("bad-trace", f"the file has no message of a session of {self._source}{why}")
        main = [step for step in self._steps if step.parent is None]
        actions = [step for step in main if isinstance(step, MessageStep | ToolCallStep)]
        is_waiting = any(isinstance(step, ToolCallStep) and step.status == "unknown" for step in actions)
        is_answered = not actions or (isinstance(actions[-1], MessageStep) and actions[-1].role == "assistant")
        if (is_waiting or not is_answered) and self.stop_reason not in ("aborted", "error"):
            self.problems.note_unfinished("session")
        steps = with_valid_parents(self._steps, self.problems)
        if all(one.started_ms is not None for one in steps):  # steps of sub-agents may come from other files
            steps = tuple(sorted(steps, key=lambda step: step.started_ms or 0.0))
        times = [step.started_ms for step in steps if step.started_ms is not None]
        facts = {"project": self.about["project"], "started_at_ms": self._first_ms}
        return Trace(
            steps,
            source=f"{self._source}-session",
            agent=self.about["agent"],
            agent_version=self.about["version"],
            session_id=self.about["session"],
            stop_reason=self.stop_reason,
            error=self.error,
            session_cost_usd=self.cost_usd or None,
            duration_ms=max(times) if times else None,
            metadata={key: value for key, value in facts.items() if value},
            native=native,
            native_name=f"{self._source}.jsonl",
            partial=str(self.problems),
        )


def blocks_of(content: Json) -> Sequence[JsonObject]:
    """The blocks of a message's content; a string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else [mapping(one) for one in items(content)]
