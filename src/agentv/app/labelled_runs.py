"""What labels by people add to runs, which the extension `labels` computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.model.run.labels import Ratings, ReadLabels
from agentv.model.run.summary import Summary
from agentv.model.suite.suite import Suite
from agentv.registry.extensions import PORTS, loaded, registered

if TYPE_CHECKING:
    from agentv.app.results.stored import StoredRun
    from agentv.model.run.runs import ListedRun

_PORT = "LabelledRuns"


class LabelledRuns:
    """What labels add where nothing computes it: nothing. The extension overrides all of it."""

    def before(self, suites: tuple[Suite, ...]) -> ReadLabels:  # noqa: ARG002  # of those that override it, as below
        """Return the labels of the suites that run, as they are before anything is called.

        Raises:
            StoreError: labels cannot be read that decide the run.
        """
        return ReadLabels()

    def of_suites(self, suites: Iterable[str], root: Path) -> ReadLabels:  # noqa: ARG002
        """Return the labels of suites, by their names, as they lie on the disk."""
        return ReadLabels()

    def ratings(self, run: Path, root: Path, kept: Any = None) -> Ratings:  # noqa: ARG002
        """Return the latest rating of each person of the answers that a run has now.

        Args:
            run: its directory.
            root: of the project.
            kept: where a server keeps labels; None: in the files of the project.

        Raises:
            StoreError: they cannot be read.
        """
        return {}

    def with_rates(self, summary: Summary, run: StoredRun) -> Summary:  # noqa: ARG002
        """Return the totals of a run with its corrected rates.

        Raises:
            StoreError: the run cannot be read.
        """
        return summary

    def with_gates(self, summary: Summary, run: StoredRun, suites: Sequence[Suite], *, changed: bool) -> Summary:  # noqa: ARG002
        """Return the totals of a run that has just ended, with what its gates come to.

        Args:
            summary: of the run.
            run: with the labels from before it began.
            suites: that it ran.
            changed: its labels are others than those before an earlier process of it.

        Raises:
            StoreError: the run cannot be read.
        """
        return summary


def labelled_runs() -> LabelledRuns:
    """What labels add to runs."""
    found: LabelledRuns = loaded(PORTS, _PORT)() if _PORT in registered(PORTS) else LabelledRuns()
    return found


def has_gate(suite: Suite) -> bool:
    """Whether labels decide the run of a suite."""
    return suite.run.gate is not None or suite.judge_minimums is not None


def shown_run(run: StoredRun) -> ListedRun:
    """The list entry of a run, with the comparisons of its parts and with its corrected rates.

    Raises:
        StoreError: its rows cannot be read.
    """
    from agentv.app.results.listing import compared_run  # reads indexes, which a run that ends does not

    found = compared_run(run.path)
    if found.summary is None:
        return found
    return replace(found, summary=labelled_runs().with_rates(found.summary, run))
