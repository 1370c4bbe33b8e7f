"""`--last-failed`: the cases that did not pass when they last ran.

As with pytest, a case keeps its last outcome until it runs again. Runs of the same suites are read, newest first, until
each planned case has an outcome or a complete run of its suite is found.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentv.app.results.place import runs_in
from agentv.engine.plan import FailedKey, FailedTrials, Plan
from agentv.errors import StoreError
from agentv.model.run.cases import Sample, sample_of
from agentv.model.run.summary import NOT_DRAWN
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.suite.workspace import Variant
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.stats.samples.deciding import Rule, verdict_over
from agentv.store.files.directory import INDEX, RUN, DamagedRecordError, read_document, results_directory
from agentv.store.rows.reading import replaced_lines
from agentv.store.rows.results import read_results

MAX_RUNS = 100
"""Maximum number of runs to read."""

MAX_NAMED = 10
"""Maximum number of cases in a note."""

SuiteKey = tuple[str, str]
"""Absolute path and name of a suite."""


class LastFailed(Struct, frozen=True):
    """The planned trials that did not pass when they last ran, or did not run.

    Attributes:
        trials: None if every trial passed.
        run_id: of the newest run that was read; None if these suites have no earlier run.
        notes: notes for the user, such as cases that are left out because they have no earlier outcome.
    """

    trials: FailedTrials | None
    run_id: str | None
    notes: tuple[str, ...] = ()


def last_failed(plan: Plan, results: Path, root: str, tests_from: str | None = None) -> LastFailed:
    """Return the planned trials that did not pass in the last runs of their suites.

    Args:
        plan: of the command, without `--last-failed`.
        results: directory that contains `.agentv/results`.
        root: absolute path of the repository root.
        tests_from: value of `--tests-from`; runs with another value are ignored, as their cases differ.
    """
    outcomes = _Outcomes.of(plan)
    newest: str | None = None
    notes: list[str] = []
    for run in islice(reversed(runs_in(results_directory(results))), MAX_RUNS):
        if not any(outcomes.open.values()):
            break
        try:
            past = _PastRun.of(run, root)
        except StoreError as error:
            notes.append(f"--last-failed ignores the run {run.name}: {error}")
            continue
        if past.tests_from != tests_from or past.suites.keys().isdisjoint(outcomes.open):
            continue
        newest = newest or run.name
        try:
            outcomes.read(past, root)
        except StoreError as error:  # do not use an older outcome instead
            notes.append(f"--last-failed runs the cases of the run {run.name} again: {error}")
            outcomes.fail(past)
    failed = _with_dependents(plan, outcomes.failed | (outcomes.cut - outcomes.known))
    trials = FailedTrials.of(failed) if failed else None
    if trials is not None:
        notes += _left_out(plan, outcomes.known, trials)
    return LastFailed(trials, newest, tuple(notes))


def as_recorded(trials: FailedTrials, root: str) -> list[Json]:
    """Return the trials as stored in `run.json`, so that the run can be resumed."""
    return [[key[0].removeprefix(f"{root}/"), *key[1:]] for key in sorted(trials.keys, key=str)]


def from_record(recorded: Json, root: str) -> FailedTrials | None:
    """Return the trials stored in `run.json`, or None if it lists none, as the run was not limited to failed cases."""
    if not isinstance(recorded, list):
        return None
    rows: list[Any] = [one for one in recorded if isinstance(one, list) and len(one) == 6]
    return FailedTrials.of((str(Path(root, row[0])) if row[0] else "", *row[1:]) for row in rows)


class _PastRun(Struct, frozen=True):
    """A run as its `run.json` describes it.

    Attributes:
        path: directory of the run.
        suites: suite → names of its targets.
        tests_from: value of `--tests-from`.
        whole: it was planned to run all cases of its suites.
        trials: number of planned trials.
    """

    path: Path
    suites: Mapping[SuiteKey, frozenset[str]]
    tests_from: Json
    whole: bool
    trials: Json

    @classmethod
    def of(cls, run: Path, root: str) -> _PastRun:
        """Read the `run.json` of a run.

        Raises:
            StoreError: it cannot be read, or agentv did not write it.
        """
        record = read_document(run / RUN)
        settings, planned = record.get("settings"), record.get("planned")
        suites = dict(_suites(record, root))
        if not isinstance(settings, dict) or not isinstance(planned, dict) or None in suites.values():
            raise DamagedRecordError(f"{run / RUN} does not describe a run")
        return cls(
            run,
            {key: targets for key, targets in suites.items() if targets is not None},
            settings.get("tests_from"),
            record.get("partial") is None and not settings.get("against"),
            planned.get("trials"),
        )


class _Outcomes(Struct, frozen=True):
    """Last outcomes of planned trials.

    Attributes:
        open: suite → its trials without an outcome so far.
        targets: suite → names of its targets.
        failed: trials that did not pass.
        cut: trials that an incomplete run did not reach; an earlier outcome still counts.
        known: trials with an outcome.
    """

    open: dict[SuiteKey, set[FailedKey]]
    targets: Mapping[SuiteKey, frozenset[str]]
    failed: set[FailedKey] = field(default_factory=set)
    cut: set[FailedKey] = field(default_factory=set)
    known: set[FailedKey] = field(default_factory=set)

    @classmethod
    def of(cls, plan: Plan) -> _Outcomes:
        """Start with no outcome for any trial of a plan."""
        waiting: dict[SuiteKey, set[FailedKey]] = {}
        for planned in plan.planned_cases():
            key = _key(*planned)
            waiting.setdefault(key[:2], set()).add(key)
        targets = {(suite.path, suite.name): frozenset(one.name for one in suite.targets) for suite in plan.suites}
        return cls(waiting, targets)

    def read(self, run: _PastRun, root: str) -> None:
        """Add the outcomes of a run.

        Raises:
            StoreError: its rows are damaged, or missing.
        """
        found, trials = _outcomes(run.path, root)
        for key, failed in found.items():
            waiting = self.open.get(key[:2])
            if waiting is not None and key in waiting and key[:2] in run.suites:
                waiting.remove(key)
                self.known.add(key)
                if failed:
                    self.failed.add(key)
        if not run.whole:
            return
        complete = trials == run.trials
        for suite in run.suites.keys() & self.open.keys():
            of_run = self._of_run(run, suite)
            if complete:
                self.open[suite] -= of_run  # the others were added after the run
            else:
                self.cut.update(of_run)

    def fail(self, run: _PastRun) -> None:
        """Count all trials that a damaged run may have run as failed."""
        for suite in run.suites.keys() & self.open.keys():
            of_run = self._of_run(run, suite)
            self.open[suite] -= of_run
            self.known.update(of_run)
            self.failed.update(of_run)

    def _of_run(self, run: _PastRun, suite: SuiteKey) -> set[FailedKey]:
        """Return the trials of a suite without an outcome that belong to a run, by its targets."""
        targets, waiting = run.suites[suite], self.open[suite]
        return set(waiting) if self.targets[suite] <= targets else {key for key in waiting if key[4] in targets}


def _with_dependents(plan: Plan, failed: set[FailedKey]) -> set[FailedKey]:
    """Return the failed trials and all trials that depend on them, which were skipped."""
    found, before = set(failed), -1
    while before < len(found):
        before = len(found)
        for suite in plan.suites:
            for key in (_key(suite, *planned) for planned in plan.planned(suite)) if suite.links else ():
                link = suite.links.get(key[2])
                if link is not None and any((*key[:2], case, *key[3:]) in found for case in link.needs):
                    found.add(key)
    return found


def _key(suite: Suite, case: Case, target: TargetSpec, variant: Variant | None) -> FailedKey:
    name = None if variant is None else variant.name
    return suite.path, suite.name, case.id, case.prompt_id, target.name, name


def _left_out(plan: Plan, known: Container[FailedKey], trials: FailedTrials) -> Iterator[str]:
    """Yield a note about cases that are left out although they have no earlier outcome."""
    ids: dict[tuple[str, str, str], str] = {}
    for suite, case, target, variant in plan.planned_cases():
        key = _key(suite, case, target, variant)
        taken = trials.contains_case(suite, case) and trials.contains(suite, case, target, variant)
        if key not in known and not taken:
            ids.setdefault(key[:3], case.id)
    if ids:
        named = ", ".join(islice(ids.values(), MAX_NAMED)) + (", …" if len(ids) > MAX_NAMED else "")
        verb = "is" if len(ids) == 1 else "are"
        yield f"--last-failed: {plural(len(ids), 'case')} without an earlier outcome {verb} left out: {named}"


def _suites(record: JsonObject, root: str) -> Iterator[tuple[SuiteKey, frozenset[str] | None]]:
    """Yield the suites in a `run.json` with the names of their targets, or None for an invalid entry."""
    suites = record.get("suites")
    for one in suites if isinstance(suites, list) else [None]:
        suite: JsonObject = one if isinstance(one, dict) else {}
        path, name, targets = suite.get("path"), suite.get("name"), suite.get("targets")
        listed = objects_in(targets)
        sound = isinstance(path, str) and isinstance(name, str) and listed == targets
        place = str(Path(root, path)) if isinstance(path, str) and path else ""
        yield (place, str(name)), frozenset(str(target.get("name")) for target in listed) if sound else None


def _outcomes(run: Path, root: str) -> tuple[dict[FailedKey, bool], int]:
    """Return for each case that ran whether it did not pass, over its samples, and the number of their planned trials.

    Raises:
        StoreError: the rows are damaged, or missing.
    """
    if not (run / INDEX).exists():
        raise StoreError(f"{run / INDEX} is missing")
    samples: dict[FailedKey, tuple[Rule, list[Sample]]] = {}
    for result in read_results(run / INDEX, root, replaced_lines(run / INDEX)):
        trial, code = result.trial, result.error.code if result.error is not None else ""
        if result.status == "skipped" and code.endswith(NOT_DRAWN):
            continue
        key = _key(trial.suite, trial.case, trial.target, trial.variant)
        rule = Rule(trial.repeat, trial.threshold, trial.aggregate, trial.alpha)
        samples.setdefault(key, (rule, []))[1].append(sample_of(result))
    failed = {key: verdict_over(found, rule) not in ("passed", "shown") for key, (rule, found) in samples.items()}
    return failed, sum(rule.repeat for rule, _ in samples.values())
