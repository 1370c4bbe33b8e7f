"""Words of failures grouped by cause, shared by all views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.model.run.summary import Summary
from agentv.model.values.formatting import plural
from agentv.reports.run.failures import FailedTrial, FailureGroup, FailureStatus
from agentv.reports.run.trial_view import LONGEST
from agentv.reports.run.view import RunView
from agentv.reports.text.escaping import one_line

if TYPE_CHECKING:
    from agentv.reports.run.rerun import Rerun

SHOWN = 20
"""Causes that a terminal shows, and trials of other kinds."""

NAMED = 5
"""Cases of one group that are named."""

STATUS: Mapping[FailureStatus, str] = {"failed": "failed", "errored": "errored", "skipped": "not run"}

HEADING = "Failures by cause"


class FailureWords(Struct, frozen=True):
    """How a run names its cases: by what else is needed to tell them apart.

    Attributes:
        targets: several targets ran.
        suites: several suites ran.
    """

    targets: bool = False
    suites: bool = False

    @classmethod
    def of(cls, view: RunView) -> FailureWords:
        """The words of a run."""
        return cls(view.several_targets, view.several_suites)

    def title(self, group: FailureGroup) -> str:
        """`72 cases`, `1 case (5 trials)`; of one trial its label."""
        from agentv.reports.run.formatting import label

        if group.trials == 1:
            return label(group.example, targets=self.targets, suites=self.suites)
        return f"{plural(group.cases, 'case', ',')}{_trials(group)}"

    def why(self, group: FailureGroup) -> str:
        """`errored: timeout: no answer after 3 s`: of one trial with its score."""
        from agentv.reports.run.formatting import reason

        if group.trials == 1:
            return f"{STATUS[group.status]}: {reason(group.example)}"
        return f"{STATUS[group.status]}: {one_line(group.cause, LONGEST)}"

    def first(self, group: FailureGroup) -> str:
        """`first: window-closed: score 0.40, needs 0.80`; empty for one trial, whose title says it."""
        from agentv.reports.run.formatting import label, reason

        if group.trials == 1:
            return ""
        why = "" if group.status != "failed" else f": {reason(group.example)}"
        return f"first: {label(group.example, targets=self.targets, suites=self.suites)}{why}"

    def others(self, group: FailureGroup) -> str:
        """`also: a, b, c and 67 more cases`; empty if all trials are of one case."""
        example = group.example
        names = dict.fromkeys(self._name(one) for one in group.members)
        names.pop(self._name_of(example.suite, example.test_id), None)
        named = list(names)[:NAMED]
        if not named:
            return ""
        more = group.cases - 1 - len(named)
        return f"also: {', '.join(named)}" + (f" and {plural(more, 'more case', ',')}" if more > 0 else "")

    def _name(self, trial: FailedTrial) -> str:
        return self._name_of(trial.suite, trial.test_id)

    def _name_of(self, suite: str, test_id: str) -> str:
        name = one_line(test_id, LONGEST)
        return f"{one_line(suite, LONGEST)}: {name}" if self.suites else name


def _trials(group: FailureGroup) -> str:
    return "" if group.trials == group.cases else f" ({plural(group.trials, 'trial', ',')})"


def rerun_line(rerun: Rerun, group: FailureGroup) -> str:
    """`run again: agentv eval …`."""
    which = "run again" if rerun.cases == group.cases else "run one again" if rerun.cases == 1 else "run some again"
    return f"{which}: {rerun.command}"


def closing_lines(view: RunView, groups: list[FailureGroup], summary: Summary, results: str) -> Iterator[str]:
    """How many causes are not shown and the command that shows every trial; then the one that runs all again."""
    left = groups[SHOWN:]
    trials = sum(group.trials for group in groups)
    if trials > min(len(groups), SHOWN):
        more = f"{plural(len(left), 'more cause', ',')}; " if left else ""
        yield f"{more}all {plural(trials, 'trial', ',')}: {_show_command(groups, trials, summary, results)}"
    again = view.rerun.rerun_all() if view.rerun is not None else None
    own = view.rerun.rerun(groups[0]) if view.rerun is not None and len(groups) == 1 else None
    if again is not None and groups and (own is None or own.cases < groups[0].cases):
        yield f"run all of them again: {again}"


def _show_command(groups: list[FailureGroup], trials: int, summary: Summary, results: str) -> str:
    flags = {"failed": "--failed", "errored": "--errored", "skipped": "--skipped"}
    chosen = [flag for status, flag in flags.items() if any(group.status == status for group in groups)]
    return " ".join(["agentv results show", run_word(summary, results), *chosen, f"--limit {trials}"])


def run_word(summary: Summary, results: str) -> str:
    """How a command names the run: by its id where the runs of the repository are, else by its directory."""
    import shlex

    return summary.run_id if results.endswith(f".agentv/results/{summary.run_id}") else shlex.quote(one_line(results))
