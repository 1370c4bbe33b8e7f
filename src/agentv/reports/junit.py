"""A run as JUnit XML, which CI servers show as a table of tests.

It follows Jenkins' schema, `junit-10.xsd` of its xUnit plugin, which pytest uses too; other schemas are less strict.
The schema has no properties of a test, so the details of a trial are in its `system-out`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct, field

from agentv.model.run.summary import TAG, GateResult, Summary
from agentv.model.run.trial import Status, TrialResult
from agentv.model.values.formatting import money, plural
from agentv.reports.run.trial_view import (
    LONGEST,
    Finding,
    TrialView,
    check,
    cut_words,
    label,
    reason,
    source,
    trial_view,
)
from agentv.reports.text import one_line, safe, shown_from

OUTPUT_SHOWN = 10_000
"""Characters shown of an answer, since CI servers hold reports in memory."""

_NO_XML = re.compile("[\ufffe\uffff]")
"""Characters that `safe` keeps but XML 1.0 does not allow."""


CaseKey = tuple[str, str, str, str | None, str, str | None]
"""Name and absolute path of the suite, then id, prompt, target and variant of the case."""


class JUnitRun(Struct, frozen=True):
    """Data of the run as a whole.

    Attributes:
        root: absolute path of the repository, which paths are relative to.
        not_run: number of planned trials without a result.
        gates: gates of the run; a failed trial is no failure if a gate decides instead and passed.
        passed: keys (`case_key`) of cases with several samples that passed; none of their samples is a failure.
        summary: summary of the run if all of its trials are reported; its rates become properties of the suites.
    """

    run_id: str
    root: str
    not_run: int = 0
    gates: tuple[GateResult, ...] = ()
    passed: frozenset[CaseKey] = frozenset()
    summary: Summary | None = None


_NOT_RUN = "the run ended before they ran, or a case that they depend on did not pass"


class _TestSuite(Struct):
    """The test cases of one suite, collected so far."""

    name: str
    path: str
    counts: dict[Status, int] = field(default_factory=lambda: dict.fromkeys(get_args(Status), 0))
    milliseconds: float = 0.0
    began: str = ""
    targets: set[str] = field(default_factory=set)
    cases: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, path: str, root: str) -> _TestSuite:
        return cls(name, shown_from(path, root) if path else "")

    def add_not_run(self, run: JUnitRun) -> None:
        """Add one test that stands for all trials that did not run."""
        attributes = {"name": f"{plural(run.not_run, 'trial')} not run", "classname": one_line(self.name, LONGEST)}
        error = _attributes({"type": "not-run", "message": _NOT_RUN})
        self.counts["errored"] += 1
        self.cases.append(f"<testcase{_attributes(attributes)}><error{error}/></testcase>\n")

    def add_gate(self, gate: GateResult) -> None:
        """Add a test for a gate of the suite."""
        attributes = _attributes({"name": f"gate: {gate.title}", "classname": one_line(self.name, LONGEST)})
        self.counts["passed" if gate.passed else "failed"] += 1
        failure = _attributes({"type": "gate", "message": one_line(gate.why, LONGEST)})
        found = f"<system-out>{_text(gate.why)}</system-out>" if gate.passed else f"<failure{failure}/>"
        self.cases.append(f"<testcase{attributes}>{found}</testcase>\n")

    def add(self, result: TrialResult, run: JUnitRun) -> None:
        excuse = _excuse(result, run) if result.status == "failed" else None
        self.counts[result.status if excuse is None else "skipped"] += 1
        self.milliseconds += result.duration_ms
        self.began = min(self.began or result.timestamp, result.timestamp)
        self.targets.add(result.trial.target.name)
        self.cases.append("".join(_case(result, excuse, run.root)))


def render_junit(results: Iterable[TrialResult], run: JUnitRun) -> Iterator[str]:
    """Pieces of the document: a `testsuite` for every suite, and a `testcase` for every trial and every gate.

    A failed trial has a `failure`, and an errored one an `error`. A trial that is only shown is `skipped`, as is a
    failed trial that does not fail the run. All trials that did not run are represented by one test with an `error`, in
    a suite of its own, so that a run that ended early never looks complete or passed. The tests are held in memory,
    because the counts come first.
    """
    suites: dict[tuple[str, str], _TestSuite] = {}
    for result in results:
        suite = result.trial.suite
        key = (suite.name, suite.path)
        if key not in suites:
            suites[key] = _TestSuite.of(*key, run.root)
        suites[key].add(result, run)
    for gate in run.summary.gates if run.summary is not None else ():
        own = next((suite for suite in suites.values() if suite.name == gate.suite), None)
        (own or suites.setdefault((gate.suite, ""), _TestSuite.of(gate.suite, "", run.root))).add_gate(gate)
    if run.not_run:
        suites["not run", ""] = _TestSuite("not run", "")
        suites["not run", ""].add_not_run(run)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield from _document(list(suites.values()), run)


def _document(suites: list[_TestSuite], run: JUnitRun) -> Iterator[str]:
    total = sum(len(suite.cases) for suite in suites)
    failed, errored = (sum(suite.counts[status] for suite in suites) for status in ("failed", "errored"))
    seconds = _seconds(sum(suite.milliseconds for suite in suites))
    numbers: dict[str, str | int] = {"tests": total, "failures": failed, "errors": errored, "time": seconds}
    yield f"<testsuites{_attributes({'name': 'agentv', **numbers})}>\n"
    names = Counter(suite.name for suite in suites)
    for suite in suites:
        attributes: dict[str, str | int] = {
            "name": suite.name,
            "tests": len(suite.cases),
            "failures": suite.counts["failed"],
            "errors": suite.counts["errored"],
            "skipped": suite.counts["skipped"] + suite.counts["shown"],
            "time": _seconds(suite.milliseconds),
            "timestamp": suite.began.removesuffix("Z"),
            "file": suite.path,
        }
        yield f"<testsuite{_attributes(attributes)}>\n"
        named = {"run_id": run.run_id, "eval_path": suite.path, "target": ", ".join(sorted(suite.targets))}
        properties = {**named, **(_rates(suite.name, run.summary) if names[suite.name] == 1 else {})}
        listed = (
            f"<property{_attributes({'name': name, 'value': value})}/>" for name, value in properties.items() if value
        )
        yield f"<properties>{''.join(listed)}</properties>\n"
        yield from suite.cases
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _rates(name: str, summary: Summary | None) -> dict[str, str]:
    """Rates of the suite in `summary.json`, each as JSON text."""
    group = summary.by_suite.get(name) if summary is not None else None
    if group is None:
        return {}
    keys = ("pass_rate", "judged", "pass_rate_interval", "interval_clusters", "pass_rate_bounds", "rule_pass_rate")
    found = {key: getattr(group, key) for key in (*keys, "rule_pass_rate_interval", "mean_score")}
    return {key: json.dumps(value) for key, value in found.items() if value is not None}


def _excuse(result: TrialResult, run: JUnitRun) -> str | None:
    """Why a failed trial does not fail the run, or None if it does."""
    case, suite = result.trial.case, result.trial.suite
    if case_key(result) in run.passed:
        return "its case passed by its other samples"
    made = TAG in case.tags and {"query", "skill"} <= case.metadata.keys()
    query = made and any(score.entry.type == TAG for score in result.scores)
    decides = ("corrected", TAG) if query else ("corrected",)
    gates = (one for one in run.gates if one.passed and one.suite == suite.name and one.gate in decides)
    return next((f"the gate '{one.title}' decides instead, and passed" for one in gates), None)


def case_key(result: TrialResult) -> CaseKey:
    """Key of a case on its target."""
    trial, case = result.trial, result.trial.case
    return trial.suite.name, trial.suite.path, case.id, case.prompt_id, trial.target.name, trial.variant_name


def _case(result: TrialResult, excuse: str | None, root: str) -> Iterator[str]:
    kind = result.status if result.status != "passed" else "noted"
    view = trial_view(kind, result)
    attributes = {
        "name": label(view, targets=True),
        "classname": one_line(view.suite, LONGEST),
        "time": _seconds(result.duration_ms),
    }
    yield f"<testcase{_attributes(attributes)}>"
    if result.status != "passed":
        yield _outcome(view, excuse, root)
    yield f"<system-out>{_text(_facts(result))}</system-out></testcase>\n"


_ELEMENTS: dict[Status, str] = {"failed": "failure", "errored": "error", "skipped": "skipped", "shown": "skipped"}


def _outcome(view: TrialView, excuse: str | None, root: str) -> str:
    element, why = _ELEMENTS[view.status], reason(view)
    if excuse is not None:
        element, why = "skipped", f"failed: {why}; {excuse}"
    kind = view.error.code if view.error is not None else _kinds(view.findings)
    lines = [why, *(line for finding in view.findings for line in _finding(finding, root))]
    return f"<{element}{_attributes({'type': kind, 'message': why})}>{_text(chr(10).join(lines))}</{element}>"


def _kinds(findings: tuple[Finding, ...]) -> str:
    """Types of the assertions that did not pass."""
    found = (one_line(finding.type, LONGEST) for finding in findings if finding.state != "noted")
    return ", ".join(dict.fromkeys(found)) or "threshold"


def _finding(finding: Finding, root: str) -> Iterator[str]:
    place = source(finding, root)
    yield f"{place}: {finding.state}: {check(finding)}" if place else f"{finding.state}: {check(finding)}"
    if finding.evidence:
        yield f"  {one_line(finding.evidence, LONGEST)}"


def _facts(result: TrialResult) -> str:
    """Facts about a trial, one per line, then its answer."""
    trial, usage = result.trial, result.token_usage
    values = {
        "target": trial.target.name,
        "variant": trial.variant_name,
        "sandbox": result.stored.sandbox if result.stored is not None else None,
        "diff": result.stored.diff_path if result.stored is not None else None,
        "workspace": result.stored.workspace_path if result.stored is not None else None,
        "score": None if result.score is None else f"{result.score:.4g} (needs {trial.threshold:.4g})",
        "note": cut_words(result),
        "cost": None if result.cost_usd is None else money(result.cost_usd),
        "tokens": None if usage is None or usage.total is None else f"{usage.total:,}",
        "tags": ", ".join(trial.case.tags) or None,
    }
    facts = [f"{name}: {one_line(value, LONGEST)}" for name, value in values.items() if value is not None]
    return "\n".join([*facts, *_answer(result.output)])


def _answer(output: str | None) -> Iterator[str]:
    if output is not None:
        yield "answer:"
        yield output[:OUTPUT_SHOWN]
        if len(output) > OUTPUT_SHOWN:
            yield f"[{len(output) - OUTPUT_SHOWN:,} characters more]"


def _seconds(milliseconds: float) -> str:
    """Seconds with three decimal places, as the schema requires."""
    return f"{max(milliseconds, 0.0) / 1000:.3f}"


def _attributes(values: Mapping[str, str | int]) -> str:
    """The attributes that are not empty, as XML."""
    return "".join(f" {name}={quoteattr(_legal(str(value)))}" for name, value in values.items() if value != "")


def _text(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """The text with invisible characters, and those that XML 1.0 does not allow, as escape sequences."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", safe(text))
