"""The trace of an agent: what it said, which tools it called, what it used and changed (AGENTS.md section 3)."""

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
"""Denials that a message names."""

UNFINISHED = "ends before the agent has answered"
"""What `partial` says of a session that was cut off, or is still running."""

_NO_ENDINGS = frozenset(
    {"error", "failed", "aborted", "cancelled", "refusal", "content_filter", "max_turn_requests"}
    | {"max_tokens", "length", "model_context_window_exceeded", "safety"}
)
"""Reasons for which a session ended that are no end of an answer."""

ToolStatus = Literal["completed", "failed", "denied", "cancelled", "unknown"]
Evidence = Literal["agent", "gateway", "tools"]
"""Who saw it: the agent reported it, our gateway or our tool server did."""


class MessageStep(Struct, frozen=True, tag="message", tag_field="type", omit_defaults=True):
    """A message. Times are milliseconds from the start of the trace; None where unknown.

    Attributes:
        reasoning: what the model thought before it answered, where the agent shows that.
        parent: the id of the tool call in which a sub-agent said it; None: the agent itself did.
    """

    role: Role
    text: str
    reasoning: str | None = None
    started_ms: float | None = None
    parent: str | None = None


class ToolCallStep(Struct, frozen=True, tag="tool_call", tag_field="type", omit_defaults=True):
    """A call of a tool.

    Attributes:
        name: canonical, such as `shop.get_order` or `shell`.
        native_name: as the agent calls it.
        result: what the tool gave, as text or JSON; None where it is not reported.
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
    """One call of a model, and what it used.

    Attributes:
        cost_usd: None if unknown. Agents report 0 for tokens whose price they do not know, so that counts as unknown.
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
        """Set a cost of 0 beside tokens to None."""
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
    """How deep each step lies within calls of sub-agents, at most `deepest`: parents may lie within themselves."""
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
        source: what it was read from, such as `acp`, `otlp`, `openai-messages`, `transcript`.
        agent, agent_version, session_id: as the agent names them.
        native: the stream as it came; written beside the trace, not into it.
        native_name: file name of the native stream, such as `acp.jsonl`.
        stop_reason: why the agent ended, in its own terms.
        error: the error in which the session ended; empty: it ended without one.
        session_cost_usd: cost of the whole session, where the agent does not report that of each model call.
        partial: why steps are missing, such as a stream that ends early; empty: it is complete.
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
        """The calls of tools, those of sub-agents too, in order."""
        return tuple(step for step in self.steps if isinstance(step, ToolCallStep))

    @property
    def turns(self) -> int:
        """How often the agent itself called its model: the most of calls with usage, messages, and what it reports.

        Some agents report usage once for all of their calls, and some no messages between calls of tools.
        """
        calls = sum(step.parent is None and step.error is None for step in self.usages)
        own = (step for step in self.steps if isinstance(step, MessageStep) and step.parent is None)
        return max(calls, sum(step.role == "assistant" for step in own), self.reported_turns)

    @property
    def reported_turns(self) -> int:
        """What the adapter counted as the agent worked; 0 if it counts none."""
        found = self.metadata.get("turns")
        return found if isinstance(found, int) else 0

    @property
    def denials(self) -> tuple[PermissionStep, ...]:
        """The permissions that were refused."""
        return tuple(step for step in self.steps if isinstance(step, PermissionStep) and not step.allowed)

    @property
    def unanswered(self) -> str:
        """Why the session gave no answer that counts, whatever it said before; empty: it gave one."""
        if self.error:
            return f"the session ended in an error: {self.error}"
        if self.stop_reason.lower() in _NO_ENDINGS:
            return f"the session ended without an answer: {self.stop_reason}"
        return self.partial if UNFINISHED in self.partial else ""

    @property
    def worked_elsewhere(self) -> bool:
        """Whether a call of an MCP tool completed: what it did is in no file of the workspace."""
        return any(call.status == "completed" and "." in call.name for call in self.tool_calls)

    @property
    def denial_message(self) -> str:
        """Why a success counts for nothing: the first permissions that were refused, with the reasons."""
        denied = [f"{one.tool} ({one.reason})" if one.reason else one.tool for one in self.denials]
        listed = ", ".join(denied[:SHOWN_DENIALS])
        return f"a permission was denied, and the agent reports success though it changed nothing: {listed}"

    @property
    def is_counted(self) -> bool:
        """Whether our gateway counted the model calls; what the agent says of them is only a report then."""
        return any(isinstance(step, UsageStep) and step.evidence == "gateway" for step in self.steps)

    @property
    def usages(self) -> tuple[UsageStep, ...]:
        """The calls of models: those that our gateway saw, where it saw any; else those that the agent reports."""
        steps = tuple(step for step in self.steps if isinstance(step, UsageStep))
        return tuple(step for step in steps if step.evidence == "gateway") or steps

    @property
    def tokens(self) -> TokenUsage | None:
        """The tokens of all model calls; None where none is known."""
        known = [step.tokens for step in self.usages if step.tokens is not None]
        return reduce(add, known) if known else None

    @property
    def cost_usd(self) -> float | None:
        """The cost of all model calls; None where one is unknown."""
        if self.session_cost_usd is not None and not self.is_counted:
            return self.session_cost_usd
        costs = [step.cost_usd for step in self.usages]
        return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None

    @property
    def error_count(self) -> int:
        """Calls of tools and models that failed."""
        return sum(call.failed for call in self.tool_calls) + sum(step.error is not None for step in self.usages)


class AgentActivity(Struct, frozen=True):
    """What an agent has done so far in its trial.

    Attributes:
        last_tool: canonical name of the last tool that it called; empty: none yet.
        turns: calls of its model.
        tokens: of all calls so far; None where unknown.
        cost_usd: of all calls so far; None where unknown.
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
        path: relative to the workspace, with `/`.
        old_path: before a rename.
        added_lines, deleted_lines: None for a binary file.
        size, sha256: of the file as it is now; None where it was deleted.
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
    """All changes of one trial.

    Attributes:
        patch: unified diff in git's format, UTF-8 with replacement characters; binary files by size and sha256.
        protected: paths of protected files that were changed.
        test_config: paths of changed files that decide how hidden tests run, such as a `conftest.py`.
        cut: the patch is longer than what is shown of it.
    """

    files: tuple[FileChange, ...] = ()
    patch: str = ""
    protected: tuple[str, ...] = ()
    cut: bool = False
    test_config: tuple[str, ...] = ()


class ModelRequest(Struct, frozen=True):
    """A request of an agent to its model.

    Attributes:
        protocol: of the API: `openai`, `anthropic` or `gemini`.
        path: below the protocol's base URL, with its query: `/v1/messages?beta=true`.
        body: without any content encoding.
    """

    protocol: str
    method: str
    path: str
    body: bytes = b""


class ModelReply(Struct, frozen=True):
    """The reply to such a request.

    Attributes:
        body: without any content encoding; a stream as its whole text.
        complete: False: the agent or the server closed the connection before its end.
    """

    status: int
    content_type: str
    body: bytes = b""
    complete: bool = True
