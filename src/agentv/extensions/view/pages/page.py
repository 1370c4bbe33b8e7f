"""The HTML report: its frame, script and style, and the data of one or two runs, written as they are read.

Text from models, files or servers never becomes part of the markup. It is embedded as JSON in elements that browsers
do not execute, and the page's script shows it as text. The content security policy allows only that script, the
Markdown library and the one style, and loads nothing.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from html import escape
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs, to_builtins

from agentv.app.exports import Exported
from agentv.errors import UsageError
from agentv.extensions.view.pages.entries import Entries, trace_and_diff
from agentv.extensions.view.pages.whole import trial_data
from agentv.model.run.summary import CorrectedRates, Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.activation import measure_words, mistakes, sentence
from agentv.reports.run.failures import FailedTrial, FailureGroup, FailureGroups
from agentv.reports.run.matrix import matrix_data
from agentv.reports.run.rerun import RerunOptions, group_facts
from agentv.reports.run.totals import corrected_lines, gate_line, unchecked_words
from agentv.reports.text import data_element, one_line, to_json
from agentv.web.documents import META

if TYPE_CHECKING:
    from agentv.extensions.view.shown_comparison import ShownComparison


RECORD_KEYS = ("run_id", "started", "agentv", "python", "platform", "git_commit", "planned", "replaced")
"""Keys of `run.json` that the page shows, in addition to settings."""

SETTINGS = ("paths", "targets", "judge", "repeat", "threshold", "filter", "tags", "exclude_tags", "limit", "sample")


class HtmlReport(Struct, frozen=True):
    """A run, which can be rendered once.

    Attributes:
        record: content of `run.json`; missing keys are not shown.
        summary: totals; None for an unfinished run, whose rows the page then counts itself.
        results: finished trials, each once; read in one pass and not held in memory.
        root: absolute path of the repository root, to which shown paths are relative; "" shows paths unchanged.
        directory: absolute path of the run; "" for a run in `.agentv/results`.
        work_of: returns the trace and diff of a trial's agent, as data of the page.
        here: absolute path of the directory that commands are meant for; "" for the root.
    """

    run_id: str
    record: JsonObject
    summary: Summary | None
    results: Iterable[TrialResult]
    root: str = ""
    work_of: Callable[[TrialResult], dict[str, Any]] = lambda _: {}
    here: str = ""
    directory: str = ""

    def facts(self) -> dict[str, Any]:
        """Facts about the run for the page."""
        facts = {
            **{key: self.record[key] for key in RECORD_KEYS if key in self.record},
            "run_id": self.run_id,
            "settings": _subset(self.record.get("settings"), SETTINGS),
            "suites": [_subset(one, ("name", "path", "prompts")) for one in objects_in(self.record.get("suites"))],
            "summary": None,
            "matrix": None,
        }
        if self.summary is None:
            return facts
        summary, matrix = self.summary.as_json(), self.summary.matrix
        facts["summary"] = {key: value for key, value in summary.items() if key != "matrix"}
        facts["matrix"] = None if matrix is None else matrix_data(matrix, summary)
        labels = [{"text": text, "warns": warns} for text, warns in _label_lines(self.summary)]
        return {**facts, "labels": labels} if labels else facts


def _label_lines(summary: Summary) -> Iterator[tuple[str, bool]]:
    rates = corrected_lines(summary.corrected or CorrectedRates())
    yield from ((f"{line[0].upper()}{line[1:]}", False) for line in map(str.strip, rates))
    yield from (
        (f"{line[0].upper()}{line[1:]}", not gate.passed) for gate in summary.gates for line in (gate_line(gate),)
    )
    for one in summary.activation:
        measures = (f"{skill.skill}: {', '.join(measure_words(skill))}" for skill in one.skills)
        yield from ((line, False) for line in (sentence(one), *measures, *mistakes(one)))
    unchecked = unchecked_words(summary.corrected)
    if unchecked and not summary.gates:
        yield f"{unchecked[0].upper()}{unchecked[1:]}.", False


def _subset(found: Json, keys: Sequence[str]) -> dict[str, Json]:
    return {key: found[key] for key in keys if key in found} if isinstance(found, dict) else {}


def failures_json(groups: Sequence[FailureGroup], report: HtmlReport) -> dict[str, Any]:
    """The JSON of the element `failures`: `groups`, worst first, and `rerun`, the command that reruns all of them.

    Each group has `status`, `code`, `cause` (one line), `cases` and `trials` (numbers), `suites` and `targets` (names),
    `members` (its first trials; `number` is the trial's position in the list, from 0), `numbers` (positions of all its
    trials), and `rerun`: its `command` and how many of the group's `cases` that runs, or null if there is no command.
    """
    here = report.here or report.root
    options = RerunOptions.of(report.record, here=here, root=report.root, directory=report.directory)
    shown = []
    for one in groups:
        members = [_member(trial) for trial in one.members]
        facts = group_facts(one, options.rerun(one))
        shown.append({**facts, "members": members, "numbers": sorted(one.numbers)})
    every = options.rerun_all() if groups else None
    return {"groups": shown, "rerun": None if every is None else every.command}


def _member(trial: FailedTrial) -> dict[str, Any]:
    found = {**structs.asdict(trial), "suite_path": None, "line": None}
    return {name: value for name, value in found.items() if value is not None}


CHUNK = 100
"""Maximum number of trials per element. The page parses a whole element to open one of its trials."""

CHUNK_LENGTH = 1_000_000
"""Number of characters after which an element ends early."""

START = "start.js"
"""Entry module of the HTML report."""

ENTRY = "app.js"
"""Entry module of a server's pages."""

