"""How well judges agree with people, in a run or by all labels of a project."""

from __future__ import annotations

from agentv.app.labels.keeping import LabelStore
from agentv.app.view.project import Project, check_files
from agentv.stats.judges.check_result import JudgeCheck


def checked_judges(project: Project, run_id: str, assertion: str, kept: LabelStore) -> JudgeCheck:
    """What `agentv judge check` finds of a run.

    Raises:
        NoSuchRunError: there is none.
        UsageError: nothing of it can be checked: no judge graded, or there are no labels.
        StoreError: it or its labels cannot be read.
    """
    from agentv.app.labels.checking import check_judges  # imports numpy

    path = project.run(run_id)
    check_files(path)
    return check_judges(str(path), assertion or None, kept)


def checked_labels(assertion: str, kept: LabelStore) -> JudgeCheck:
    """What `agentv judge check` finds of labels alone.

    Raises:
        NoLabelsError: there are none.
        StoreError: they cannot be read.
    """
    from agentv.app.labels.checking import check_labels  # imports numpy

    return check_labels(kept, assertion or None)
