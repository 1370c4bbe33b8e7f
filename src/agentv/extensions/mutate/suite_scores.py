"""The mutation scores of suites by their latest runs, as far as they are quick: without judges and workspaces."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agentv.app.results.place import RESULTS, place_holding, runs_in
from agentv.app.results.stored import open_run
from agentv.errors import AgentvError
from agentv.extensions.mutate.mutating import DeadlineError, MutationSettings, chosen_operators, mutate_run
from agentv.extensions.mutate.originals import nothing_in
from agentv.model.run.case_check import SuiteScore
from agentv.model.suite.suite import Suite
from agentv.model.values.values import objects_in
from agentv.store.files.directory import RUN, is_being_written, read_document, results_directory

LIMIT_S = 5.0
"""Seconds for the scores of all suites."""

MOST_ANSWERS = 1_000
"""Rows of a run that is looked at, at most."""

MOST_RUNS = 100
"""Runs that are searched for a suite, the newest first."""


def suite_scores(suites: Sequence[Suite], limit_s: float = LIMIT_S) -> tuple[SuiteScore, ...]:
    """The scores of the suites that have a run, as `agentv mutate` would give them.

    Args:
        suites: as their files are now.
        limit_s: seconds after which the others are left out, with a note.
    """
    deadline = time.monotonic() + limit_s
    found: dict[Path, Mapping[tuple[str, str], Path]] = {}
    scores = []
    for suite in suites:
        directory = Path(suite.path).parent
        results = results_directory(place_holding(RESULTS, str(directory)))
        if results not in found:
            found[results] = dict(_latest(results))
        run = found[results].get((suite.name, str(Path(suite.path).resolve())))
        if run is not None:
            scores.append(_score(suite.name, run, deadline))
    return tuple(scores)


def _latest(results: Path) -> Iterator[tuple[tuple[str, str], Path]]:
    """(name, path of the file) of suites → their latest run; older runs come first."""
    for run in runs_in(results)[-MOST_RUNS:]:
        try:
            if is_being_written(run):
                continue
            suites = objects_in(read_document(run / RUN).get("suites"))
        except (AgentvError, OSError):
            continue
        root = results.parent.parent
        for one in suites:
            if isinstance(one.get("path"), str):
                yield (str(one.get("name")), str((root / one["path"]).resolve())), run


def _score(suite: str, path: Path, deadline: float) -> SuiteScore:
    """The score of a suite, or why it cannot be computed."""
    slow = f"it takes too long here: run 'agentv mutate {path.name}'"
    try:
        run = open_run(str(path), action="mutate")
        with run.index.open("rb") as rows:
            if time.monotonic() > deadline or sum(1 for _ in rows) > MOST_ANSWERS:
                return SuiteScore(suite, path.name, why=slow)
        settings = MutationSettings(proposals=0, suite=suite, workspaces=False, deadline=deadline)
        found = mutate_run(run, chosen_operators(()), settings)
    except DeadlineError:
        return SuiteScore(suite, path.name, why=slow)
    except AgentvError as error:
        return SuiteScore(suite, path.name, why=str(error).removeprefix(f"{nothing_in(path.name)}: "))
    except OSError as error:
        return SuiteScore(suite, path.name, why=f"its rows cannot be read: {error.strerror}")
    why = None if found.score is not None else "no mutant changes what criteria, expected output or assertions name"
    failing = (f"not counted: {one.case}, whose answer no longer passes: {one.message}" for one in found.failing)
    return SuiteScore(suite, path.name, found.score, found.counted, why, (*found.notes, *failing))
