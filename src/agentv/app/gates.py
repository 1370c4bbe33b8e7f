"""Gates on a whole run: the comparison with an earlier run (`--against`) and minimums for skill activation."""

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
    """A plan, and the earlier run that it is compared with.

    Attributes:
        root: absolute path of the repository root, which suites' paths are relative to.
    """

    plan: Plan
    base: Base
    root: str

    def cases(self) -> Iterator[tuple[CaseId, Trial]]:
        """Yield each trial with the identity of its case in the base."""
        for trial in self.plan:
            suite, case = trial.suite, trial.case
            yield (self.base.named(suite.name, self._path(suite)), case.id, case.prompt_id), trial

    def grouped(self) -> Iterator[tuple[CaseId, Hashable, Trial]]:
        """Yield each trial with its case and its group of dependent cases.

        A group joins cases of one cluster and cases that depend on each other. A case with several prompts is drawn
        with all of them, as they are not independent.
        """
        groups = Groups()
        for identity, trial in self.cases():
            groups.join(
                cluster_of(TrialCluster.of(trial, self._path(trial.suite))), self._dependent_cases(identity, trial)
            )
        for identity, trial in self.cases():
            yield identity, groups.of(self._dependent_cases(identity, trial)[0]), trial

    def _dependent_cases(self, identity: CaseId, trial: Trial) -> list[ClusterId]:
        """Return the case of a trial, and the cases that it depends on."""
        link = trial.suite.links.get(trial.case.id) if trial.suite.links else None
        home = (self._path(trial.suite), trial.suite.name)
        return [("", *home, case) for case in (identity[1], *(link.needs if link is not None else ()))]

    def base_rates(self) -> dict[CaseId, Bounds]:
        """Return the pass rates in the base of the cases that are unedited since.

        Raises:
            UsageError: the runs have different thresholds for a case.
        """
        found: dict[CaseId, Bounds] = {}
        differing: list[str] = []
        for identity, trial in self.cases():
            before = self.base.cases.get(identity)
            if identity in found or before is None or before.sha256 != trial.case.sha256:
                continue
            found[identity] = before.bounds
            if before.threshold != trial.threshold:
                differing.append(f"'{trial.case.id}': {before.threshold:g} there, {trial.threshold:g} here")
        if differing:
            what = f"{plural(len(differing), 'case')} of {self.base.run_id} had another threshold ({differing[0]})"
            raise UsageError(
                what, "pass rates with different thresholds cannot be compared: use the same threshold in both runs"
            )
        return found

    def _path(self, suite: Suite) -> str:
        return suite.path.removeprefix(f"{self.root}/")


def draws_of(settings: EvalSettings, plan: Plan, root: str, results: Path) -> Draws | None:
    """Return the trials in the random order to run them in, or None without `--against`.

    Args:
        settings: of the run, as returned by `with_base_id`.
        plan: the trials to run.
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
    draws = Draws(planned.grouped(), planned.base_rates(), bets, planned.base.run_id, seed)
    if not draws.cases:
        what = f"{planned.base.run_id} and this run have no unedited case in common"
        suites = sorted({suite for suite, _, _ in planned.base.cases})
        named = f"{'suite' if len(suites) == 1 else 'suites'} {', '.join(suites[:10])}"
        raise UsageError(what, f"{planned.base.run_id} holds the {named}")
    return draws


def with_base_id(settings: EvalSettings, results: Path) -> EvalSettings:
    """Replace `--against last` by the id of the last run; when this run is resumed, it is the last run itself."""
    if settings.against != "last":
        return settings
    return replace(settings, against=find_run("last", results, action="compare with").name)


def check_terms(settings: EvalSettings, recorded: JsonObject, run: str) -> None:
    """Raise if a resume changes the terms of the comparison, which are only valid if chosen before seeing results.

    Raises:
        UsageError: the run was started with another base, margin, alpha or seed.
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
    """Return the comparison of the cases that were drawn."""
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
    """Raise if a plan's cases cannot be drawn one by one.

    Raises:
        UsageError: the plan has several targets, or cases that are sampled until decided or compare several answers.
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
    """A case of the base, with the numbers of its samples and of those that passed and errored."""

    sha256: str
    threshold: float
    passed: int = 0
    errored: int = 0
    samples: int = 0

    @property
    def bounds(self) -> Bounds:
        """Lower and upper bound of its pass rate, counting errored samples as failed and as passed."""
        return self.passed / self.samples, (self.passed + self.errored) / self.samples


class Base(Struct):
    """The cases of an earlier run.

    Attributes:
        shared: suite names used in several files; the suites are distinguished by file.
    """

    run_id: str
    shared: frozenset[str]
    cases: dict[CaseId, BaseCase] = field(default_factory=dict)

    def named(self, suite: str, path: str | None) -> str:
        """Return the label of a suite: its name, with its file if several suites have that name."""
        return f"{suite} ({path})" if suite in self.shared else suite


def read_base(named: str, root: Path) -> Base:
    """Read the results of a run, named by an id, a directory, or `last`.

    Raises:
        UsageError: the run does not exist, is still being written, has no finished trial or several targets, or
            sampled each case until decided.
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
    """Return the totals of a run with the results of its suites' gates.

    Args:
        summary: of the run.
        suites: the suites that ran.
        run: as it is on disk, with the labels that decide its gates.
        failed_queries: returns the number of failed queries of a suite, by its name.
        changed: the labels changed since an earlier process of the run.

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
    """Decide whether every skill of a suite reaches the required recall and precision, by the point estimates.

    A minimum tolerates only its own kind of mistake: with `min_recall` alone, no query may load a wrong skill.

    Args:
        suite: with minimums.
        activations: of the run.
        failed: number of its queries that failed; the gate replaces their verdicts.
    """
    minimums = suite.skill_minimums or SkillMinimums()
    found = [one for one in activations if one.suite == suite.name]
    checked = [shown for one in found for shown in (*_measured(one, minimums), *_untolerated(one, minimums))]
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


def _measured(found: Activation, minimums: SkillMinimums) -> Iterator[tuple[str, bool, bool]]:
    """Yield each required measure as text, whether it is reached, and whether the lower end of its interval is, too."""
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


def _untolerated(found: Activation, minimums: SkillMinimums) -> Iterator[tuple[str, bool, bool]]:
    """Yield a text, False, False for each kind of mistake that no minimum tolerates."""
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
