"""Diagnostics for CI: failures of a run, placed at their assertions, and any diagnostics as SARIF 2.1.0.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

from msgspec.structs import replace

from agentv.errors import Diagnostic, Severity
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json, Span
from agentv.reports.diagnostics import Explanation, full_text, render_explanation, render_markdown
from agentv.reports.run.failures import CASE_FAILED, FailureGroup
from agentv.reports.run.trial_view import LONGEST, Finding, Kind, TrialView, check, label, reason
from agentv.reports.run.view import FailureWords, RunView
from agentv.reports.text import one_line, safe

SHOWN = 50
"""Trials that a SARIF log lists one by one."""

CAUSES = 10
"""Causes that are annotated: GitHub shows ten errors per step."""

CUT_ANSWER = "cut-answer"
"""Code of an answer that passed but was cut at its token limit. It is no error in a file, so it is not catalogued."""

_KINDS: tuple[Kind, Kind] = ("errored", "failed")
_SEVERITY: dict[bool, Severity] = {True: "hint", False: "error"}


def cause_diagnostics(view: RunView, *, passed: bool = False) -> list[Diagnostic]:
    """An error for each of the first `CAUSES` causes, at its first trial's assertion, and a warning for cut answers.

    The causes are hints if the run passed because of a gate or of other samples.
    """
    words = FailureWords.of(view)
    causes = [replace(_of_cause(group, words), severity=_SEVERITY[passed]) for group in ran_groups(view)[:CAUSES]]
    cut = [trial for trial in view.trials("noted") if trial.cut is not None]
    if not cut:
        return causes
    first = _of_cut(cut[0], targets=view.several_targets)
    notes = (f"{plural(len(cut) - 1, 'more answer')} cut at the token limit",) if len(cut) > 1 else ()
    return [*causes, replace(first, notes=notes)]


def ran_groups(view: RunView) -> list[FailureGroup]:
    """The groups of failures and errors, without those of trials that did not run."""
    return [group for group in view.failure_groups() if group.status != "skipped"]


def _of_cause(group: FailureGroup, words: FailureWords) -> Diagnostic:
    trial = group.example
    failed = next((one for one in trial.findings if one.source is not None and one.state != "noted"), None)
    place = failed.source if failed is not None else trial.place if trial.place[1] else None
    notes = (words.first(group), words.others(group), *(_notes(failed) if failed is not None else ()))
    message = one_line(f"{words.title(group)}: {words.why(group)}")
    return Diagnostic(group.code, message, _start_of(place), notes=tuple(note for note in notes if note))


def run_diagnostics(view: RunView, *, passed: bool = False) -> list[Diagnostic]:
    """Errors for the first `SHOWN` trials that did not pass, errored ones first, and warnings for cut answers.

    The errors are hints if the run passed because of a gate or of other samples.
    """
    trials = [trial for kind in _KINDS for trial in view.trials(kind)][:SHOWN]
    targets = view.several_targets
    cut = [trial for trial in view.trials("noted") if trial.cut is not None][: SHOWN - len(trials)]
    return [
        *(replace(one, severity=_SEVERITY[passed]) for trial in trials for one in _of_trial(trial, targets=targets)),
        *(_of_cut(trial, targets=targets) for trial in cut),
    ]


def _of_cut(trial: TrialView, *, targets: bool) -> Diagnostic:
    message = one_line(f"{label(trial, targets=targets)}: {reason(trial)}")
    return Diagnostic(CUT_ANSWER, message, _start_of(trial.place if trial.place[1] else None), "warning")


def _of_trial(trial: TrialView, *, targets: bool) -> Iterator[Diagnostic]:
    message = f"{label(trial, targets=targets)}: {reason(trial)}"
    code = trial.error.code if trial.error is not None else CASE_FAILED
    place = trial.place if trial.place[1] else None
    failed = [one for one in trial.findings if one.source is not None and one.state != "noted"]
    noted = tuple(f"noted: {check(one)}" for one in trial.findings if one.state == "noted")
    if not failed:
        yield Diagnostic(code, one_line(message), _start_of(place), notes=noted)
    for one in failed:
        yield Diagnostic(code, one_line(message), _start_of(one.source), notes=_notes(one))


def _notes(finding: Finding) -> tuple[str, ...]:
    evidence = (one_line(finding.evidence, LONGEST),) if finding.evidence else ()
    return (f"{finding.state}: {check(finding)}", *evidence)


def _start_of(place: tuple[str, int] | None) -> Span | None:
    """The start of the line, since a finding has no column."""
    return Span(place[0], place[1], 1, place[1], 1) if place is not None else None


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
"""Base id of relative URIs, by the name that SARIF readers know."""

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "hint": "note"}


def render_sarif(found: Sequence[Diagnostic], rules: Mapping[str, Explanation], *, root: str, version: str) -> str:
    """A SARIF log with a single run.

    Args:
        found: diagnostics in any order.
        rules: code → explanation, for the codes that have one.
        root: absolute path of the repository; files in it get relative URIs.
        version: version of agentv.
    """
    ordered = sorted(found, key=lambda one: one.order)
    codes = list(dict.fromkeys(one.code for one in ordered))
    run: dict[str, Json] = {
        "tool": {"driver": {"name": "agentv", "version": version, "rules": [_rule(code, rules) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(one, codes.index(one.code), root) for one in ordered],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str, rules: Mapping[str, Explanation]) -> dict[str, Json]:
    one = rules.get(code)
    if one is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": one.meaning},
        "help": {"text": render_explanation(one), "markdown": render_markdown(one)},
    }


def _result(found: Diagnostic, rule: int, root: str) -> dict[str, Json]:
    result: dict[str, Json] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": _LEVELS[found.severity],
        "message": {"text": safe(full_text(found))},
    }
    if found.span is not None:
        region: dict[str, Json] = {
            "startLine": found.span.line,
            "startColumn": found.span.column,
            "endLine": found.span.end_line,
            "endColumn": found.span.end_column,  # exclusive in SARIF too
        }
        place: Json = {"artifactLocation": _address(found.span.file, root), "region": region}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _address(path: str, root: str) -> dict[str, Json]:
    """The location of a file: a relative URI inside the repository, otherwise an absolute one."""
    inside = PurePosixPath(path)
    if inside.is_relative_to(root):
        return {"uri": quote(os.fsencode(str(inside.relative_to(root)))), "uriBaseId": ROOT}
    return {"uri": f"file://{quote(os.fsencode(path))}"}
