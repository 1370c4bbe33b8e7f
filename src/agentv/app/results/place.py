"""Locations of results and cache (SPEC section 13), the runs in a results directory, and facts from `run.json`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from agentv.authoring.source.files import exists, is_directory, upwards
from agentv.model.run.summary import PartialRun
from agentv.model.values.values import JsonObject, objects_in
from agentv.store.files.directory import RUN, holds_run
from agentv.store.files.encoding import decodable
from agentv.store.totals.summary import PlannedCounts

RESULTS = "results"
CACHE = "cache"


def project_of(directory: str) -> Path:
    """Return the directory that contains `.agentv/results` and `.agentv/cache` for an eval file in `directory`.

    Inside a git repository, this is the top of the checkout. Outside, it is the nearest directory with `.agentv` at or
    above the working directory, if it also contains the eval file, so that the user finds the run again; else the
    nearest one at or above the eval file; else the project of the working directory, or the working directory.
    """
    top = _top_of_git(directory)
    if top is not None:
        return Path(top)
    working = str(Path.cwd())
    here = _top_of_git(working) or next(_projects(working), None)
    if here is not None and f"{directory}{os.sep}".startswith(here.rstrip(os.sep) + os.sep):
        return Path(here)
    above = next(_projects(directory), None)
    return Path(above or here or working)


def project_with(what: str, directory: str | None = None) -> Path:
    """Return the directory to read `.agentv/results` or `.agentv/cache` from.

    This is the directory that a run would write to; outside git, if it has no results or cache, the nearest one above
    that does.

    Args:
        what: `RESULTS` or `CACHE`.
        directory: of the eval file; None: the working directory, to find a stored run.
    """
    at = str(Path.cwd()) if directory is None else directory
    place = project_of(at)
    if _top_of_git(at) is not None or _holds(place, what):
        return place
    above = (Path(one) for one in (*_projects(str(place)), *_projects(at)))
    return next((one for one in above if _holds(one, what)), place)


def _top_of_git(directory: str) -> str | None:
    return next((one for one in upwards(directory, "") if exists(str(Path(one, ".git")))), None)


def _projects(directory: str) -> Iterator[str]:
    """Yield the directories with `.agentv` at or above this one, nearest first, except the home directory."""
    home = str(Path.home())
    return (one for one in upwards(directory, "") if one != home and is_directory(str(Path(one, ".agentv"))))


def _holds(place: Path, what: str) -> bool:
    return (place / ".agentv" / what).is_dir()


def runs_in(results: Path, *, damaged: bool = False) -> list[Path]:
    """Return the directories of all runs in a results directory, oldest first; [] if it does not exist.

    Args:
        results: the results directory.
        damaged: include runs without a `run.json`.
    """
    is_run = holds_run if damaged else lambda run: (run / RUN).is_file()
    found = (path for path in results.iterdir() if is_run(path)) if results.is_dir() else ()
    return sorted(found, key=start_key)


def start_key(run: Path) -> tuple[str, int]:
    """Return a sort key for when a run began: the second in its id, then the file time of its `run.json`."""
    second, _, _ = run.name.partition("-")
    record = run / RUN
    return second, (record if record.exists() else run).stat().st_mtime_ns


def planned_counts(record: JsonObject) -> PlannedCounts:
    """Return the planned counts in a `run.json`, 0 if unknown."""
    planned, settings = record.get("planned"), record.get("settings")
    found = planned if isinstance(planned, Mapping) else {}
    counts = (found.get(name) for name in ("cases", "trials"))
    cases, trials = (number if isinstance(number, int) else 0 for number in counts)
    suites = objects_in(record.get("suites"))
    partial = partial_in(record)
    selected = isinstance(settings, Mapping) and settings.get("last_failed")  # possibly on one of the targets only
    of_suites = (objects_in(one.get("targets")) for one in suites)  # each case runs on all targets of its suite
    rivals = (str(one["name"]) for targets in of_suites if len(targets) > 1 for one in targets if "name" in one)
    return PlannedCounts(
        cases=cases,
        trials=trials,
        targets=tuple(dict.fromkeys(() if selected else rivals)),
        several=any(len(objects_in(one.get(key))) > 1 for one in suites for key in ("targets", "prompts", "variants")),
        drawn_from=partial.of if partial is not None and partial.why == ("sample",) else 0,
    )


def partial_in(record: JsonObject) -> PartialRun | None:
    """Return which part of the suites ran, or None if all did or it is unknown."""
    found = record.get("partial")
    try:
        return None if found is None else msgspec.convert(found, decodable(PartialRun))
    except msgspec.ValidationError:
        return None
