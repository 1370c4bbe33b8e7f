"""What labels add to runs, as the core asks for it: labels decide before any call what can be known by then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentv.app.labelled_runs import CompareRates, LabelledRuns, has_gate
from agentv.app.planning.preparation import results_of
from agentv.app.results.stored import StoredRun
from agentv.engine.plan import Plan
from agentv.errors import StoreError, UsageError
from agentv.model.run.labelled.labels import Ratings, ReadLabels
from agentv.model.run.summary import Summary
from agentv.model.suite.suite import Suite


class OfRuns(LabelledRuns):
    """What labels add. Each part is imported at its first use: most repositories have no labels."""

    def before(self, suites: tuple[Suite, ...], plan: Plan) -> ReadLabels:
        """Return the labels of the suites that run, if they decide it or there are any."""
        root, gated = results_of(suites), any(map(has_gate, suites))
        if not gated and not (root / ".agentv" / "labels").is_dir():
            return ReadLabels()
        found = self.of_suites((suite.name for suite in suites), root)
        if not gated:
            return found
        if found.problem is not None:
            raise StoreError(found.problem)
        if found.labels:
            _refuse_judges(suites, plan, found)
        return found

    def of_suites(self, suites: Iterable[str], root: Path) -> ReadLabels:
        """Return the labels of suites; a file that cannot be read is a problem of them."""
        from agentv.extensions.labels.shown_rates import labels_of_suites

        return labels_of_suites(suites, root)

    def ratings(self, run: Path, root: Path, kept: Any = None) -> Ratings:
        """Return the latest rating of each person of the answers that a run has now."""
        from agentv.extensions.labels.keeping import LabelFiles
        from agentv.extensions.labels.ratings import ratings_of_run

        return ratings_of_run(run, kept or LabelFiles(root))

    def with_rates(self, summary: Summary, run: StoredRun) -> Summary:
        """Return the totals with corrected rates, where a judge graded."""
        from agentv.extensions.labels.shown_rates import with_corrected_rates

        return with_corrected_rates(summary, run)

    def with_gates(self, summary: Summary, run: StoredRun, suites: Sequence[Suite], *, changed: bool) -> Summary:
        """Return the totals with what the gates come to."""
        from agentv.extensions.labels.shown_rates import with_gates

        return with_gates(summary, run, suites, changed=changed)

    def comparing(self) -> CompareRates:
        """Return what compares the rates of runs."""
        from agentv.extensions.labels.compared_rates import RatesOfRuns, compared_rates

        return partial(compared_rates, known=RatesOfRuns())


def _refuse_judges(suites: Sequence[Suite], plan: Plan, labels: ReadLabels) -> None:
    if all(suite.judge_minimums is None for suite in suites):
        return
    from agentv.extensions.labels.known_judges import known_refusals  # imports numpy

    refusals = list(known_refusals(plan, labels.labels))
    if refusals:
        raise UsageError(
            "\n".join(refusals), "improve the judge or its prompt, or choose another one; nothing was called"
        )
