"""The failures of a run by cause, as data of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentv.extensions.view.pages.report import HtmlReport
from agentv.reports.run.failures import FailedTrial, FailureGroup, FailureGroups
from agentv.reports.run.rerun import RerunOptions, group_facts


def failures_json(failures: FailureGroups, report: HtmlReport) -> dict[str, Any]:
    """The object of the element `failures`: `groups`, worst first, and `rerun`, the command for all of them.

    Each group has `status`, `code`, `cause` (one line), `cases` and `trials` (numbers), `suites` and `targets` (names),
    `members` (the first trials: `number` is the position of the trial in the list, from 0), `numbers` (those of all its
    trials), and `rerun`: its `command`, and how many of the group's `cases` that runs; null where no command can.
    """
    return groups_json(failures.groups(), report)


def groups_json(groups: Sequence[FailureGroup], report: HtmlReport) -> dict[str, Any]:
    """As `failures_json`, of groups that were collected before."""
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
    found = {
        "number": trial.number,
        "suite": trial.suite,
        "test_id": trial.test_id,
        "prompt_id": trial.prompt_id,
        "target": trial.target,
        "variant": trial.variant,
        "sample": trial.sample,
    }
    return {name: value for name, value in found.items() if value is not None}
