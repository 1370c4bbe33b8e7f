"""Reports of a run as JSON: one object for programs (`--json`), and a document with every row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

from agentv.model.run.summary import Summary
from agentv.model.run.trial import SCHEMA_VERSION
from agentv.model.values.values import Json, JsonObject
from agentv.reports.run.failures import FailureGroup
from agentv.reports.run.rerun import group_facts
from agentv.reports.run.trial_view import Finding, Kind, TrialView
from agentv.reports.run.view import RunView
from agentv.reports.text import shown_from


def run_data(
    view: RunView, summary: Summary, *, here: str, results: str, exams: Sequence[Json] | None = None
) -> dict[str, Json]:
    """The keys of `summary.json`, then `results` (the run's directory), `not_passed` and `passed_with_failed_checks`.

    `failure_groups` holds the trials that did not pass by cause, worst first, as `results.md` describes it.

    The last two list trials with the keys of a row, and in `findings` every check that did not pass; `omitted` says
    how many more there are in `index.jsonl`, and `stopped`, where there is something to say, why targets were stopped
    and how many trials were not run for it. `exams`, where prompts were examined, holds an object for each.
    """
    return {
        **summary.as_json(),
        "results": results,
        "failure_groups": [_group(group, view) for group in view.failure_groups()],
        "not_passed": [_trial(trial, here) for kind in _NOT_PASSED for trial in view.trials(kind)],
        "shown": [_trial(trial, here) for trial in view.trials("shown")],
        "passed_with_failed_checks": [_trial(trial, here) for trial in view.trials("noted")],
        "omitted": sum(view.omitted(kind) for kind in get_args(Kind)),
        **({"stopped": dict(view.stopped)} if view.stopped else {}),
        **({"exams": list(exams)} if exams is not None else {}),
    }


_NOT_PASSED: tuple[Kind, ...] = ("failed", "errored", "skipped")


def _group(group: FailureGroup, view: RunView) -> Json:
    rerun = view.rerun.rerun(group) if view.rerun is not None else None
    return {**group_facts(group, rerun), "test_ids": list(dict.fromkeys(member.test_id for member in group.members))}


def _trial(trial: TrialView, here: str) -> Json:
    path, line = trial.place
    failure = trial.error
    error: Json = None
    if failure is not None:
        error = {"code": failure.code, "message": failure.message, "retryable": failure.retryable}
    return {
        "test_id": trial.test_id,
        "suite": trial.suite,
        "eval_path": shown_from(path, here) if path else None,
        "line": line or None,
        "target": trial.target,
        "prompt_id": trial.prompt_id,
        **({} if trial.variant is None else {"variant": trial.variant}),
        "sample": trial.sample,
        "status": trial.status,
        "score": trial.score,
        "threshold": trial.threshold,
        "output": trial.output,
        "error": error,
        "findings": [_finding(finding, here) for finding in trial.findings],
    }


def _finding(finding: Finding, here: str) -> Json:
    source = f"{shown_from(finding.source[0], here)}:{finding.source[1]}" if finding.source else None
    return {
        "state": finding.state,
        "name": finding.name,
        "type": finding.type,
        "required": finding.required,
        "text": finding.text,
        "evidence": finding.evidence,
        "source": source,
    }


def render_document(
    record: JsonObject, summary: JsonObject, rows: Iterable[str], ratings: Sequence[JsonObject] = ()
) -> Iterator[str]:
    """The document piece by piece: `schema_version`, `run`, `summary`, `rows`, each on a line of its own, `ratings`.

    Args:
        record: the object of `run.json`.
        summary: that of `summary.json`.
        rows: JSON text of each row, which is taken as it is.
        ratings: what people think of answers; without any the key is left out.
    """
    yield f'{{\n"schema_version": {SCHEMA_VERSION},\n'
    yield f'"run": {json.dumps(record)},\n"summary": {json.dumps(summary)},\n"rows": ['
    for number, row in enumerate(rows):
        yield f"{',' if number else ''}\n{row}"
    yield f'\n],\n"ratings": {json.dumps(ratings)}\n}}\n' if ratings else "\n]\n}\n"
