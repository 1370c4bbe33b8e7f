"""A run as JSON: the object of `--json`, and a document with every row."""

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
    """The object of `--json`: the keys of `summary.json`, then those described here and in `results.md`.

    `results` is the run's directory. `failure_groups` has the trials that did not pass by cause, worst first.
    `not_passed`, `shown` and `passed_with_failed_checks` list trials with keys of a row, and in `findings` every check
    that did not pass. `omitted` is the number of further trials in `index.jsonl`. `stopped`, if present, maps the
    reason why a target was stopped to the number of trials that did not run. `exams` has an object for each exam.
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
    """Pieces of the document with the keys `schema_version`, `run`, `summary`, `rows` (one per line) and `ratings`.

    Args:
        record: the object of `run.json`.
        summary: the object of `summary.json`.
        rows: JSON text of each row, written unchanged.
        ratings: people's ratings of answers; the key is omitted if none exist.
    """
    yield f'{{\n"schema_version": {SCHEMA_VERSION},\n'
    yield f'"run": {json.dumps(record)},\n"summary": {json.dumps(summary)},\n"rows": ['
    for number, row in enumerate(rows):
        yield f"{',' if number else ''}\n{row}"
    yield f'\n],\n"ratings": {json.dumps(ratings)}\n}}\n' if ratings else "\n]\n}\n"
