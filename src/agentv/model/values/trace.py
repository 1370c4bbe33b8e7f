"""The trace of an agent: its messages, tool calls, usage, and changes to files (AGENTS.md section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from agentv.model.values.message import Role
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, JsonObject

TRACE_VERSION = 1

SHOWN_DENIALS = 5
"""Maximum number of denials listed in a message."""

UNFINISHED = "ends before the agent has answered"
"""Part of `Trace.partial` for a session that was cut off or is still running."""

_UNANSWERED_REASONS = frozenset(
    {"error", "failed", "aborted", "cancelled", "refusal", "content_filter", "max_turn_requests"}
    | {"max_tokens", "length", "model_context_window_exceeded", "safety"}
)
"""Stop reasons of sessions that ended without a complete answer."""

ToolStatus = Literal["completed", "failed", "denied", "cancelled", "unknown"]
Evidence = Literal["agent", "gateway", "tools"]
"""Who observed a step: the agent reported it, or our gateway or our tool server saw it."""


class MessageStep(Struct, frozen=True, tag="message", tag_field="type", omit_defaults=True):
    """A message. Times, here and in other steps, are milliseconds from the start of the trace; None if unknown.

    Attributes:
        reasoning: the model's reasoning before it answered, if the agent reports it.
        parent: id of the tool call that ran the sub-agent which wrote it; None for the agent itself.
    """

    role: Role
    text: str
    reasoning: str | None = None
    started_ms: float | None = None
    parent: str | None = None


class ToolCallStep(Struct, frozen=True, tag="tool_call", tag_field="type", omit_defaults=True):
    """A call of a tool.

    Attributes:
        name: canonical name, such as `shop.get_order` or `shell`.
        native_name: the agent's own name for the tool.
        result: result of the tool, as text or JSON; None if not reported.
        error: why it failed.
    """

    name: str
    arguments: Mapping[str, Any] = {}
    native_name: str = ""
    id: str | None = None
    result: Any = None
    error: str | None = None
    status: ToolStatus = "unknown"
    started_ms: float | None = None
    duration_ms: float | None = None
    parent: str | None = None
    evidence: Evidence = "agent"

    @property
    def failed(self) -> bool:
        """Whether it ended with an error."""
        return self.status == "failed" or self.error is not None


class UsageStep(Struct, frozen=True, tag="usage", tag_field="type", omit_defaults=True):
    """The usage of one call of a model.

    Attributes:
        cost_usd: None if unknown. Agents report 0 for tokens whose price they do not know, so 0 becomes None.
    """

    model: str | None = None
    tokens: TokenUsage | None = None
    cost_usd: float | None = None
    started_ms: float | None = None
    duration_ms: float | None = None
    error: str | None = None
    parent: str | None = None
    evidence: Evidence = "agent"

    def __post_init__(self) -> None:
        """Set the cost to None if an agent reports 0 together with tokens."""
        if self.cost_usd == 0 and self.tokens is not None and self.evidence == "agent":
            force_setattr(self, "cost_usd", None)


class PermissionStep(Struct, frozen=True, tag="permission", tag_field="type", omit_defaults=True):
    """A permission that the agent asked for, and the decision."""

    tool: str
    allowed: bool
    reason: str | None = None
    started_ms: float | None = None
    parent: str | None = None


Step: TypeAlias = MessageStep | ToolCallStep | UsageStep | PermissionStep


def depths_of(steps: Sequence[Step], deepest: int) -> list[int]:
    """Return how deeply each step is nested in calls of sub-agents.

    At most `deepest`, since the parents in a trace may form a cycle.
    """
    parents = {step.id: step.parent for step in steps if isinstance(step, ToolCallStep) and step.id is not None}
    depths: list[int] = []
    for step in steps:
        depth, at = 0, step.parent
        while at is not None and depth < deepest:
            depth += 1
            at = parents.get(at)
        depths.append(depth)
    return depths


class Trace(Struct, frozen=True):
    """All steps of one trial, in order.

    Attributes:
        source: format that it was read from, such as `acp`, `otlp`, `openai-messages`, `transcript`.
        agent, agent_version, session_id: as reported by the agent.
        native: the agent's own stream, unchanged; written beside the trace, not into it.
        native_name: file name of the native stream, such as `acp.jsonl`.
        stop_reason: why the agent stopped, in its own terms.
        error: error that ended the session; empty if there was none.
        session_cost_usd: cost of the whole session, for agents that do not report the cost of each model call.
        partial: why steps are missing, such as a stream that ends early; empty if it is complete.
    """

    steps: tuple[Step, ...] = ()
    source: str = ""
    agent: str = ""
    agent_version: str = ""
    session_id: str = ""
    stop_reason: str = ""
    error: str = ""
    session_cost_usd: float | None = None
    duration_ms: float | None = None
    metadata: JsonObject = field(default=EMPTY)
    native: bytes = b""
    native_name: str = ""
    partial: str = ""

    @property
    def tool_calls(self) -> tuple[ToolCallStep, ...]:
        """The tool calls, including those of sub-agents, in order."""
        return tuple(step for step in self.steps if isinstance(step, ToolCallStep))

    @property
    def turns(self) -> int:
        """The agent's own model calls, without sub-agents: the largest of the counts of usages, messages and turns.

        Some agents report usage once for all their calls, and some report no messages between tool calls.
        """
        calls = sum(step.parent is None and step.error is None for step in self.usages)
        own = (step for step in self.steps if isinstance(step, MessageStep) and step.parent is None)
        return max(calls, sum(step.role == "assistant" for step in own), self.reported_turns)

    @property
    def reported_turns(self) -> int:
        """The turns that the adapter counted; 0 if it does not count them."""
        found = self.metadata.get("turns")
        return found if isinstance(found, int) else 0

    @property
    def denials(self) -> tuple[PermissionStep, ...]:
        """The permissions that were refused."""
        return tuple(step for step in self.steps if isinstance(step, PermissionStep) and not step.allowed)

    @property
    def unanswered(self) -> str:
        """Why the session gave no valid answer, whatever it said before; empty if it gave one."""
        if self.error:
            return f"the session ended in an error: {self.error}"
        if self.stop_reason.lower() in _UNANSWERED_REASONS:
            return f"the session ended without an answer: {self.stop_reason}"
        return self.partial if UNFINISHED in self.partial else ""

    @property
    def worked_elsewhere(self) -> bool:
        """Whether a call of an MCP tool completed, whose effect need not show in the workspace."""
        return any(call.status == "completed" and "." in call.name for call in self.tool_calls)

    @property
    def denial_message(self) -> str:
        """Message for an agent that reports success although it was denied permissions; lists the first denials."""
        denied = [f"{one.tool} ({one.reason})" if one.reason else one.tool for one in self.denials]
        listed = ", ".join(denied[:SHOWN_DENIALS])
        return f"a permission was denied, and the agent reports success though it changed nothing: {listed}"

    @property
    def is_counted(self) -> bool:
        """Whether our gateway counted the model calls; the agent's own figures are then ignored."""
        return any(isinstance(step, UsageStep) and step.evidence == "gateway" for step in self.steps)

    @property
    def usages(self) -> tuple[UsageStep, ...]:
        """The model calls that our gateway saw, or if it saw none those that the agent reports."""
        steps = tuple(step for step in self.steps if isinstance(step, UsageStep))
        return tuple(step for step in steps if step.evidence == "gateway") or steps

    @property
    def tokens(self) -> TokenUsage | None:
        """The tokens of all model calls; None if none are known."""
        known = [step.tokens for step in self.usages if step.tokens is not None]
        return reduce(add, known) if known else None

    @property
    def cost_usd(self) -> float | None:
        """The cost of all model calls; None if any is unknown."""
        if self.session_cost_usd is not None and not self.is_counted:
            return self.session_cost_usd
        costs = [step.cost_usd for step in self.usages]
        return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None

    @property
    def error_count(self) -> int:
        """Number of failed tool and model calls."""
        return sum(call.failed for call in self.tool_calls) + sum(step.error is not None for step in self.usages)


