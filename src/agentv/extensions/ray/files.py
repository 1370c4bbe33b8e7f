"""The files that trials need wherever they run: code and data that targets, judges and assertions name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
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
    specs = [spec for suite in plan.suites for spec in _specs(suite)]
    found = dict.fromkeys(path for spec in specs for path in files_behind(spec.settings, spec.search))
    for trial in islice(plan, LOOKED_AT):
        found |= dict.fromkeys(_files_of(trial))
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
        if not Path(path).is_file():
            return None
        with open(path, "rb") as file:  # noqa: PTH123  # a Path would add nothing
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None


def _specs(suite: Suite) -> Iterable[TargetSpec]:
    """Targets that the trials of a suite may call, a case's own apart."""
    yield from suite.targets
    yield from suite.judges.values()
    yield from (spec for spec in (suite.judge, suite.forced_judge, suite.default_judge) if spec is not None)


def _files_of(trial: Trial) -> Iterator[str]:
    for spec in (trial.target, trial.case.judge):
        if spec is not None:
            yield from files_behind(spec.settings, spec.search)
    graders = trial.suite.graders
    search = None if graders is None else graders.search
    for entry in trial.case.all_assertions():
        yield from files_behind(entry.assertion, search)
        if entry.settings.transform is not None:
            yield from files_behind(entry.settings, search)
