"""View model of a run: counts, cost, and the trials to look at, without formatting.

Only trials that did not pass, or passed with a failed check, are held, and of them a bounded number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from math import isnan
from typing import TYPE_CHECKING, Literal, get_args

from agentv.lazy_dataclass import dataclass
from agentv.model.run.cases import Sample, sample_of
from agentv.model.run.grade import NOT, Grade, reaches
from agentv.model.run.sequential import NOT_DRAWN
from agentv.model.run.trial import Score, Status, Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Aggregate
from agentv.model.values.formatting import plural
from agentv.model.values.response import Failure
from agentv.model.values.span import Span
from agentv.reports.text.escaping import apart
from agentv.stats.samples.deciding import Rule, verdict_over

if TYPE_CHECKING:
    from agentv.reports.run.agents import AgentsView  # few runs have agents

KEPT = 1000
"""Trials of one kind that are held; the rest is counted."""

OUTPUT_KEPT = 2000
"""Characters of an answer that are held."""

Kind = Literal["failed", "errored", "skipped", "noted", "shown"]
"""Why a trial is listed: it failed, errored, was skipped, passed with a failed check, or is only shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that did not pass, or one assertion that could not judge.

    Attributes:
        name, type: of the assertion.
        source: absolute path and line of the assertion; None where it has none.
        text: what was looked for, or why there is no judgement.
        required: it is a gate: the case cannot pass without it.
    """

    state: Literal["failed", "errored"]
    name: str
    type: str
    source: tuple[str, int] | None
    text: str
    evidence: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class PassedCase:
    """A case that passed over its samples: how many of them did, and by which rule.

    `early`: how many samples there were, where they may end early; None: as many as there were to be.
    """

    passed: int
    aggregate: Aggregate
    early: int | None = None


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial that needs a look.

    Attributes:
        place: absolute path of the eval file and line of the case.
        prompt_id: of the suite's prompt that it ran with, if it has some.
        variant: of its agent, if the suite has variants.
        workspace: where its workspace is kept, relative to the run's directory.
        output: the beginning of the answer.
        case: of a sample, what its case came to where that is a pass.
    """

    kind: Kind
    test_id: str
    suite: str
    target: str
    place: tuple[str, int]
    sample: int
    repeat: int
    status: Status
    score: float | None
    threshold: float
    error: Failure | None
    findings: tuple[Finding, ...]
    output: str | None = None
    case: PassedCase | None = None
    prompt_id: str | None = None
    variant: str | None = None
    workspace: str | None = None

    @property
    def gated(self) -> bool:
        """Whether it failed although its score was good enough: a required assertion did."""
        return self.status == "failed" and self.score is not None and reaches(self.score, self.threshold)


ONE_CAUSE = frozenset({"setup-failed", "workspace-failed", "sandbox-unavailable"})
"""Errors that many trials have in common, each shown once."""


@dataclass(slots=True)
class _Samples:
    """The samples of one case on one target that have ended."""

    rule: Rule
    ended: list[Sample] = field(default_factory=list)

    def add(self, result: TrialResult) -> None:
        self.ended.append(sample_of(result))

    def passed(self) -> PassedCase | None:
        """View of how the case passed; None if it did not, or not yet."""
        if verdict_over(self.ended, self.rule) != "passed":
            return None
        early = None if self.rule.alpha is None else len(self.ended)
        return PassedCase(sum(one.status == "passed" for one in self.ended), self.rule.aggregate, early)


