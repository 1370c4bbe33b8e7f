"""Data of the HTML report: list entries with their filter fields, and the traces and diffs of agents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentv.errors import StoreError
from agentv.model.run.cases import Sample, TrialCluster, cluster_of, key_of_cluster, sample_of
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, Trace, UsageStep, depths_of
from agentv.model.values.trace_summary import Spent, summary_of_trace
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.trial_view import check, cut_words, trial_view
from agentv.reports.text import one_line
from agentv.stats.samples.deciding import Rule, rule_of, stopped_by, verdict_over
from agentv.store.files.traces import artifact
from agentv.store.totals.tally import STATUSES

TEASER = 140
"""Maximum length of a trial's teaser in the list, in characters."""

NAMES = 500
"""Maximum number of assertions with a name; later ones have only a type, to limit memory."""

PASSED, FAILED, ERRORED = range(3)


class TextNumbers(Struct):
    """A table of repeated values, which are referred to by number."""

    numbers: dict[Any, int] = field(default_factory=dict)

    def of(self, value: object) -> int:
        """The number of a value, which is added if it is new."""
        return self.numbers.setdefault(value, len(self.numbers))


class _SampledCase(Struct):
    """The samples of one case so far, and the rule for its verdict."""

    number: int
    rule: Rule
    samples: list[Sample] = field(default_factory=list)


class Entries(Struct):
    """Creates the list entries of one run's trials. Only scores and gates of samples are held in memory.

    Attributes:
        root: absolute path of the repository root, to which shown paths are relative.
        files: (suite, eval file), as two files may have suites of the same name.
        assertions: (type, name) of the assertions so far. The name is None if there are too many.
    """

    root: str = ""
    files: TextNumbers = field(default_factory=TextNumbers)
    targets: TextNumbers = field(default_factory=TextNumbers)
    prompts: TextNumbers = field(default_factory=TextNumbers)
    tags: TextNumbers = field(default_factory=TextNumbers)
    variants: TextNumbers = field(default_factory=TextNumbers)
    assertions: TextNumbers = field(default_factory=TextNumbers)
    clusters: TextNumbers = field(default_factory=TextNumbers)
    _groups: dict[tuple[object, ...], _SampledCase] = field(default_factory=dict)

    @classmethod
    def of_run(cls, record: JsonObject, root: str) -> Entries:
        """Entries whose tables start with the names in `run.json`, so that numbers sort in the order of the file."""
        entries = cls(root)
        for suite in objects_in(record.get("suites")):
            entries.files.of((suite.get("name"), suite.get("path")))
            for table, kind, name in (
                (entries.targets, "targets", "name"),
                (entries.prompts, "prompts", "id"),
                (entries.variants, "variants", "name"),
            ):
                for one in objects_in(suite.get(kind)):
                    table.of(one.get(name))
        return entries

    def short(self, result: TrialResult) -> list[Any]:
        """Fields of a trial for the list and its filters. `browser/data/file_run.js` names their positions."""
        trial, case = result.trial, result.trial.case
        return [
            case.id,
            self.files.of((trial.suite.name, from_root(self.root, trial.suite.path))),
            self.targets.of(trial.target.name),
            -1 if case.prompt_id is None else self.prompts.of(case.prompt_id),
            trial.sample,
            trial.repeat,
            STATUSES.index(result.status),
            result.score,
            trial.threshold,
            round(result.duration_ms, 1),
            result.spent_usd,
            [self.tags.of(tag) for tag in case.tags],
            [number for score in result.scores for number in (self._assertion(score), state(score))],
            teaser(result),
            self._group(result),
            case.sha256[:12],
            self._cluster(trial),
            -1 if trial.variant is None else self.variants.of(trial.variant.name),
            case.position,
        ]

    def tables(self) -> dict[str, Any]:
        """The tables that the entries refer to, and the verdicts of cases with several samples."""
        tables = {"files": self.files, "targets": self.targets, "prompts": self.prompts, "variants": self.variants}
        tables["tags"] = self.tags
        cases = self._groups.values()
        return {
            **{name: list(table.numbers) for name, table in tables.items()},
            "assertions": list(self.assertions.numbers),
            "clusters": [by for by, _ in self.clusters.numbers],
            "verdicts": [STATUSES.index(verdict_over(one.samples, one.rule)) for one in cases],
            "early": [early_facts(one.samples, one.rule) for one in cases],
        }

    def _cluster(self, trial: Trial) -> int:
        """The number of a trial's cluster; −1 if each case is its own cluster."""
        row = TrialCluster.of(trial)
        by = key_of_cluster(row)
        return -1 if by is None else self.clusters.of((by, cluster_of(row)))

    def _assertion(self, score: Score) -> int:
        entry = score.entry
        named = (entry.shown_type, entry.name)
        if named in self.assertions.numbers or len(self.assertions.numbers) < NAMES:
            return self.assertions.of(named)
        return self.assertions.of((entry.shown_type, None))

    def _group(self, result: TrialResult) -> int:
        """The number of a trial's case among those with several samples; -1 for a case with one sample."""
        trial = result.trial
        if trial.repeat == 1:
            return -1
        key = (trial.suite.path, trial.suite.name, trial.case.id, trial.case.prompt_id, trial.target.name)
        key = key if trial.variant is None else (*key, trial.variant.name)  # type: ignore[assignment]  # one element more
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _SampledCase(len(self._groups), rule_of(trial))
        group.samples.append(sample_of(result))
        return group.number


