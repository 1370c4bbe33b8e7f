"""How well judges agree with people, in a run or by all labels of a project."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from agentv.app.labels.keeping import LabelStore
from agentv.app.view.project import Project, check_files, stamp_of
from agentv.stats.judges.check_result import JudgeCheck
from agentv.store.files.directory import is_being_written

if TYPE_CHECKING:
    from agentv.app.labels.checking import JudgedRun

_RUNS = 4
"""Runs, or assertions of them, whose judged answers are held: without their texts, some 200 bytes each."""


class CheckedJudges:
    """The judges of a project's runs. What a run says of them is read once, as long as its files stay."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._read: OrderedDict[tuple[Path, str], tuple[str, JudgedRun]] = OrderedDict()
        self._lock = Lock()

    def of_run(self, run_id: str, assertion: str, kept: LabelStore) -> JudgeCheck:
        """What `agentv judge check` finds of a run, by the labels as they are now.

        Raises:
            NoSuchRunError: there is none.
            UsageError: nothing of it can be checked: no judge graded, or there are no labels.
            StoreError: it or its labels cannot be read.
        """
        from agentv.app.labels.checking import check_answers  # imports numpy

        path = self._project.run(run_id)
        check_files(path)
        return check_answers(self._judged(path, assertion), kept)

    def _judged(self, path: Path, assertion: str) -> JudgedRun:
        from agentv.app.labels.checking import read_judged  # imports numpy

        key, stamp = (path, assertion), f"{stamp_of(path)} {is_being_written(path)}"
        with self._lock:
            found = self._read.get(key)
            if found is not None and found[0] == stamp:
                self._read.move_to_end(key)
                return found[1]
        read = read_judged(str(path), assertion or None)
        with self._lock:
            self._read[key] = stamp, read
            self._read.move_to_end(key)
            while len(self._read) > _RUNS:
                self._read.popitem(last=False)
        return read


def checked_labels(assertion: str, kept: LabelStore) -> JudgeCheck:
    """What `agentv judge check` finds of labels alone.

    Raises:
        NoLabelsError: there are none.
        StoreError: they cannot be read.
    """
    from agentv.app.labels.checking import check_labels  # imports numpy

    return check_labels(kept, assertion or None)