BROWSER = Path(__file__).parent / "browser"
"""Directory of the JavaScript modules, the style and the Markdown library."""

_IMPORT = re.compile(r'^import \{[^{}]*\} from "(\.[^"]*)";\n', re.MULTILINE)


def rendered(exported: Exported) -> Iterator[str]:
    """A run, optionally compared with another one, as one HTML file.

    Raises:
        UsageError: the run has no trials to report.
    """
    report, against = _report(exported), exported.against
    if against is None:
        return render(report)
    from agentv.extensions.view.shown_comparison import shown_comparison  # imports statistics

    return render(report, _report(Exported(against)), shown_comparison(against, exported.run))


def _report(exported: Exported) -> HtmlReport:
    """The report of a run.

    Raises:
        UsageError: the run has no trials to report.
    """
    run, totals = exported.run, exported.totals()
    if next(run.results(), None) is None and not totals.is_empty_shard:
        raise UsageError(f"nothing to report: the run {run.run_id} has no such trial")
    here = ""
    with suppress(FileNotFoundError):  # the working directory was deleted
        here = str(Path.cwd())
    work, directory = partial(trace_and_diff, run.path), str(run.path.absolute())
    return HtmlReport(run.run_id, run.record, totals, run.results(), run.root, work, here, directory)


def render(
    report: HtmlReport, against: HtmlReport | None = None, comparison: ShownComparison | None = None
) -> Iterator[str]:
    """The page in pieces. Only one chunk of trials is held in memory.

    Args:
        report: the run; the page of an empty run says that it is empty.
        against: an earlier run; the page then shows what changed, with the answers side by side.
        comparison: the verdict on the two runs.
    """
    title = escape(one_line(f"{report.run_id} · agentv"))
    totals = escape(_noscript_text(report))
    yield _FRAME.format(policy=_policy(), named=META, title=title, style=_style(), totals=totals)
    runs = [report] if against is None else [report, against]
    yield data_element("runs", 0, [to_json([run.facts() for run in runs])])
    if comparison is not None:
        yield data_element("comparison", 0, [to_json(to_builtins(comparison))])
    for number, run in enumerate(runs):
        yield from _data(run, number)
    yield f"<script>{_library()}</script>\n<script>{_script()}</script>\n</body>\n</html>\n"


def _data(report: HtmlReport, number: int) -> Iterator[str]:
    """The data elements of one run: pairs with list fields and full data of trials, then lookup tables and failures."""
    entries = Entries.of_run(report.record, report.root)
    failures = FailureGroups()
    short: list[str] = []
    rest: list[str] = []
    length = 0
    for index, result in enumerate(report.results):
        failures.add(result, index)
        short.append(to_json(entries.short(result)))
        rest.append(to_json({**trial_data(result, report.root), **report.work_of(result)}))
        length += len(rest[-1])
        if len(short) == CHUNK or length > CHUNK_LENGTH:
            yield from _chunk(number, short, rest)
            short, rest, length = [], [], 0
    if short:
        yield from _chunk(number, short, rest)
    yield data_element("tables", number, [to_json(entries.tables())])
    yield data_element("failures", number, [to_json(failures_json(failures.groups(), report))])


def _chunk(number: int, short: Iterable[str], rest: Iterable[str]) -> Iterator[str]:
    yield data_element("short", number, short)
    yield data_element("whole", number, rest)


def _noscript_text(report: HtmlReport) -> str:
    """The text shown when scripts are disabled."""
    if report.summary is None:
        return f"Run {one_line(report.run_id)}."
    cases = report.summary.cases
    counted = ", ".join(f"{getattr(cases, status):,} {status}" for status in ("passed", "failed", "errored", "skipped"))
    counted += f", {cases.shown:,} shown" if cases.shown else ""
    return f"Run {one_line(report.run_id)}: {cases.total:,} cases, {counted}."


@cache
def module_sources() -> Mapping[str, str]:
    """Path within `BROWSER`, such as `run/overview.js` → source of the module."""
    files = (file for file in sorted(BROWSER.rglob("*.js")) if file.parent.name != "vendor")
    return {file.relative_to(BROWSER).as_posix(): file.read_text(encoding="utf-8") for file in files}


def joined(entry: str) -> str:
    """A module joined with all its imports, which come first, as one script without `import` and `export`."""
    sources, bodies = module_sources(), dict[str, str]()

    def take(path: str) -> None:
        if path in bodies:
            return
        for needed in _IMPORT.findall(sources[path]):
            take(normpath(f"{dirname(path)}/{needed}").lstrip("/"))
        bodies[path] = re.sub(r"^export ", "", _IMPORT.sub("", sources[path]), flags=re.MULTILINE).strip("\n")

    take(entry)
    return "\n".join(bodies.values()) + "\n"


@cache
def _script() -> str:
    return f'"use strict";\n(() => {{\n{joined(START)}}})();\n'


@cache
def _library() -> str:
    """The library that parses Markdown to tokens, from which the page creates elements."""
    return (BROWSER / "vendor" / "markdown-it.js").read_text(encoding="utf-8")


@cache
def _style() -> str:
    return "\n" + (BROWSER / "style.css").read_text(encoding="utf-8")


@cache
def _policy() -> str:
    """A content security policy that allows only our two scripts and style, by hash, and no strings as markup.

    Source: https://www.w3.org/TR/CSP3/ and https://www.w3.org/TR/trusted-types/.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(_library())}' '{_digest(_script())}'",
            f"style-src '{_digest(_style())}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode("ascii")


_FRAME = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{named}
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript><p class="plain">{totals} The rest of this page needs JavaScript, which is part of this file.</p></noscript>
<div id="page"><p class="plain">Opening…</p></div>
"""
