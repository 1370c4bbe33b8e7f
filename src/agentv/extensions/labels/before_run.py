"""Labels and gates before a run: labels are read before any call, and what can already be known is refused."""

from __future__ import annotations

from agentv.app.planning.preparation import Prepared, results_of
from agentv.errors import StoreError, UsageError
from agentv.model.run.labelled.labels import ReadLabels
from agentv.model.suite.suite import Suite


def has_gate(suite: Suite) -> bool:
    """Whether labels decide the run of a suite."""
    return suite.run.gate is not None or suite.judge_minimums is not None


def labels_before(prepared: Prepared) -> ReadLabels:
    """The labels of the suites that run, as they are before anything is called.

    Raises:
        StoreError: labels cannot be read that decide the run.
        UsageError: they show already that a judge is worse than its suite allows.
    """
    suites = prepared.suites
    root, gated = results_of(suites), any(map(has_gate, suites))
    if not gated and not (root / ".agentv" / "labels").is_dir():
        return ReadLabels()
    from agentv.extensions.labels.shown_rates import labels_of_suites  # most repositories have no labels

    found = labels_of_suites((suite.name for suite in suites), root)
    if not gated:
        return found
    if found.problem is not None:
        raise StoreError(found.problem)
    if found.labels:
        _refuse_judges(prepared, found)
    return found


def _refuse_judges(prepared: Prepared, labels: ReadLabels) -> None:
    if all(suite.judge_minimums is None for suite in prepared.suites):
        return
    from agentv.extensions.labels.known_judges import known_refusals  # imports numpy

    refusals = list(known_refusals(prepared.plan, labels.labels))
    if refusals:
        raise UsageError(
            "\n".join(refusals), "improve the judge or its prompt, or choose another one; nothing was called"
        )
