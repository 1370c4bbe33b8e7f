"""Convert traces from and to ATIF, Harbor's Agent Trajectory Interchange Format, versions 1.0 to 1.8.

Source: https://harborframework.com/docs/trajectory-format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from agentv.extensions.agents.traces.values import (
    Problems,
    arguments_of,
    epoch_ms,
    items,
    mapping,
    number,
    string,
    text_of,
    tokens_of,
    with_valid_parents,
)
from agentv.model.values.json_text import compact, parse
from agentv.model.values.message import Role
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import names_of_call
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, ToolStatus, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject, lazy_pattern

SCHEMA_VERSION = "ATIF-v1.8"
NATIVE_NAME = "atif.json"

_VERSION = lazy_pattern(r"ATIF-v1\.\d+")
_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_ENDS: tuple[ToolStatus, ...] = ("completed", "failed", "denied", "cancelled")


def read_atif(data: bytes) -> Trace | Failure:
    """Return the trace of a trajectory, with embedded sub-agents as steps of the calls that ran them, or a Failure."""
    try:
        document = parse(data)
    except ValueError as error:
        return Failure("bad-trace", f"the trajectory cannot be read: {error}")
    return trace_of_trajectory(document, data)


def trace_of_trajectory(document: Any, native: bytes = b"") -> Trace | Failure:
    """Return the trace of a parsed trajectory, or a Failure."""
    root = mapping(document)
    version = string(root.get("schema_version"))
    if not _VERSION.fullmatch(version):
        found = f"'{version[:40]}'" if version else "nothing"
        return Failure("bad-trace", f"'schema_version' must be ATIF-v1.0 to {SCHEMA_VERSION}, found {found}")
    if not isinstance(root.get("steps"), list):
        return Failure("bad-trace", "the trajectory has no list of 'steps'")
    reader = _Reader(root)
    reader.read(root, None, 0)
    if not reader.steps:
        why = f": {reader.problems}" if reader.problems else ""
        return Failure("bad-trace", f"the trajectory has no steps{why}")
    agent = mapping(root.get("agent"))
    metrics, extra = mapping(root.get("final_metrics")), mapping(root.get("extra"))
    if _waits(reader.steps):
        reader.problems.note_unfinished("trajectory")
    costs = [step.cost_usd for step in reader.steps if isinstance(step, UsageStep)]
    steps = reader.with_totals(metrics)
    return Trace(
        with_valid_parents(steps, reader.problems),
        source="atif",
        agent=string(agent.get("name")),
        agent_version=string(agent.get("version")),
        session_id=string(root.get("session_id")) or string(root.get("trajectory_id")),
        stop_reason=string(extra.get("stop_reason")),
        error=string(extra.get("error")),
        # the total, if the cost of a step is unknown
        session_cost_usd=number(metrics.get("total_cost_usd")) or None if None in costs else None,
        duration_ms=reader.last_ms,
        native=native,
        native_name=NATIVE_NAME if native else "",
        partial=str(reader.problems),
    )


_DEEPEST = 8
"""Maximum nesting of sub-agents."""


class _Reader:
    def __init__(self, root: JsonObject) -> None:
        self.steps: list[Step] = []
        self.problems = Problems()
        self.last_ms: float | None = None
        self._start: float | None = None
        if root.get("continued_trajectory_ref") is not None:
            self.problems.note("it is continued in another file")

    def read(self, trajectory: JsonObject, parent: str | None, depth: int) -> None:
        """Add the steps of a trajectory, and of those that are embedded in it."""
        model = string(mapping(trajectory.get("agent")).get("model_name"))
        others = map(mapping, items(trajectory.get("subagent_trajectories")))
        embedded = {string(one.get("trajectory_id")): one for one in others}
        for place, step in enumerate(items(trajectory.get("steps")), 1):
            row = mapping(step)
            role = _ROLES.get(string(row.get("source")))
            if role is None:
                self.problems.note(f"step {place} has no known 'source'")
                continue
            self._step(row, role, parent, model)
            for result in map(mapping, _results(row)):  # the call may have run sub-agents
                identity = string(result.get("source_call_id"))
                for reference in items(result.get("subagent_trajectory_ref")):
                    found = embedded.get(string(mapping(reference).get("trajectory_id")))
                    if found is None or depth == _DEEPEST:
                        self.problems.note("the trajectory of a sub-agent is not embedded")
                    else:
                        self.read(found, identity or parent, depth + 1)

    def _step(self, row: JsonObject, role: Role, parent: str | None, model: str) -> None:
        at = self._time(row.get("timestamp"))
        text, extra = text_of(row.get("message")), mapping(row.get("extra"))
        parent = string(extra.get("parent")) or parent
        reasoning = string(row.get("reasoning_content")) or None
        calls = [mapping(one) for one in items(row.get("tool_calls"))]
        if text or reasoning or not (calls or row.get("metrics") or extra.get("permission")):
            self.steps.append(MessageStep(role, text, reasoning, at, parent))
        permission = mapping(extra.get("permission"))
        if permission:
            tool, reason = string(permission.get("tool")), string(permission.get("reason")) or None
            self.steps.append(PermissionStep(tool, permission.get("allowed") is True, reason, at, parent))
        used = _usage(row, string(row.get("model_name")) or model)
        if used is not None:
            self.steps.append(replace(used, started_ms=at, parent=parent))
        results = {string(mapping(one).get("source_call_id")): mapping(one) for one in _results(row)}
        for call in calls:
            self._call(call, results.pop(string(call.get("tool_call_id")), None), at, parent)
        for result in results.values():  # results without a call
            content = text_of(result.get("content"))
            self.steps += [MessageStep("tool", content, None, at, parent)] if content else []

    def _call(self, call: JsonObject, result: JsonObject | None, at: float | None, parent: str | None) -> None:
        native = string(call.get("function_name"))
        if not native:
            self.problems.note("a tool call has no 'function_name'")
            return
        extra = {**mapping(call.get("extra")), **mapping((result or {}).get("extra"))}
        content = None if result is None else text_of(result.get("content"))
        failed = extra.get("status") == "failed" or extra.get("is_error") is True
        otherwise: ToolStatus = "unknown" if result is None else "completed"
        status = next((one for one in _ENDS if one == extra.get("status")), otherwise)
        arguments = arguments_of(call.get("arguments"))
        name, native = names_of_call(native, arguments)
        self.steps.append(
            ToolCallStep(
                name=name,
                arguments=arguments,
                native_name=native,
                id=string(call.get("tool_call_id")) or None,
                result=None if failed else content,
                error=content or "the tool failed" if failed else None,
                status="failed" if failed else status,
                started_ms=at,
                duration_ms=number(extra.get("duration_ms")),
                parent=parent,
            )
        )

    def _time(self, value: Any) -> float | None:
        at = epoch_ms(value) if isinstance(value, str) else None
        if at is None:
            return None
        self._start = at if self._start is None else self._start
        self.last_ms = round(max(at - self._start, self.last_ms or 0.0), 3)
        return round(max(at - self._start, 0.0), 3)

    def with_totals(self, metrics: JsonObject) -> list[Step]:
        """Return the steps, with a step for the total usage if none reports its own."""
        if any(isinstance(step, UsageStep) for step in self.steps):
            return self.steps
        names = {"prompt_tokens": "total_prompt_tokens", "completion_tokens": "total_completion_tokens"}
        tokens = tokens_of({key: metrics.get(name) for key, name in {**names, "cached": "total_cached_tokens"}.items()})
        cost = number(metrics.get("total_cost_usd"))
        return self.steps if tokens is None and cost is None else [*self.steps, UsageStep(None, tokens, cost)]


def _waits(steps: Sequence[Step]) -> bool:
    """Whether the last step is a message of the user or a call without result."""
    main = [step for step in steps if step.parent is None and isinstance(step, MessageStep | ToolCallStep)]
    last = main[-1] if main else None
    if isinstance(last, ToolCallStep):
        return last.status == "unknown"
    return last is not None and last.role == "user"


def _results(row: JsonObject) -> Any:
    return items(mapping(row.get("observation")).get("results"))


def _usage(row: JsonObject, model: str) -> UsageStep | None:
    metrics = mapping(row.get("metrics"))
    if not metrics:
        return None
    extra = mapping(metrics.get("extra"))
    counts = {**metrics, "reasoning": extra.get("reasoning_tokens")}
    tokens = tokens_of({key: value for key, value in counts.items() if value is not None})
    cost, took = number(metrics.get("cost_usd")), number(extra.get("duration_ms"))
    return UsageStep(model or None, tokens, cost, duration_ms=took, error=string(extra.get("error")) or None)


def atif_of(trace: Trace, began: datetime | None = None) -> dict[str, Json]:
    """Convert a trace to a trajectory. Fields that ATIF does not define are under `extra`.

    Args:
        trace: the trace; steps of sub-agents keep their places, with `parent` under `extra`.
        began: start of the trace; None: write no timestamps.
    """
    rows: list[dict[str, Json]] = []
    for number_, step in enumerate(trace.steps, 1):
        row = _row(step, number_)
        if began is not None and step.started_ms is not None:
            with suppress(ValueError, OverflowError, OSError):  # a time beyond the calendar
                at = datetime.fromtimestamp(began.timestamp() + step.started_ms / 1000, UTC)
                row["timestamp"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if step.parent is not None:
            row["extra"] = {**mapping(row.get("extra")), "parent": step.parent}
        rows.append(row)
    model, tokens = next((step.model for step in trace.usages if step.model), None), trace.tokens or TokenUsage()
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": trace.session_id or "unknown",
        "agent": {
            "name": trace.agent or "unknown",
            "version": trace.agent_version or "unknown",
            **({"model_name": model} if model else {}),
        },
        "steps": rows,
        **({"notes": f"The trace is partial: {trace.partial}"} if trace.partial else {}),
        "final_metrics": _known(
            total_prompt_tokens=tokens.input,
            total_completion_tokens=tokens.output,
            total_cached_tokens=tokens.cached,
            total_cost_usd=trace.cost_usd,
            total_steps=len(rows),
        ),
        "extra": {
            "source": trace.source,
            "stop_reason": trace.stop_reason,
            "duration_ms": trace.duration_ms,
            **({"error": trace.error} if trace.error else {}),
        },
    }


def _row(step: Step, place: int) -> dict[str, Json]:
    if isinstance(step, MessageStep):
        source = {"system": "system", "user": "user"}.get(step.role, "agent")
        thought = {"reasoning_content": step.reasoning} if step.reasoning and source == "agent" else {}
        return {"step_id": place, "source": source, "message": step.text, **thought}
    if isinstance(step, PermissionStep):
        permission: Json = {"tool": step.tool, "allowed": step.allowed, "reason": step.reason}
        return {"step_id": place, "source": "system", "message": "", "extra": {"permission": permission}}
    if isinstance(step, UsageStep):
        model = {"model_name": step.model} if step.model else {}
        return {"step_id": place, "source": "agent", "message": "", **model, "metrics": _metrics(step)}
    return {"step_id": place, "source": "agent", "message": "", **_called(step, place)}


def _called(step: ToolCallStep, place: int) -> dict[str, Json]:
    identity = step.id or f"call_{place}"
    call: Json = {
        "tool_call_id": identity,
        "function_name": step.native_name or step.name,
        "arguments": dict(step.arguments),
        "extra": _known(status=step.status, duration_ms=step.duration_ms, name=step.name, evidence=step.evidence),
    }
    output = step.error if step.error is not None else step.result
    if output is None:
        return {"tool_calls": [call]}
    content = output if isinstance(output, str) else compact(output)
    return {"tool_calls": [call], "observation": {"results": [{"source_call_id": identity, "content": content}]}}


def _metrics(step: UsageStep) -> dict[str, Json]:
    tokens = step.tokens or TokenUsage()
    took, cost = step.duration_ms, step.cost_usd
    extra = _known(reasoning_tokens=tokens.reasoning, duration_ms=took, error=step.error, evidence=step.evidence)
    sums = _known(prompt_tokens=tokens.input, completion_tokens=tokens.output, cached_tokens=tokens.cached)
    return {**sums, **_known(cost_usd=cost), "extra": extra}


def _known(**values: Json) -> dict[str, Json]:
    """The arguments that are not None."""
    return {name: value for name, value in values.items() if value is not None}
