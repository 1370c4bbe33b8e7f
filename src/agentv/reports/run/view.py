"""View model of a run: counts, cost, and the trials that need attention, without formatting.

Only a bounded number of trials is kept: those that did not pass, or passed with a failed check or a cut answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.run.cases import Sample, sample_of
from agentv.model.run.events import AgentProgress, RunProgress
from agentv.model.run.summary import NOT_DRAWN, Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.formatting import plural
from agentv.model.values.usage import total_cost
from agentv.reports.run.failures import FailureGroup, FailureGroups, FailureStatus
from agentv.reports.run.trial_view import (
    LONGEST,
    Kind,
    PassedCase,
    TrialView,
    has_failed_check,
    label,
    needs_look,
    place_of,
    reason,
    trial_view,
)
from agentv.reports.text import one_line

if TYPE_CHECKING:
    from agentv.reports.run.rerun import Rerun, RerunOptions
    from agentv.stats.samples.deciding import Rule


KEPT = 1000
"""Trials of one kind that are kept; the others are only counted."""


class _Samples(Struct):
    """The finished samples of one case on one target."""

    rule: Rule
    ended: list[Sample] = field(default_factory=list)

    def add(self, result: TrialResult) -> None:
        self.ended.append(sample_of(result))

    def passed(self) -> PassedCase | None:
        """The case if it has passed, else None."""
        from agentv.stats.samples.deciding import verdict_over

        if verdict_over(self.ended, self.rule) != "passed":
            return None
        early = None if self.rule.alpha is None else len(self.ended)
        return PassedCase(sum(one.status == "passed" for one in self.ended), self.rule.aggregate, early)


class WorkingAgents(Protocol):
    """The running agents, in the order in which they started."""

    def take(self, progress: AgentProgress) -> None:
        """Record the progress of an agent."""
        ...

    def __len__(self) -> int:
        """Number of running agents."""
        ...

    def lines(self, width: int, most: int) -> list[str]:
        """At most `most` lines of at most `width` columns that describe the agents."""
        ...

    def log_line(self) -> str:
        """A line for a log that describes the first agents."""
        ...


class RunView(Struct):
    """A run in progress. `add` adds one finished trial.

    Attributes:
        planned: number of planned trials, reduced when sampling of a case ends early.
        passed, failed, errored: numbers of trials with this status.
        skipped: number of trials that were skipped because of other trials.
        noted: number of passed trials with a failed check.
        shown: number of trials that were answered but not checked.
        earlier: number of trials that an interrupted run had finished before it was resumed.
        stopped: reason why targets were stopped → number of trials skipped for it; these are only counted.
        cost_usd: US dollars spent so far, or None if no call has reported a cost.
        agents: the running agents, or None if the run has no agents.
        progress: latest progress report of the run, or None if none exists yet.
        rerun: options for rerun commands, or None if no command can rerun the cases.
    """

    planned: int
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    noted: int = 0
    shown: int = 0
    earlier: int = 0
    stopped: dict[str, int] = field(default_factory=dict)
    cost_usd: float | None = None
    agents: WorkingAgents | None = None
    progress: RunProgress | None = None
    rerun: RerunOptions | None = None
    _kept: dict[Kind, list[TrialView]] = field(default_factory=lambda: {kind: [] for kind in get_args(Kind)})
    _listed: int = 0
    _targets: set[str] = field(default_factory=set)
    _suites: set[tuple[str, str]] = field(default_factory=set)
    _samples: dict[tuple[object, ...], _Samples] = field(default_factory=dict)
    _failures: FailureGroups = field(default_factory=FailureGroups)

    @property
    def done(self) -> int:
        """Number of trials that ended or were skipped."""
        return self.passed + self.failed + self.errored + self.skipped + self.shown

    def left_s(self, elapsed_s: float) -> float | None:
        """Estimated seconds for the remaining trials, or None if none has ended or none remains."""
        here = self.done - self.earlier
        return elapsed_s / here * (self.planned - self.done) if here and self.done < self.planned else None

    @property
    def several_targets(self) -> bool:
        """Whether a trial's label needs its target."""
        return len(self._targets) > 1

    @property
    def several_suites(self) -> bool:
        """Whether a trial's label needs its suite."""
        return len(self._suites) > 1

    def add(self, result: TrialResult) -> None:
        """Add a finished or skipped trial."""
        self._targets.add(result.trial.target.name)
        self._suites.add((result.trial.suite.path, result.trial.suite.name))
        if result.status != "passed":
            self._failures.add(result)
        if result.trial.repeat > 1:
            from agentv.stats.samples.deciding import rule_of

            trial = result.trial
            key = (place_of(trial), trial.case.id, trial.case.prompt_id, trial.target.name, trial.variant_name)
            samples = self._samples.setdefault(key, _Samples(rule_of(trial)))
            samples.add(result)
            if result.stopped is not None:
                self.planned -= max(0, trial.repeat - len(samples.ended))
        self.cost_usd = total_cost(self.cost_usd, result.spent_usd)
        if result.status == "passed":
            self.passed += 1
            if needs_look(result):
                self.noted += has_failed_check(result)
                self._listed += 1
                self._keep("noted", result)
        elif result.status == "failed":
            self.failed += 1
            self._keep("failed", result)
        elif result.status == "errored":
            self.errored += 1
            self._keep("errored", result)
        elif result.status == "shown":
            self.shown += 1
            self._keep("shown", result)
        else:
            self.skipped += 1
            if result.error is not None and result.error.code.endswith(("target-stopped", NOT_DRAWN)):
                why = result.error.message
                self.stopped[why] = self.stopped.get(why, 0) + 1
            else:
                self._keep("skipped", result)

    def add_earlier(self, result: TrialResult) -> None:
        """Add a trial that finished before the run was resumed; it is not used to estimate the time left."""
        self.add(result)
        self.earlier += 1

    def trials(self, kind: Kind) -> list[TrialView]:
        """The kept trials of a kind, in file order."""
        found = sorted(
            self._kept[kind],
            key=lambda one: (one.place, one.test_id, one.prompt_id or "", one.target, one.variant or "", one.sample),
        )
        return [self._with_case(one) if one.repeat > 1 else one for one in found]

    def _with_case(self, one: TrialView) -> TrialView:
        return replace(one, case=self._samples[one.place, one.test_id, one.prompt_id, one.target, one.variant].passed())

    def failure_groups(self) -> list[FailureGroup]:
        """The trials that did not pass, grouped by cause, worst first."""
        return [
            replace(group, example=self._with_case(group.example)) if group.example.repeat > 1 else group
            for group in self._failures.groups()
        ]

    def omitted(self, kind: Kind) -> int:
        """Number of trials of a kind that are not kept."""
        counted: dict[Kind, int] = {
            "failed": self.failed,
            "errored": self.errored,
            "skipped": self.skipped - sum(self.stopped.values()),
            "noted": self._listed,
            "shown": self.shown,
        }
        return counted[kind] - len(self._kept[kind])

    def _keep(self, kind: Kind, result: TrialResult) -> None:
        if len(self._kept[kind]) < KEPT:
            self._kept[kind].append(trial_view(kind, result))


