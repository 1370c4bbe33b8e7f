"""What an agent did and changed, as the page of its trial shows it: a timeline and a diff, both bounded."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

from agentv.errors import StoreError
from agentv.model.run.trial import TrialResult
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, Trace, UsageStep, depths_of
from agentv.model.values.trace_summary import Spent, summary_of_trace
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json
from agentv.store.files.traces import artifact

MOST_STEPS = 2000
"""Steps of one trace that a page holds."""

LONGEST = 10_000
"""Characters of one text of a step that a page holds."""

MOST_TEXT = 2_000_000
"""Characters of the steps of one trace that a page holds."""

DEEPEST = 6
"""Levels of sub-agents that are indented."""


def trace_json(trace: Trace, path: str) -> dict[str, Any]:
    """A trace as data of the page. Its file is at `path`, as the row names it."""
    summary = summary_of_trace(trace, Spent())
    steps: list[dict[str, Any]] = []
    length = 0
    counted = trace.is_counted
    for step, depth in zip(trace.steps[:MOST_STEPS], depths_of(trace.steps[:MOST_STEPS], DEEPEST), strict=True):
        row = _step(step, depth, counted=counted)
        length += sum(len(value) for value in row.values() if isinstance(value, str))
        if length > MOST_TEXT:
            break
        steps.append(row)
    usage = summary.token_usage
    return {
        "path": path,
        "agent": " ".join(filter(None, [trace.agent, trace.agent_version])),
        "source": trace.source,
        "partial": trace.partial,
        "stop_reason": trace.stop_reason,
        "calls": summary.tool_calls,
        "errors": summary.error_count,
        "tokens": None if usage is None else tokens_json(usage),
        "cost_usd": summary.cost_usd,
        "duration_ms": summary.duration_ms,
        "steps": steps,
        "total": len(trace.steps),
    }


def _step(step: Step, depth: int, *, counted: bool) -> dict[str, Any]:
    """One step. `counted`: the gateway counted the model calls; what the agent says of them is only a report."""
    facts: dict[str, Any] = {"at": step.started_ms, "depth": depth or None, **_own(step)}
    if counted and isinstance(step, UsageStep) and step.evidence == "agent":
        facts["name"] = "the agent reports"
    return {name: value for name, value in facts.items() if value is not None and value != ""}


def _own(step: Step) -> dict[str, Any]:
    if isinstance(step, MessageStep):
        return {"kind": "message", "role": step.role, "text": _cut(step.text), "reasoning": _cut(step.reasoning or "")}
    if isinstance(step, PermissionStep):
        return {
            "kind": "permission",
            "name": _cut(step.tool),
            "failed": None if step.allowed else 1,
            "text": _cut(step.reason or ""),
        }
    if isinstance(step, ToolCallStep):
        return {
            "kind": "tool",
            "name": _cut(step.name),
            "native": _cut(step.native_name) if step.native_name != step.name else "",
            "status": step.status,
            "failed": 1 if step.failed or step.status == "denied" else None,
            "took": step.duration_ms,
            "arguments": _cut(_text(step.arguments)) if step.arguments else "",
            "result": _cut(_text(step.result)),
            "error": _cut(step.error or ""),
            "evidence": step.evidence if step.evidence != "agent" else "",
        }
    return {
        "kind": "model",
        "name": _cut(step.model or ""),
        "took": step.duration_ms,
        "tokens": None if step.tokens is None else tokens_json(step.tokens),
        "cost_usd": step.cost_usd,
        "failed": None if step.error is None else 1,
        "error": _cut(step.error or ""),
    }


def tokens_json(usage: TokenUsage) -> dict[str, int]:
    """Token counts as data of the page."""
    counts = {"input": usage.input, "output": usage.output, "total": usage.total}
    more = {"cached": usage.cached, "reasoning": usage.reasoning}
    return {name: value for name, value in {**counts, **more}.items() if value is not None}


def _text(value: Json) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _cut(text: str) -> str:
    """The beginning of a long text, which says how long it was."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n[the first {LONGEST:,} of {len(text):,} characters]"


MOST_LINES = 5000
"""Lines of a diff that a page holds."""

MOST_BYTES = 1_000_000
"""Bytes of a diff that a page holds."""


def shown_work(directory: Path, result: TrialResult) -> dict[str, Any]:
    """What is known of the work of a trial, as data of the page: `trace`, `diff`, and why a file cannot be read.

    Args:
        directory: of the run, which the paths in rows count from.
        result: of the trial.
    """
    stored = result.stored
    if stored is None or (stored.trace_path is None and stored.diff_path is None):
        return {}
    from agentv.store.files.traces import read

    facts: dict[str, Any] = {}
    problems = []
    if stored.trace_path is not None:
        path = artifact(directory, stored.trace_path)
        trace = read(path) if isinstance(path, Path) else path
        if isinstance(trace, Failure):
            problems.append(f"{stored.trace_path}: {trace.message}")
        else:
            facts["trace"] = trace_json(trace, stored.trace_path)
    if stored.diff_path is not None:
        try:
            facts["diff"] = _diff(directory, stored.diff_path)
        except (OSError, StoreError) as error:
            problems.append(f"{stored.diff_path}: {error}")
    return {**facts, "work_problem": "; ".join(problems)} if problems else facts


def _diff(directory: Path, named: str) -> dict[str, Any]:
    """The first lines of a diff, how many they are, and how many it has; a line that is too long ends it.

    Raises:
        OSError, StoreError: it cannot be read.
    """
    path = artifact(directory, named)
    if isinstance(path, Failure):
        raise StoreError(path.message)
    kept: list[bytes] = []
    size = 0
    with path.open("rb") as file:
        for line in islice(iter(lambda: file.readline(MOST_BYTES), b""), MOST_LINES):
            size += len(line)
            if size > MOST_BYTES:
                break
            kept.append(line)
        file.seek(0)
        total = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
    text = b"".join(kept).decode("utf-8", "replace")
    return {"text": text, "lines": len(kept), "total": max(total, len(kept)), "path": named}
