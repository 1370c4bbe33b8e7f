"""The files that trials need wherever they run: code and data that targets, judges and assertions name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from agentv.authoring.code.fingerprints import files_behind
from agentv.engine.plan import Plan
from agentv.model.run.trial import Trial
from agentv.model.suite.suite import Suite, TargetSpec

LOOKED_AT = 10_000
"""Trials whose files are looked for before the run begins; later ones of a file of a million cases name the same."""


def needed_files(plan: Plan) -> dict[str, str]:
    """Path → sha256 of what the trials of a plan need."""
    found = dict.fromkeys(path for suite in plan.suites for path in _of_suite(suite))
    for trial in islice(plan, LOOKED_AT):
        found |= dict.fromkeys(_of_trial(trial))
    digests = ((path, digest_of(path)) for path in found)
    return {path: digest for path, digest in digests if digest is not None}


def lacking(files: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files that are missing on this machine, and files with different content."""
    here = {path: digest_of(path) for path in files}
    missing = tuple(path for path, digest in here.items() if digest is None)
    other = tuple(path for path, digest in here.items() if digest not in (None, files[path]))
    return missing, other


def digest_of(path: str) -> str | None:
    """The sha256 of a file, or None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _of_targets(*specs: TargetSpec | None) -> Iterator[str]:
    for spec in specs:
        if spec is not None:
            yield from files_behind(spec.settings, spec.search)


def _of_suite(suite: Suite) -> Iterator[str]:
    """What the targets need that the trials of a suite may call, a case's own apart."""
    judges = (*suite.judges.values(), suite.judge, suite.forced_judge, suite.default_judge)
    return _of_targets(*suite.targets, *judges)


def _of_trial(trial: Trial) -> Iterator[str]:
    yield from _of_targets(trial.target, trial.case.judge)
    graders = trial.suite.graders
    search = None if graders is None else graders.search
    for entry in trial.case.all_assertions():
        yield from files_behind(entry.assertion, search)
        if entry.settings.transform is not None:
            yield from files_behind(entry.settings, search)