SHOWN = 20
"""Causes, and trials of each other kind, that a terminal shows."""

NAMED = 5
"""Cases of a group that are named."""

STATUS: Mapping[FailureStatus, str] = {"failed": "failed", "errored": "errored", "skipped": "not run"}

HEADING = "Failures by cause"


class FailureWords(Struct, frozen=True):
    """Text for groups of failures, with the parts of labels that are needed to distinguish the cases of a run.

    Attributes:
        targets: whether several targets ran.
        suites: whether several suites ran.
    """

    targets: bool = False
    suites: bool = False

    @classmethod
    def of(cls, view: RunView) -> FailureWords:
        """Create the text for a run."""
        return cls(view.several_targets, view.several_suites)

    def title(self, group: FailureGroup) -> str:
        """`72 cases`, `1 case (5 trials)`, or the label of a single trial."""
        if group.trials == 1:
            return label(group.example, targets=self.targets, suites=self.suites)
        trials = "" if group.trials == group.cases else f" ({plural(group.trials, 'trial', ',')})"
        return f"{plural(group.cases, 'case', ',')}{trials}"

    def why(self, group: FailureGroup) -> str:
        """`errored: timeout: no answer after 3 s`; for a single trial, its own reason."""
        if group.trials == 1:
            return f"{STATUS[group.status]}: {reason(group.example)}"
        return f"{STATUS[group.status]}: {one_line(group.cause, LONGEST)}"

    def first(self, group: FailureGroup) -> str:
        """`first: window-closed: score 0.40, needs 0.80`; empty for a single trial, which the title names."""
        if group.trials == 1:
            return ""
        why = "" if group.status != "failed" else f": {reason(group.example)}"
        return f"first: {label(group.example, targets=self.targets, suites=self.suites)}{why}"

    def others(self, group: FailureGroup) -> str:
        """`also: a, b, c and 67 more cases`; empty if all trials are of one case."""
        example = group.example
        names = dict.fromkeys(self._name_of(one.suite, one.test_id) for one in group.members)
        names.pop(self._name_of(example.suite, example.test_id), None)
        named = list(names)[:NAMED]
        if not named:
            return ""
        more = group.cases - 1 - len(named)
        return f"also: {', '.join(named)}" + (f" and {plural(more, 'more case', ',')}" if more > 0 else "")

    def _name_of(self, suite: str, test_id: str) -> str:
        name = one_line(test_id, LONGEST)
        return f"{one_line(suite, LONGEST)}: {name}" if self.suites else name


def rerun_line(rerun: Rerun, group: FailureGroup) -> str:
    """`run again: agentv eval …`."""
    which = "run again" if rerun.cases == group.cases else "run one again" if rerun.cases == 1 else "run some again"
    return f"{which}: {rerun.command}"


def closing_lines(view: RunView, groups: list[FailureGroup], summary: Summary, results: str) -> Iterator[str]:
    """The number of causes not shown and the command to show every trial, then the command to rerun all cases."""
    left = groups[SHOWN:]
    trials = sum(group.trials for group in groups)
    if trials > min(len(groups), SHOWN):
        more = f"{plural(len(left), 'more cause', ',')}; " if left else ""
        yield f"{more}all {plural(trials, 'trial', ',')}: {_show_command(groups, trials, summary, results)}"
    again = view.rerun.rerun_all() if view.rerun is not None else None
    own = view.rerun.rerun(groups[0]) if view.rerun is not None and len(groups) == 1 else None
    if again is not None and groups and (own is None or own.cases < groups[0].cases):
        yield f"run all of them again: {again.command}"


def _show_command(groups: list[FailureGroup], trials: int, summary: Summary, results: str) -> str:
    flags = {"failed": "--failed", "errored": "--errored", "skipped": "--skipped"}
    chosen = [flag for status, flag in flags.items() if any(group.status == status for group in groups)]
    return " ".join(["agentv results show", run_word(summary, results), *chosen, f"--limit {trials}"])


def run_word(summary: Summary, results: str) -> str:
    """The argument for the run in a command: its id if it is in `.agentv/results`, else its quoted directory."""
    import shlex

    return summary.run_id if results.endswith(f".agentv/results/{summary.run_id}") else shlex.quote(one_line(results))