class AgentActivity(Struct, frozen=True):
    """The progress of an agent in its trial.

    Attributes:
        last_tool: canonical name of the last tool called; empty if none was called yet.
        turns: number of model calls.
        tokens: tokens of all calls so far; None if unknown.
        cost_usd: cost of all calls so far; None if unknown.
    """

    last_tool: str = ""
    turns: int = 0
    tool_calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None


ChangeKind = Literal["added", "modified", "deleted", "renamed"]


class FileChange(Struct, frozen=True):
    """One changed file.

    Attributes:
        path: path relative to the workspace, with `/`.
        old_path: path before a rename.
        added_lines, deleted_lines: numbers of lines; None for a binary file.
        size, sha256: of the new content; None if the file was deleted.
    """

    path: str
    kind: ChangeKind
    old_path: str | None = None
    added_lines: int | None = None
    deleted_lines: int | None = None
    size: int | None = None
    sha256: str | None = None
    binary: bool = False


class WorkspaceChanges(Struct, frozen=True):
    """All changes to the workspace of one trial.

    Attributes:
        patch: unified diff in git's format, decoded with replacement characters; for binary files, size and sha256.
        protected: paths of protected files that were changed.
        test_config: paths of changed files that affect how hidden tests run, such as `conftest.py`.
        cut: whether the patch was truncated.
    """

    files: tuple[FileChange, ...] = ()
    patch: str = ""
    protected: tuple[str, ...] = ()
    cut: bool = False
    test_config: tuple[str, ...] = ()


class ModelRequest(Struct, frozen=True):
    """A request of an agent to a model API.

    Attributes:
        protocol: protocol of the API: `openai`, `anthropic` or `gemini`.
        path: path below the protocol's base URL, with the query: `/v1/messages?beta=true`.
        body: the body, with any content encoding removed.
    """

    protocol: str
    method: str
    path: str
    body: bytes = b""


class ModelReply(Struct, frozen=True):
    """The reply to a `ModelRequest`.

    Attributes:
        body: the body, with any content encoding removed; the whole text of a stream.
        complete: False if the agent or the server closed the connection before the end.
    """

    status: int
    content_type: str
    body: bytes = b""
    complete: bool = True
