"""Denied permissions: an answer after one counts only where the agent has done something."""

from __future__ import annotations

from agentv.model.run.trial import Trial
from agentv.model.values.changes import WorkspaceChanges
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace


def denied(trial: Trial, trace: Trace | None, changes: WorkspaceChanges | None) -> Failure | None:
    """The failure of a trial in which a permission was denied and the agent changed nothing.

    Args:
        trial: whose target says whether that is an error.
        trace: of the agent; None: it reports none.
        changes: against the baseline; None: there is no workspace.
    """
    if trace is None or changes is None or getattr(trial.target.settings, "on_denied", "grade") != "error":
        return None
    if changes.files or not trace.denials or trace.worked_elsewhere:
        return None
    return Failure("permission-denied", trace.denial_message)
