"""The base of a comparison during a run: the number of passed samples for each case."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agentv.app.results.finding import find_run
from agentv.engine.draws import Bounds, CaseId
from agentv.errors import UsageError
from agentv.model.run.row import Row
from agentv.store.files.directory import INDEX, is_being_written
from agentv.store.rows.current import replaced_lines
from agentv.store.rows.reading import read_placed_rows

_WITHOUT_VERDICT = ("skipped", "shown")


@dataclass(slots=True)
class BaseCase:
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


@dataclass(slots=True)
class Base:
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

    def add(self, row: Row) -> None:
        """Add a finished trial."""
        identity = (self.named(row.suite, row.eval_path), row.test_id, row.prompt_id)
        case = self.cases.setdefault(identity, BaseCase(row.case_sha256, row.threshold))
        case.samples += 1
        case.passed += row.status == "passed"
        case.errored += row.status == "errored"


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
    seen = _SeenTrials()
    for _, row in read_placed_rows(index, replaced_lines(index)):
        if row.status not in _WITHOUT_VERDICT:
            seen.add(row)
    if not seen.targets:
        raise UsageError(f"nothing to compare with: the run {path.name} has no finished trials")
    _check(seen, path.name)
    base = Base(path.name, frozenset(name for name, paths in seen.paths.items() if len(paths) > 1))
    for _, row in read_placed_rows(index, replaced_lines(index)):  # again, since a million rows are too many to be held
        if row.status not in _WITHOUT_VERDICT:
            base.add(row)
    return base


@dataclass(slots=True)
class _SeenTrials:
    """What the rows of a run are of. `paths`: suite → its files. `early`: samples ended once a case was decided."""

    targets: set[str] = field(default_factory=set)
    paths: dict[str, set[str | None]] = field(default_factory=dict)
    early: bool = False

    def add(self, row: Row) -> None:
        """Add a finished trial."""
        self.targets.add(row.target)
        self.paths.setdefault(row.suite, set()).add(row.eval_path)
        self.early |= row.alpha is not None


def _check(seen: _SeenTrials, run: str) -> None:
    if seen.early:
        what = f"the run {run} sampled each case until decided, which biases its pass rate"
        raise UsageError(what, "compare with a run that has a fixed number of samples per case")
    targets = sorted(seen.targets)
    if len(targets) > 1:
        what = f"the run {run} has cases on {len(targets)} targets: {', '.join(targets[:10])}"
        raise UsageError(what, "compare with a run of one target")
