"""How well judges agree with people, in a run or by all labels of a project."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from agentv.app.results.project import Project, check_files, stamp_of
from agentv.extensions.labels.checking import (
    JudgeCheck,
    JudgedRun,
    check_answers,
    check_labels,
    labels_of_run,
    read_judged,
)
from agentv.extensions.labels.labelling import LabelStore
from agentv.model.run.labelled.labels import Label
from agentv.store.files.directory import is_being_written

_RUNS = 4
"""Runs, or assertions of them, whose judged answers are held: without their texts, some 200 bytes each."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A run whose judges were checked.

    Attributes:
        stamp: of its files when it was read.
        labels: by which it was checked last; empty: it was not.
    """

    stamp: str
    run: JudgedRun
    labels: list[Label] = field(default_factory=list)
    check: JudgeCheck | None = None


class CheckedJudges:
    """The judges of a project's runs: each is read once and checked once, as long as its files and the labels stay."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._held: OrderedDict[tuple[Path, str], _Held] = OrderedDict()
        self._lock = Lock()

    def of_run(self, run_id: str, assertion: str, kept: LabelStore) -> JudgeCheck:
        """What `agentv judge check` finds of a run, by the labels as they are now.

        Raises:
            NoSuchRunError: there is none.
            UsageError: nothing of it can be checked: no judge graded, or there are no labels.
            StoreError: it or its labels cannot be read.
        """
        path = self._project.run(run_id)
        check_files(path)
        held = self._read(path, assertion)
        labels = labels_of_run(held.run, kept)
        if held.check is not None and held.labels == labels:
            return held.check
        check = check_answers(held.run, labels)
        self._hold((path, assertion), replace(held, labels=labels, check=check))
        return check

    def _read(self, path: Path, assertion: str) -> _Held:
        key, stamp = (path, assertion), f"{stamp_of(path)} {is_being_written(path)}"
        with self._lock:
            found = self._held.get(key)
        if found is not None and found.stamp == stamp:
            return found
        return self._hold(key, _Held(stamp, read_judged(str(path), assertion or None)))

    def _hold(self, key: tuple[Path, str], held: _Held) -> _Held:
        with self._lock:
            self._held[key] = held
            self._held.move_to_end(key)
            while len(self._held) > _RUNS:
                self._held.popitem(last=False)
        return held


def checked_labels(assertion: str, kept: LabelStore) -> JudgeCheck:
    """What `agentv judge check` finds of labels alone.

    Raises:
        NoLabelsError: there are none.
        StoreError: they cannot be read.
    """
    return check_labels(kept, assertion or None)