@dataclass(slots=True)
class RunView:
    """A run in progress. `add` adds one finished trial.

    Attributes:
        planned: trials that there are to do; fewer, as cases turn out to need no more samples.
        passed, failed, errored: trials that ended so; a passed one with a failed check is also `noted`.
        skipped: trials that were skipped, because of what became of others.
        shown: trials that were answered and not checked.
        stopped: why targets were stopped → how many trials were skipped for it; these are not held one by one.
        earlier: trials among them that an interrupted run had finished before this one went on.
        cost_usd: US dollars spent on targets and judges; None as long as no call said.
        agents: that are working; None: there were none.
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
    agents: AgentsView | None = None
    _kept: dict[Kind, list[TrialView]] = field(default_factory=lambda: {kind: [] for kind in get_args(Kind)})
    _targets: set[str] = field(default_factory=set)
    _samples: dict[tuple[object, ...], _Samples] = field(default_factory=dict)
    _repeated: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Trials that ended, or will not begin."""
        return self.passed + self.failed + self.errored + self.skipped + self.shown

    @property
    def several_targets(self) -> bool:
        """Whether a trial's label needs its target."""
        return len(self._targets) > 1

    def add(self, result: TrialResult) -> None:
        """Add a finished or skipped trial."""
        self._targets.add(result.trial.target.name)
        if result.trial.repeat > 1:
            trial = result.trial
            key = (_place(trial), trial.case.id, trial.case.prompt_id, trial.target.name, trial.variant_name)
            rule = Rule(trial.repeat, trial.threshold, trial.aggregate, trial.alpha)
            samples = self._samples.setdefault(key, _Samples(rule))
            samples.add(result)
            if result.stopped is not None:
                self.planned -= max(0, trial.repeat - len(samples.ended))
        self._spend(result.cost_usd)
        self._spend(result.judge_cost_usd)
        if result.status == "passed":
            self.passed += 1
            if _needs_look(result.scores):
                self.noted += 1
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
        """Add a trial of an earlier run: it counts, but not for the speed of this one."""
        self.add(result)
        self.earlier += 1

    def trials(self, kind: Kind) -> list[TrialView]:
        """The stored trials of a kind, in the order of their files."""
        found = sorted(
            self._kept[kind],
            key=lambda one: (
                one.place,
                one.test_id,
                one.prompt_id or "",
                one.target,
                one.variant or "",
                one.sample,
            ),
        )
        found = [self._with_number(one) for one in found] if self._repeated else found
        return [self._with_case(one) if one.repeat > 1 else one for one in found]

    def _with_number(self, one: TrialView) -> TrialView:
        """The trial with how many others ended by the same cause."""
        error = one.error
        more = 0 if error is None else self._repeated.get((error.code, error.message), 1) - 1
        if error is None or more < 1:
            return one
        return replace(one, error=replace(error, message=f"{error.message} (and {plural(more, 'more trial')})"))

    def _with_case(self, one: TrialView) -> TrialView:
        return replace(one, case=self._samples[one.place, one.test_id, one.prompt_id, one.target, one.variant].passed())

    def omitted(self, kind: Kind) -> int:
        """Number of trials of a kind that are not stored."""
        counted: dict[Kind, int] = {
            "failed": self.failed,
            "errored": self.errored - sum(number - 1 for number in self._repeated.values()),
            "skipped": self.skipped - sum(self.stopped.values()),
            "noted": self.noted,
            "shown": self.shown,
        }
        return counted[kind] - len(self._kept[kind])

    def _keep(self, kind: Kind, result: TrialResult) -> None:
        error = result.error
        if kind == "errored" and error is not None and error.code in ONE_CAUSE:
            cause = (error.code, error.message)
            self._repeated[cause] = self._repeated.get(cause, 0) + 1
            if self._repeated[cause] > 1:
                return  # it is shown once, with the number of its trials
        if len(self._kept[kind]) < KEPT:
            self._kept[kind].append(trial_view(kind, result))

    def _spend(self, cost_usd: float | None) -> None:
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd


def trial_view(kind: Kind, result: TrialResult) -> TrialView:
    """View of a trial."""
    trial = result.trial
    findings = tuple(finding for score in result.scores for finding in _findings(score))
    if kind == "failed" and not findings:
        findings = tuple(_low(score) for score in result.scores if not reaches(score.grade.counted, trial.threshold))
    return TrialView(
        kind=kind,
        test_id=trial.case.id,
        suite=trial.suite.name,
        target=trial.target.name,
        place=_place(trial),
        sample=trial.sample,
        repeat=trial.repeat,
        status=result.status,
        score=None if result.score is None or isnan(result.score) else result.score,
        threshold=trial.threshold,
        error=result.error,
        findings=findings,
        output=None if result.output is None else result.output[:OUTPUT_KEPT],
        prompt_id=trial.case.prompt_id,
        variant=trial.variant_name,
        workspace=result.stored.workspace_path if result.stored is not None else None,
    )


def _place(trial: Trial) -> tuple[str, int]:
    span = trial.case.span
    return (span.file, span.line) if span else (trial.suite.path, 0)


def _needs_look(scores: tuple[Score, ...]) -> bool:
    for score in scores:  # once for every trial of a run
        grade = score.grade
        if not grade.passed or grade.error is not None:
            return True
        for check in grade.checks:
            if not check.passed:
                return True
    return False


def _findings(score: Score) -> Iterator[Finding]:
    grade = score.grade
    if grade.error is not None:
        yield _finding(score, "errored", f"{grade.error.code}: {grade.error.message}")
        return
    failed = [check for check in grade.checks if not check.passed]
    below = _below(grade, score.entry.settings.required)
    if below and len(failed) == 1:  # one line for one thing
        yield _finding(score, "failed", f"{failed[0].text}: {below}", failed[0].evidence)
        return
    for check in failed:
        yield _finding(score, "failed", check.text, check.evidence)
    if below or not (failed or grade.passed):
        yield _finding(score, "failed", below or grade.reason or f"scored {grade.score:.2f}")


def _low(score: Score) -> Finding:
    """An assertion that passes by its own word, and whose score is what fails the case."""
    return _finding(score, "failed", f"it passes with the score {score.grade.counted:.2f}, which is what counts")


def _below(grade: Grade, required: bool | float) -> str | None:
    """Which gate of a number was missed."""
    if isinstance(required, bool) or reaches(grade.score, required):
        return None
    score, needed = apart(grade.score, required)
    return f"scored {score}, required {needed}"


def _finding(score: Score, state: Literal["failed", "errored"], text: str, evidence: str | None = None) -> Finding:
    entry = score.entry
    span = _span_of(entry, text)
    source = (span.file, span.line) if span else None
    return Finding(
        state, entry.name, entry.shown_type, source, text, evidence, required=entry.settings.required is not False
    )


def _span_of(entry: AssertionEntry, text: str) -> Span | None:
    """Where the assertion stands that a check is of: inside a set the one whose name the text begins with."""
    value = text.removeprefix(NOT)
    for inner in entry.inner:
        if value == inner.name or value.startswith(f"{inner.name}: "):
            return _span_of(inner, value[len(inner.name) + 2 :]) or entry.span
    return entry.span
