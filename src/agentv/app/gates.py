"""What ends or decides a run beside its cases: a comparison with an earlier run, and minimums of activation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.labelled_runs import has_gate, labelled_runs
from agentv.app.results.stored import StoredRun, find_run
from agentv.app.settings import EvalSettings
from agentv.engine.draws import Bounds, CaseId, Draws, Groups
from agentv.engine.plan import Plan, compares
from agentv.errors import UsageError
from agentv.model.run.cases import ClusterId, TrialCluster, cluster_of
from agentv.model.run.summary import Activation, GateResult, SequentialComparison, Summary
from agentv.model.run.trial import DEFAULT_ALPHA, Trial
from agentv.model.suite.suite import SkillMinimums, Suite
from agentv.model.values.formatting import plural
from agentv.model.values.values import JsonObject
from agentv.reports.text import percent
from agentv.stats.samples.betting import PairedBets, mean_of
from agentv.store.files.directory import INDEX, is_being_written
from agentv.store.rows.reading import read_placed_rows, replaced_lines


class _Planned(Struct, frozen=True):
    """The run that goes through its cases in random order.

    Attributes:
        root: absolute path that the places of suites count from.
    """

    plan: Plan
    base: Base
    root: str

    def cases(self) -> Iterator[tuple[CaseId, Trial]]:
        """Each trial with its case, as the base calls it."""
        for trial in self.plan:
            suite, case = trial.suite, trial.case
            yield (self.base.named(suite.name, self._path(suite)), case.id, case.prompt_id), trial

    def placed(self) -> Iterator[tuple[CaseId, Hashable, Trial]]:
        """Each trial with its case and the group of dependent cases that it belongs to.

        Those are cases of one cluster, and cases that must run before others. With several prompts a case is drawn with
        all of them: they are no independent cases.
        """
        groups = Groups()
        for identity, trial in self.cases():
            groups.join(cluster_of(TrialCluster.of(trial, self._path(trial.suite))), self._places(identity, trial))
        for identity, trial in self.cases():
            yield identity, groups.of(self._places(identity, trial)[0]), trial

    def _places(self, identity: CaseId, trial: Trial) -> list[ClusterId]:
        """The case of a trial, and the cases that it needs."""
        link = trial.suite.links.get(trial.case.id) if trial.suite.links else None
        home = (self._path(trial.suite), trial.suite.name)
        return [("", *home, case) for case in (identity[1], *(link.needs if link is not None else ()))]

    def paired(self) -> dict[CaseId, Bounds]:
        """Of the cases that both runs have in the same words, the share of samples of the base that passed.

        Raises:
            UsageError: both runs judge a case by different thresholds.
        """
        found: dict[CaseId, Bounds] = {}
        unlike: list[str] = []
        for identity, trial in self.cases():
            before = self.base.cases.get(identity)
            if identity in found or before is None or before.sha256 != trial.case.sha256:
                continue
            found[identity] = before.bounds
            if before.threshold != trial.threshold:
                unlike.append(f"'{trial.case.id}': {before.threshold:g} there, {trial.threshold:g} here")
        if unlike:
            what = f"{plural(len(unlike), 'case')} of {self.base.run_id} had another threshold ({unlike[0]})"
            raise UsageError(
                what, "pass rates with different thresholds cannot be compared: use the same threshold in both runs"
            )
        return found

    def _path(self, suite: Suite) -> str:
        return suite.path.removeprefix(f"{self.root}/")


def draws_of(settings: EvalSettings, plan: Plan, root: str, results: Path) -> Draws | None:
    """The trials in the order in which they are drawn; None: the run is not compared with another.

    Args:
        settings: of the run; `against` names a run as `resolved` does.
        plan: what is run.
        root: absolute path of the repository root.
        results: the directory that contains `.agentv/results`.

    Raises:
        UsageError: the base cannot be compared with this run.
        StoreError: its files cannot be read.
    """
    if settings.against is None:
        return None
    _check_plan(plan)
    planned = _Planned(plan, read_base(settings.against, results), root)
    seed = settings.seed if settings.seed is not None else int.from_bytes(os.urandom(4))
    bets = PairedBets(settings.alpha or DEFAULT_ALPHA, settings.margin or 0.0)
    draws = Draws(planned.placed(), planned.paired(), bets, planned.base.run_id, seed)
    if not draws.cases:
        what = f"{planned.base.run_id} and this run have no unedited case in common"
        suites = sorted({suite for suite, _, _ in planned.base.cases})
        named = f"{'suite' if len(suites) == 1 else 'suites'} {', '.join(suites[:10])}"
        raise UsageError(what, f"{planned.base.run_id} holds the {named}")
    return draws


def resolved(settings: EvalSettings, results: Path) -> EvalSettings:
    """The settings with the base by its id where they say `last`: a run that is resumed is the last one itself."""
    if settings.against != "last":
        return settings
    return replace(settings, against=find_run("last", results, action="compare with").name)


def check_terms(settings: EvalSettings, recorded: JsonObject, run: str) -> None:
    """Refuse to resume a run on other terms: those that are chosen after looking prove nothing.

    Raises:
        UsageError: the run was begun with another base, margin, alpha or seed.
    """
    for name in ("against", "margin", "alpha", "seed"):
        current, was = getattr(settings, name), recorded.get(name)
        if (
            current is not None
            and current != was
            and (settings.against is not None or recorded.get("against") is not None)
        ):
            had = f"with --{name} {was}" if was is not None else f"without --{name}"
            raise UsageError(f"the run {run} started {had}, but this command has {current}", "start a new run")


def comparison_of(draws: Draws) -> SequentialComparison:
    """The comparison of the cases that were drawn."""
    bets = draws.bets
    return SequentialComparison(
        base=draws.base,
        verdict=bets.claim or "inconclusive",
        difference=(mean_of(bets.low), mean_of(bets.high)),
        interval=bets.bounds,
        alpha=bets.alpha,
        margin=bets.margin,
        drawn=draws.drawn,
        clusters=bets.drawn,
        cases=draws.cases,
        unpaired=draws.unpaired,
        errored=draws.errored,
        seed=draws.seed,
    )


def _check_plan(plan: Plan) -> None:
    """Refuse what cannot be drawn case by case.

    Raises:
        UsageError: there are several targets, or cases whose samples end early, or whose answers are compared.
    """
    for suite in plan.suites:
        if suite.run.until is not None:
            what = f"the suite '{suite.name}' samples each case until decided, which biases its pass rate"
            raise UsageError(what, "with --against, set a fixed repeat")
        if suite.compares and any(compares(case) for case in suite.cases):
            what = f"cases of the suite '{suite.name}' compare the answers of several targets or prompts"
            raise UsageError(what, "--against draws each case on its own: run this suite without it")
    targets = {trial.target.name for trial in plan}
    if len(targets) > 1:
        what = f"--against compares one target with an earlier run, found {len(targets)} targets"
        raise UsageError(what, f"choose one with --target: {', '.join(sorted(targets))}")


_WITHOUT_VERDICT = ("skipped", "shown")


class BaseCase(Struct):
    """A case of the base. `passed`, `errored`, `samples`: how many of its samples."""

    sha256: str
    threshold: float
    passed: int = 0
    errored: int = 0
    samples: int = 0

    @property
    def bounds(self) -> Bounds:
        """The share of its samples that passed: at least, and at most where some errored."""
        return self.passed / self.samples, (self.passed + self.errored) / self.samples


class Base(Struct):
    """The cases of an earlier run.

    Attributes:
        shared: names that several suites of it have; they are distinguished by their files.
    """

    run_id: str
    shared: frozenset[str]
    cases: dict[CaseId, BaseCase] = field(default_factory=dict)

    def named(self, suite: str, path: str | None) -> str:
        """Label of a suite: its name, with its file if several suites have that name."""
        return f"{suite} ({path})" if suite in self.shared else suite


def read_base(named: str, root: Path) -> Base:
    """The results of the run with this name: an id, a directory, or `last`.

    Raises:
        UsageError: it does not exist, is still being written, has no finished trial or several targets, or its
            samples ended as soon as a case was decided.
        StoreError: its rows cannot be read.
    """
    path = find_run(named, root, action="compare with")
    if is_being_written(path):
        raise UsageError(f"the run {path.name} is still being written", "wait until it ends")
    index = path / INDEX
    targets: set[str] = set()
    cases: dict[tuple[str, str | None, str, str | None], BaseCase] = {}
    early = False
    for _, row in read_placed_rows(index, replaced_lines(index)):
        if row.status not in _WITHOUT_VERDICT:
            targets.add(row.target)
            early |= row.alpha is not None
            identity = (row.suite, row.eval_path, row.test_id, row.prompt_id)
            case = cases.setdefault(identity, BaseCase(row.case_sha256, row.threshold))
            case.samples += 1
            case.passed += row.status == "passed"
            case.errored += row.status == "errored"
    if not targets:
        raise UsageError(f"nothing to compare with: the run {path.name} has no finished trials")
    if early:
        what = f"the run {path.name} sampled each case until decided, which biases its pass rate"
        raise UsageError(what, "compare with a run that has a fixed number of samples per case")
    if len(targets) > 1:
        what = f"the run {path.name} has cases on {len(targets)} targets: {', '.join(sorted(targets)[:10])}"
        raise UsageError(what, "compare with a run of one target")
    files = Counter(suite for suite, _ in {(suite, file) for suite, file, _, _ in cases})
    base = Base(path.name, frozenset(suite for suite, count in files.items() if count > 1))
    for (suite, file, case_id, prompt_id), case in cases.items():
        base.cases[base.named(suite, file), case_id, prompt_id] = case
    return base


def with_gates(
    summary: Summary, suites: Sequence[Suite], run: StoredRun, failed_queries: Callable[[str], int], *, changed: bool
) -> Summary:
    """The totals of a run with what the gates of its suites come to.

    Args:
        summary: of the run.
        suites: that it ran.
        run: as it lies on the disk, with the labels that decide it.
        failed_queries: name of a suite → how many of its queries failed.
        changed: its labels are others than those before an earlier process of it.

    Raises:
        StoreError: the run cannot be read.
    """
    if any(map(has_gate, suites)):
        summary = labelled_runs().with_gates(summary, run, suites, changed=changed)
    queried = {one.suite for one in summary.activation}
    skills = (
        activation_gate(one, summary.activation, failed_queries(one.name))
        for one in suites
        if one.skill_minimums is not None and one.name in queried
    )
    return replace(summary, gates=(*summary.gates, *dict.fromkeys(skills)))


def activation_gate(suite: Suite, activations: Iterable[Activation], failed: int) -> GateResult:
    """Whether all skills of a suite are distinguished as well as they must be, by the point estimates.

    A minimum decides its own kind of mistake alone: with `min_recall`, no query may load a skill beside the right one.

    Args:
        suite: with minimums.
        activations: of the run.
        failed: how many of its queries failed, which the gate decides instead.
    """
    minimums = suite.skill_minimums or SkillMinimums()
    found = [one for one in activations if one.suite == suite.name]
    checked = [shown for one in found for shown in (*_checked(one, minimums), *_undecided(one, minimums))]
    below = [shown for shown, reached, _ in checked if not reached]
    if not checked or below:
        why = "; ".join(below) or "no query was judged"
        return GateResult("activation", suite.name, passed=False, why=why, failed=failed)
    unsure = sum(not sure for _, _, sure in checked)
    names = {"recall": minimums.recall, "precision": minimums.precision}
    needed = " and ".join(f"{name} {percent(least)}" for name, least in names.items() if least is not None)
    reach = f"{unsure} of {plural(len(checked), 'interval')} reach below that; more queries narrow them"
    warning = reach if unsure else None
    return GateResult("activation", suite.name, True, f"every skill reaches {needed}", warning, failed)


def _checked(found: Activation, minimums: SkillMinimums) -> Iterator[tuple[str, bool, bool]]:
    """Each required measure in words, whether it is reached, and whether the lower end of its interval is, too."""
    who = " ".join(one for one in (found.target, found.variant) if one)
    for skill in found.skills:
        measures = (("recall", skill.recall, minimums.recall), ("precision", skill.precision, minimums.precision))
        for name, measure, least in measures:
            if least is None:
                continue
            if measure is None:
                yield f"{name} of {skill.skill} with {who} is unknown", False, False
                continue
            shown = f"{name} of {skill.skill} with {who} is {percent(measure.value)}, required {percent(least)}"
            yield shown, measure.value >= least, measure.interval[0] >= least


def _undecided(found: Activation, minimums: SkillMinimums) -> Iterator[tuple[str, bool, bool]]:
    """The wrong queries whose mistake no minimum is about, in words."""
    wrong = found.judged - found.right
    missed = sum(skill.false_negatives for skill in found.skills)
    silent = sum(cell.queries for cell in found.confusion if cell.expected is not None and cell.loaded is None)
    who = " ".join(one for one in (found.target, found.variant) if one)
    if minimums.precision is None and wrong > missed:
        count = f"{wrong - missed} of {found.judged} queries with {who}"
        yield f"{count} loaded a skill that they should not; only 'min_precision' allows that", False, False
    if minimums.recall is None and silent:
        count = f"{silent} of {found.judged} queries with {who}"
        yield f"{count} loaded no skill; only 'min_recall' allows that", False, False
