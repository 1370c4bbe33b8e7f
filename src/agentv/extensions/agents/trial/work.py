"""An agent's work in one trial, from before its first call until after grading (AGENTS.md section 2).

The steps of a trial are: open the workspace, start the scripted tools, call the target, end all processes that the
agent started, compare the workspace with its baseline, copy the hidden files in, grade, close. A trial whose answer is
recorded has no workspace, so assertions that need one err and never pass. A trial whose model calls are recorded has a
workspace, since its agent runs again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs
from msgspec.structs import replace

from agentv.app.wiring import Connections
from agentv.engine.calls.recorded_call import Given
from agentv.engine.calls.retry_policy import is_interrupted
from agentv.extensions.agents.assertions.tool_calls import ToolState
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import AgentWork, Score, Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.suite.workspace import Network, SandboxName, WorkLimits
from agentv.model.values.formatting import plural
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.trace import AgentActivity, Trace, WorkspaceChanges
from agentv.model.values.trace_summary import messages_of
from agentv.model.values.values import EMPTY, JsonObject
from agentv.ports import SessionTarget, TargetRequest, Workspace

if TYPE_CHECKING:
    from agentv.extensions.agents.traces.spans import TrialSpans
    from agentv.extensions.agents.trial.gateway_use import GatewayUse
    from agentv.extensions.agents.trial.scripted_tools import RunningTools


_LIMIT_CODES = frozenset({"agent-limit", "timeout"})
"""Codes of failures of agents that reached a limit or timed out."""


SHOWN_PATHS = 20
"""Maximum number of changed protected files that are listed."""

NO_WORKSPACE = Failure(
    "no-workspace", "the answer is recorded, and its workspace is not, so that protected files cannot be checked"
)
_NOTHING_KEPT = AgentWork()


class AgentTrial(Struct):
    """The workspace and the tools of one trial.

    Attributes:
        workspace: the workspace; None if the case has none or its answer is recorded.
        servers: its scripted tools; None if it has none.
        changes: changes since the baseline; None until the agent has ended.
        trace: trace of all its calls so far.
        gateway: gateway for the agent's model calls; None if they do not pass it.
        spans: receiver of the target's spans; None if it is not asked to send any.
        logs: file name → output of the agent's program.
        solution_state: state of its tools after the calls of the case's solution, if an assertion compares with it.
    """

    trial: Trial
    connections: Connections
    workspace: Workspace | None = None
    servers: RunningTools | None = None
    changes: WorkspaceChanges | None = None
    trace: Trace | None = None
    gateway: GatewayUse | None = None
    spans: TrialSpans | None = None
    logs: dict[str, bytes] = field(default_factory=dict)
    solution_state: JsonObject = EMPTY
    _request: TargetRequest | None = None
    _was_called: bool = False
    _has_transcript: bool = False
    _finished: bool = False
    _closed: bool = False
    _kept: AgentWork | None = None

    @property
    def must_call(self) -> bool:
        """Whether model calls are recorded or replayed, so that the agent runs even if an answer is stored."""
        return self.gateway is not None and self.gateway.session.exchanges is not None

    @property
    def limits(self) -> WorkLimits:
        """The agent's limits: those of the case, else of the suite."""
        own, run = self.trial.case.limits, self.trial.suite.run
        turns = own.max_turns if own.max_turns is not None else run.max_turns
        calls = own.max_tool_calls if own.max_tool_calls is not None else run.max_tool_calls
        return WorkLimits(turns, calls, own.on_limit or run.on_limit, self.trial.budget_usd)

    def request(self, request: TargetRequest) -> TargetRequest:
        """Return the request with the trial's workspace, tools, limits, gateway and span receiver."""
        trial, servers = self.trial, self.servers
        limits = self.limits
        tools = servers.servers if servers is not None else ()
        request = replace(request, mcp_servers=tools, max_turns=limits.max_turns, max_tool_calls=limits.max_tool_calls)
        if self.workspace is not None:
            sandbox, spec = self.workspace.sandbox, trial.case.workspace
            own, varied = spec.env if spec else {}, trial.variant.env if trial.variant else {}
            env = sandbox.environment({**trial.suite.own_env, **own, **varied, **trial.target.env})
            request = replace(request, workspace_path=self.workspace.path, sandbox=sandbox, env=env)
        if self.gateway is not None:
            request = self.gateway.request(request)
        if self.spans is not None:
            request = replace(request, env={**request.env, **self.spans.env()})
        if request.sandbox is not None and self.network == "loopback":  # ports by which the agent reaches agentv
            forwards = dict(servers.forwards) if servers is not None else {}
            gateway = request.gateway
            if gateway is not None and gateway.socket:
                forwards[int(gateway.url.rpartition(":")[2])] = gateway.socket
            if self.spans is not None and self.spans.socket:
                forwards[self.spans.port] = self.spans.socket
            request = replace(request, sandbox=request.sandbox.forwarding(forwards))
        self._request = request
        return request

    def corrected(self, activity: AgentActivity) -> AgentActivity:
        """Return the agent's reported progress, with the gateway's counts."""
        return activity if self.gateway is None else self.gateway.corrected(activity)

    def with_usage(self, given: Given) -> Given:
        """Return what a call gives, with the trace of its spans and its usage as counted by the gateway."""
        if self.spans is not None:
            given = self.spans.joined(given)
        return given if self.gateway is None else self.gateway.with_usage(given)

    def note(self, answer: TargetResponse | Failure) -> None:
        """Add the logs and the trace of a call."""
        self._was_called = True
        response = answer.response if isinstance(answer, CallFailure) else answer
        if not isinstance(response, TargetResponse):
            return
        for name, data in response.logs.items():
            self.logs[name] = self.logs.get(name, b"") + data
        if response.trace is not None:
            self.trace = response.trace if self.trace is None else _joined(self.trace, response.trace)

    def restore(self, kept: AgentWork | None) -> None:
        """Restore the work that an earlier run kept, or None if it kept nothing."""
        self._kept = kept or _NOTHING_KEPT
        self.trace, self.changes = self._kept.trace, self._kept.changes

    async def finish(self) -> Failure | None:
        """End the agent, and collect its trace and changes. Return a Failure if they cannot be graded."""
        if self._finished:
            return None
        self._finished = True
        await self._end_session()
        self._has_transcript = self.trace is not None
        if self.gateway is not None:
            await self.gateway.session.close()
            if self.trace is not None:
                self.trace = self.gateway.completed(self.trace)
        if self.servers is not None and (self.trace is not None or self.servers.calls()):
            self.trace = self.servers.joined(self.trace)
        if self.workspace is not None:
            changes = await self.workspace.finish()
            if isinstance(changes, Failure):
                return changes
            self.changes = changes
        case = self.trial.case
        states = [one.assertion for one in case.all_assertions() if isinstance(one.assertion, ToolState)]
        if case.solution is not None and case.tools and any(one.after == "solution" for one in states):
            from agentv.extensions.agents.trial.scripted_tools import state_after

            left = await state_after(case.solution.calls, case.tools, self.connections.executor)
            if isinstance(left, Failure):
                return left
            self.solution_state = left
        unusable = self.servers.failure() if self.servers is not None and self._was_called else None
        return unusable or self._denied()

    def _denied(self) -> Failure | None:
        """The Failure, with `on_denied: error`, of an agent that was denied a permission and changed nothing."""
        trace, changes = self.trace, self.changes
        if trace is None or changes is None or getattr(self.trial.target.settings, "on_denied", "grade") != "error":
            return None
        if changes.files or not trace.denials or trace.worked_elsewhere:
            return None
        return Failure("permission-denied", trace.denial_message)

    async def _end_session(self) -> None:
        request = self._request
        if request is None or (self.connections.unanswered is not None and self.gateway is None):
            return
        target: object = self.connections.target(self.trial.target)
        target = getattr(target, "wrapped", target)
        if isinstance(target, SessionTarget):
            await target.end_session(request)

    def context(self, context: AssertionContext) -> AssertionContext:
        """Return the context for assertions, which includes the agent's work once it has ended."""
        if not self._finished:
            return context
        workspace = self.workspace if self.changes is not None else None
        messages = self._messages(context)
        return replace(
            context,
            messages=messages,
            has_transcript=context.has_transcript and (bool(messages) or self._kept is None),
            workspace_path=workspace.path if workspace is not None else None,
            workspace=workspace,
            changes=self.changes,
            agent_trace=self.trace,
            tool_state=self._tool_state() or context.tool_state,
            solution_state=self.solution_state,
        )

    def _tool_state(self) -> JsonObject | None:
        if self.servers is not None:
            return self.servers.state()
        return self._kept.tool_state if self._kept is not None else None

    def _messages(self, context: AssertionContext) -> tuple[Message, ...]:
        """The transcript, with the recorded calls of scripted tools in place of the reported ones."""
        if self._kept is not None and self.trial.case.tools and context.has_transcript and self.trace is None:
            return ()  # the agent's own report of its calls is no evidence
        serves, has_transcript = self.servers is not None, self._has_transcript
        if self._kept is not None:
            serves, has_transcript = bool(self.trial.case.tools), context.has_transcript
        if not serves or self.trace is None or not has_transcript:
            return context.messages
        with_user = any(one.role == "user" for one in context.messages)
        return tuple(one for one in messages_of(self.trace) if with_user or one.role != "user")

    def exceeded_limit(self, answer: TargetResponse) -> Failure | None:
        """Return a Failure if the agent exceeded a limit without being stopped, or if that is unknown."""
        limits, messages = self.limits, answer.messages
        recorded = len(self.servers.calls()) if self.servers is not None else 0
        counted = len(self.gateway.session.usages()) if self.gateway is not None else None
        turns = sum(message.role == "assistant" for message in messages)
        calls = max(recorded, sum(len(message.tool_calls) for message in messages))
        if counted is not None and not messages:
            turns = counted
        unseen = limits.max_turns is not None and counted is None
        unknown = unseen or (limits.max_tool_calls is not None and not recorded)
        if unknown and not messages and self.trace is None:
            return Failure("no-data", "the target reports no transcript, so that its limits cannot be checked")
        for most, found, what in ((limits.max_turns, turns, "turn"), (limits.max_tool_calls, calls, "tool call")):
            if most is not None and found > most:
                return Failure("agent-limit", f"the agent took {plural(found, what)}, and the limit is {most}")
        return None

    @property
    def grades_at_limits(self) -> bool:
        """Whether a trial whose agent reached a limit is still graded."""
        return self.limits.on_limit == "grade"

    def outcome_of(self, answer: Failure) -> TargetResponse | Failure:
        """Convert the Failure of an agent at a limit to `agent-limit`, or to an answer if its work is still graded."""
        if answer.code not in _LIMIT_CODES:
            return answer
        if self.grades_at_limits:
            return (answer.response if isinstance(answer, CallFailure) else None) or TargetResponse(None)
        if answer.code == "agent-limit":
            return answer
        message = f"{answer.message}; `on_limit: grade` grades what it did until then"
        if isinstance(answer, CallFailure):
            return structs.replace(answer, code="agent-limit", message=message, retryable=False)
        return Failure("agent-limit", message)

    def checked(self, result: TrialResult) -> TrialResult:
        """Return the result, failed if the agent changed protected files, and errored if that is unknown."""
        spec = self.trial.case.workspace
        unknown = self.workspace is None and self.changes is None
        if spec is not None and spec.protected and unknown and result.status in ("passed", "failed"):
            return structs.replace(result, status="errored", score=None, error=NO_WORKSPACE)
        changed = self.changes.protected if self.changes is not None else ()
        if not changed:
            return result
        shown, more = changed[:SHOWN_PATHS], len(changed) - SHOWN_PATHS
        reason = f"the agent changed protected files: {', '.join(shown)}{f' and {more:,} more' if more > 0 else ''}"
        checks = tuple(Check(f"{path} is unchanged", False, "changed by the agent") for path in shown)
        entry = AssertionEntry("protected-files", _ProtectedFiles(), AssertionSettings(required=True))
        score = Score(entry, Grade(0.0, False, checks, reason), 0.0)
        return structs.replace(result, status="failed", score=0.0, error=None, scores=(*result.scores, score))

    async def close(self, result: TrialResult) -> TrialResult:
        """End the tools, remove or keep the workspace, and return the result with the agent's work."""
        self._closed = True
        if self.gateway is not None and self._was_called:
            await self.gateway.session.close()
            result = self.gateway.settled(result, grades_at_limits=self.grades_at_limits)
        spec, interrupted = self.trial.case.workspace, is_interrupted(result.error)
        policy = spec.keep if spec is not None else "none"
        has_failed = result.status in ("failed", "errored") and not interrupted
        kept = await _uncancelled(self._close(policy == "all" or (policy == "failed" and has_failed)))
        trace = self.trace if self.gateway is None else self.gateway.completed(self.trace)
        work = AgentWork(
            sandbox=self._sandbox(),
            trace=trace,
            changes=self.changes,
            logs=self.logs,
            kept=kept if isinstance(kept, str) else None,
            ignored=spec.ignore if spec is not None else (),
            tool_state=self._tool_state(),
        )
        result = structs.replace(result, work=work)
        if isinstance(kept, Failure):
            return structs.replace(result, status="errored", score=None, error=result.error or kept)
        return result

    @property
    def network(self) -> Network:
        """The agent's network: that of its sandbox, or the host's if it is not in one."""
        return self.workspace.sandbox.network if self.workspace is not None and self._is_confined else "host"

    @property
    def _is_confined(self) -> bool:
        """Whether the agent runs in the sandbox. Code in this process and servers do not."""
        return bool(getattr(self.trial.target.settings, "confined", False))

    def _sandbox(self) -> SandboxName | None:
        """The sandbox of the agent, or None if it is unknown."""
        if self.workspace is None:
            return self._kept.sandbox if self._kept is not None else None
        return self.workspace.sandbox.name if self._is_confined else "none"

    async def discard(self) -> None:
        """Close a trial that was interrupted, unless it is closed already."""
        if not self._closed:
            self._closed = True
            await _uncancelled(self._close(keep=False))

    async def _close(self, keep: bool) -> str | Failure | None:
        try:
            await self._end_session()
            if self.gateway is not None:
                await self.gateway.session.close()
            if self.servers is not None:
                await self.servers.close()
            if self.spans is not None:
                await self.spans.close()
        finally:
            found = await self.workspace.close(keep=keep) if self.workspace is not None else None
        return found


def _joined(first: Trace, second: Trace) -> Trace:
    """Join the traces of two turns of one session."""
    known = [one for one in (first.duration_ms, second.duration_ms) if one is not None]
    begun = first.duration_ms or max((step.started_ms or 0.0 for step in first.steps), default=0.0)
    later = []
    for step in second.steps:
        at = None if step.started_ms is None else round(step.started_ms + begun, 3)
        later.append(structs.replace(step, started_ms=at))
    turns, took = first.reported_turns + second.reported_turns, sum(known) if known else None
    partial = "; ".join(dict.fromkeys(filter(None, (first.partial, second.partial))))
    metadata = {**second.metadata, "turns": turns} if turns else second.metadata
    steps, native = (*first.steps, *later), first.native + second.native
    return structs.replace(second, steps=steps, partial=partial, metadata=metadata, native=native, duration_ms=took)


class _ProtectedFiles(Struct, frozen=True):
    """Stands for an assertion in the score of changed protected files."""

    def label(self) -> str:
        return ""


async def _uncancelled(closing: Awaitable[str | Failure | None]) -> str | Failure | None:
    """Await a cleanup that must be completed even if this task is cancelled meanwhile."""
    task = asyncio.ensure_future(closing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
