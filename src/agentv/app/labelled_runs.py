"""Interface to the extension `labels`: ratings, corrected rates and gates that human labels add to runs."""

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
    """What labels add to runs. These defaults add nothing; the extension `labels` overrides every method."""

    def before(self, suites: tuple[Suite, ...]) -> ReadLabels:  # noqa: ARG002  # overrides use the parameters
        """Return the labels of the suites to run, read before any call is made.

        Raises:
            StoreError: labels that decide a gate of the run cannot be read.
        """
        return ReadLabels()

    def of_suites(self, suites: Iterable[str], root: Path) -> ReadLabels:  # noqa: ARG002
        """Return the labels now on disk of the suites with these names."""
        return ReadLabels()

    def ratings(self, run: Path, root: Path, store: Any = None) -> Ratings:  # noqa: ARG002
        """Return each person's latest ratings of the current answers of a run.

        Args:
            run: directory of the run.
            root: of the project.
            store: a server's store of labels; None: the files of the project.

        Raises:
            StoreError: the labels cannot be read.
        """
        return {}

    def with_rates(self, summary: Summary, run: StoredRun) -> Summary:  # noqa: ARG002
        """Return the totals of a run with its corrected rates.

        Raises:
            StoreError: the run cannot be read.
        """
        return summary

    def with_gates(self, summary: Summary, run: StoredRun, suites: Sequence[Suite], *, changed: bool) -> Summary:  # noqa: ARG002
        """Return the totals of a run that has just ended, with the results of its gates.

        Args:
            summary: of the run.
            run: with the labels from before it began.
            suites: the suites that ran.
            changed: the labels changed since an earlier process of the run.

        Raises:
            StoreError: the run cannot be read.
        """
        return summary


def labelled_runs() -> LabelledRuns:
    """Return the implementation of the extension `labels`, or the defaults if it is not installed."""
    found: LabelledRuns = loaded(PORTS, _PORT)() if _PORT in registered(PORTS) else LabelledRuns()
    return found


def has_gate(suite: Suite) -> bool:
    """Whether labels decide a gate of a suite."""
    return suite.run.gate is not None or suite.judge_minimums is not None


def shown_run(run: StoredRun) -> ListedRun:
    """Return the list entry of a run, with the comparisons of its parts and with its corrected rates.

    Raises:
        StoreError: its rows cannot be read.
    """
    from agentv.app.results.listing import compared_run  # imported here: only lists of runs read indexes

    found = compared_run(run.path)
    if found.summary is None:
        return found
    return replace(found, summary=labelled_runs().with_rates(found.summary, run))
