"""`--last-failed`: the cases that did not pass when they last ran.

As with pytest, a case keeps its last outcome until it runs again: the runs of the same suites are read from the newest
back to the last one that ran all of a suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from agentv.app.results.finding import runs_in
from agentv.engine.failed_trials import FailedKey, FailedTrials
from agentv.engine.plan import Plan
from agentv.errors import StoreError
from agentv.lazy_dataclass import dataclass
from agentv.model.run.cases import Sample, sample_of
from agentv.model.run.sequential import NOT_DRAWN
from agentv.model.suite.suite import Suite
from agentv.model.values.values import Json, JsonObject
from agentv.stats.samples.deciding import Rule, verdict_over
from agentv.store.files.directory import INDEX, RUN, read_document, results_directory
from agentv.store.rows.current import replaced_lines
from agentv.store.rows.results import read_results

MOST_RUNS = 100
"""Runs that are read at most."""

_CHOOSING = ("filter", "tags", "exclude_tags", "sample", "limit", "variants", "against", "last_failed")
"""Settings of `run.json` with which a run is only a part of its suites."""


@dataclass(frozen=True, slots=True)
class LastFailed:
    """The trials that did not pass when they last ran.

    Attributes:
        run_id: of the newest run that was read; None: there is none of these suites.
    """

    trials: FailedTrials
    run_id: str | None


def last_failed(suites: tuple[Suite, ...], results: Path, root: str) -> LastFailed:
    """What did not pass in the last runs of these suites.

    Args:
        suites: of the command.
        results: directory that contains `.agentv/results`.
        root: absolute path of the repository root.
    """
    open_suites = {(suite.path, suite.name): {target.name for target in suite.targets} for suite in suites}
    outcomes: dict[FailedKey, bool] = {}
    newest: str | None = None
    for run in islice(reversed(runs_in(results_directory(results))), MOST_RUNS):
        record = _record(run)
        ran = {suite: targets for suite, targets in _suites(record, root) if suite in open_suites}
        if not ran:
            continue
        newest = newest or run.name
        for key, failed in _outcomes(run, root):
            if key[:2] in ran:
                outcomes.setdefault(key, failed)
        if _is_whole(record):
            for suite, targets in ran.items():
                if open_suites[suite] <= targets:
                    del open_suites[suite]
        if not open_suites:
            break
    return LastFailed(FailedTrials.of(key for key, failed in outcomes.items() if failed), newest)


def planned_failures(found: LastFailed, plan: Plan) -> FailedTrials | None:
    """Those that the plan has; None if it has none."""
    keys = found.trials.keys
    planned = [
        key
        for suite, case, target, variant in (plan.planned_cases() if keys else ())
        if (key := (suite.path, suite.name, case.id, case.prompt_id, target.name, variant.name if variant else None))
        in keys
    ]
    return FailedTrials.of(planned) if planned else None


def as_recorded(trials: FailedTrials, root: str) -> list[Json]:
    """The trials as `run.json` lists them, so that the run can be resumed."""
    return [[key[0].removeprefix(f"{root}/"), *key[1:]] for key in sorted(trials.keys, key=str)]


def from_record(recorded: Json, root: str) -> FailedTrials | None:
    """The trials of a run that is resumed; None: it was not one of `--last-failed`, or ran all cases."""
    if not isinstance(recorded, list):
        return None
    rows: list[Any] = [one for one in recorded if isinstance(one, list) and len(one) == 6]
    return FailedTrials.of((str(Path(root, row[0])) if row[0] else "", *row[1:]) for row in rows)


def _record(run: Path) -> JsonObject:
    try:
        return read_document(run / RUN)
    except StoreError:
        return {}


def _suites(record: JsonObject, root: str) -> Iterator[tuple[tuple[str, str], set[str]]]:
    suites: Any = record.get("suites")
    for one in suites if isinstance(suites, list) else ():
        path, name, targets = one.get("path"), one.get("name"), one.get("targets") or ()
        if isinstance(path, str) and isinstance(name, str):
            yield (str(Path(root, path)) if path else "", name), {str(target.get("name")) for target in targets}


def _is_whole(record: JsonObject) -> bool:
    settings: Any = record.get("settings")
    return isinstance(settings, dict) and not any(settings.get(name) for name in _CHOOSING)


def _outcomes(run: Path, root: str) -> Iterator[tuple[FailedKey, bool]]:
    """Of each case that ran what it came to over its samples: whether it did not pass."""
    samples: dict[FailedKey, tuple[Rule, list[Sample]]] = {}
    try:
        for result in read_results(run / INDEX, root, replaced_lines(run / INDEX)):
            trial, code = result.trial, result.error.code if result.error is not None else ""
            if result.status == "skipped" and code.endswith(NOT_DRAWN):
                continue
            suite, case = trial.suite, trial.case
            key = (suite.path, suite.name, case.id, case.prompt_id, trial.target.name, trial.variant_name)
            rule = Rule(trial.repeat, trial.threshold, trial.aggregate, trial.alpha)
            samples.setdefault(key, (rule, []))[1].append(sample_of(result))
    except StoreError:
        return  # a damaged run says nothing; a whole one before it may
    for key, (rule, found) in samples.items():
        yield key, verdict_over(found, rule) not in ("passed", "shown")
