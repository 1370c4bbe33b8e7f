"""Input of an HTML report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from agentv.model.run.summary import CorrectedRates, Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.activation import measure_words, mistakes, sentence
from agentv.reports.run.corrected import corrected_lines, gate_line, unchecked_words
from agentv.reports.run.failures import FailedTrial, FailureGroup
from agentv.reports.run.matrix import matrix_data
from agentv.reports.run.rerun import RerunOptions, group_facts

TOLD = ("run_id", "started", "agentv", "python", "platform", "git_commit", "planned", "replaced")
"""What the page shows of `run.json`, beside the settings that shaped the run."""

SETTINGS = ("paths", "targets", "judge", "repeat", "threshold", "filter", "tags", "exclude_tags", "limit", "sample")


@dataclass(frozen=True, slots=True)
class HtmlReport:
    """A run, ready to be rendered once.

    Attributes:
        record: the object of `run.json`; keys that are missing are not shown.
        summary: its totals; None of a run that was cut, whose rows are then counted in the page.
        results: its finished trials, each once; read in one pass and not held.
        root: absolute path of the repository root, which files are shown from; empty: paths are shown as they are.
        directory: absolute path of the run; empty: it is one in `.agentv/results`.
        work_of: what the agent of a trial did and changed, as data of the page.
        here: absolute path of the directory that commands are for; empty: the root.
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
            **{key: self.record[key] for key in TOLD if key in self.record},
            "run_id": self.run_id,
            "settings": _chosen(self.record.get("settings"), SETTINGS),
            "suites": [_chosen(one, ("name", "path", "prompts")) for one in objects_in(self.record.get("suites"))],
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


def _chosen(found: Json, keys: Sequence[str]) -> dict[str, Json]:
    return {key: found[key] for key in keys if key in found} if isinstance(found, dict) else {}


def failures_json(groups: Sequence[FailureGroup], report: HtmlReport) -> dict[str, Any]:
    """The object of the element `failures`: `groups`, worst first, and `rerun`, the command for all of them.

    Each group has `status`, `code`, `cause` (one line), `cases` and `trials` (numbers), `suites` and `targets` (names),
    `members` (the first trials: `number` is the position of the trial in the list, from 0), `numbers` (those of all its
    trials), and `rerun`: its `command`, and how many of the group's `cases` that runs; null where no command can.
    """
    here = report.here or report.root
    options = RerunOptions.of(report.record, here=here, root=report.root, directory=report.directory)
    return {
        "groups": [_group(one, options) for one in groups],
        "rerun": options.rerun_all() if groups else None,
    }


def _group(group: FailureGroup, options: RerunOptions) -> dict[str, Any]:
    return {
        **group_facts(group, options.rerun(group)),
        "members": [_member(one) for one in group.members],
        "numbers": sorted(group.numbers),
    }


def _member(trial: FailedTrial) -> dict[str, Any]:
    found = {**structs.asdict(trial), "suite_path": None, "line": None}
    return {name: value for name, value in found.items() if value is not None}