def from_root(root: str, path: str) -> str:
    """A path relative to the repository root, or unchanged if it is outside or `root` is ""."""
    return path.removeprefix(root.rstrip("/") + "/") if root else path


def teaser(result: TrialResult) -> str:
    """Why a trial ended as it did, or the beginning of its answer, in one line."""
    return one_line(" ".join(next(_reasons(result), "").split()), TEASER)


def _reasons(result: TrialResult) -> Iterator[str]:
    if result.error is not None:
        yield f"{result.error.code}: {result.error.message[:TEASER]}"
    if result.status == "failed":
        yield from map(check, trial_view("failed", result).findings[:1])
    cut = cut_words(result)
    if cut is not None:
        yield cut
    yield (result.output or "")[: TEASER + 1].strip()


def state(score: Score) -> int:
    """Status of an assertion, as an index of `STATUSES`."""
    if score.grade.error is not None:
        return ERRORED
    return PASSED if score.grade.passed else FAILED


def early_facts(samples: Sequence[Sample], rule: Rule) -> dict[str, Any] | None:
    """How the sampling of a case ended, and its pass rate without the bias of ending early.

    The reason, bounds and rate are None while sampling goes on. Return None if the case's sampling cannot end early.
    """
    if rule.alpha is None:
        return None
    stopped = stopped_by(samples, rule)
    if stopped is None:
        return {"alpha": rule.alpha, "why": None, "bounds": None, "rate": None}
    from agentv.stats.samples.deciding import unbiased_rate  # few runs need it

    rate = unbiased_rate(stopped, threshold=rule.threshold, alpha=rule.alpha, repeat=rule.repeat)
    bounds = [stopped.low, stopped.high] if stopped.samples else None
    return {"alpha": rule.alpha, "why": stopped.why, "bounds": bounds, "rate": rate}


MOST_STEPS = 2000
"""Maximum number of steps of one trace in a page."""

LONGEST_STEP_TEXT = 10_000
"""Maximum number of characters of one text of a step in a page."""

MOST_TEXT = 2_000_000
"""Maximum number of characters of all steps of one trace in a page."""

DEEPEST_SUBAGENT = 6
"""Maximum indentation of sub-agents, in levels."""


def trace_json(trace: Trace, path: str) -> dict[str, Any]:
    """A trace as data of the page. `path` is the path of its file, as in the row."""
    summary = summary_of_trace(trace, Spent())
    steps: list[dict[str, Any]] = []
    length = 0
    counted = trace.is_counted
    for step, depth in zip(
        trace.steps[:MOST_STEPS], depths_of(trace.steps[:MOST_STEPS], DEEPEST_SUBAGENT), strict=True
    ):
        facts: dict[str, Any] = {"at": step.started_ms, "depth": depth or None, **_step_facts(step)}
        if counted and isinstance(step, UsageStep) and step.evidence == "agent":
            facts["name"] = "the agent reports"
        row = {name: value for name, value in facts.items() if value is not None and value != ""}
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


def _step_facts(step: Step) -> dict[str, Any]:
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
    """A text, truncated with a note if it is too long."""
    if len(text) <= LONGEST_STEP_TEXT:
        return text
    return f"{text[:LONGEST_STEP_TEXT]}\n[the first {LONGEST_STEP_TEXT:,} of {len(text):,} characters]"


MOST_LINES = 5000
"""Maximum number of lines of a diff in a page."""

MOST_BYTES = 1_000_000
"""Maximum size of a diff in a page, in bytes."""


def trace_and_diff(directory: Path, result: TrialResult) -> dict[str, Any]:
    """The trace and diff of a trial as data of the page: `trace`, `diff`, and `work_problem` if a file cannot be read.

    Args:
        directory: directory of the run, to which paths in rows are relative.
        result: the trial.
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
    """The first lines of a diff, their number, and the number of all lines.

    Raises:
        OSError, StoreError: the file cannot be read.
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
