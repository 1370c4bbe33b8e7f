"""`agentv eval --list`: what would run. Nothing is called, and nothing is written (SPEC section 12)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from agentv.app.planning.preparation import Prepared, results_of
from agentv.app.results.finding import find_run
from agentv.errors import StoreError
from agentv.model.run.runs import ListedCase, ListedTotals
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.suite.workspace import Variant
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.model.values.usage import total_cost
from agentv.registry.fields import DeclaredAssertion
from agentv.store.files.directory import INDEX, results_directory
from agentv.store.rows.reading import finished_keys, read_rows


class PlanListing:
    """The cases of a prepared run, one after the other, so that a million need no memory.

    Attributes:
        totals: of the cases listed so far; whole when the iteration has ended.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.totals = ListedTotals(generators=tuple(name for suite in prepared.suites for name in suite.generators))
        self._plan = prepared.plan
        self._cases = NumberedHashes()
        self.totals.at_most = prepared.plan.ends_early
        self._chosen = prepared.chosen
        results = results_of(prepared.suites)
        settings = prepared.settings
        self._done: frozenset[str] | None = None
        if settings.resume_run is not None:
            index = find_run(settings.resume_run, results, settings.out) / INDEX
            again = {row.key for row in read_rows(index) if row.status == settings.rerun}
            self._done = frozenset(finished_keys(index)) - again
        self._prices = Prices(results_directory(results))

    def __iter__(self) -> Iterator[ListedCase]:
        """Every case on every target that would run.

        Raises:
            StoreError: the rows of the run to go on with cannot be read.
        """
        for planned in self._plan.planned_cases():
            trials = self._trials(*planned)
            if trials:
                yield self._counted(planned, trials)

    def _trials(self, suite: Suite, case: Case, target: TargetSpec, variant: Variant | None) -> int:
        if self._done is None:
            return self._plan.repeat(suite, case)
        keys = (trial.key for trial in self._plan.samples(suite, case, target, variant))
        return sum(key not in self._done and (self._chosen is None or key in self._chosen) for key in keys)

    def _counted(self, planned: tuple[Suite, Case, TargetSpec, Variant | None], trials: int) -> ListedCase:
        suite, case, target, variant = planned
        judged, scripted = _verdicts(case.assertions)
        listed = ListedCase(
            test_id=case.id,
            suite=suite.name,
            eval_path=suite.path or None,
            place=(case.span.file, case.span.line) if case.span and suite.path else None,
            target=target.name,
            prompt_id=case.prompt_id,
            repeat=self._plan.repeat(suite, case),
            trials=trials,
            judge_calls=judged * trials,
            script_calls=scripted * trials,
            variant=None if variant is None else variant.name,
        )
        totals = self.totals
        self._cases.number(text_hash(f"{suite.path}\0{suite.name}\0{case.id}"))
        totals.cases = len(self._cases)
        totals.trials += trials
        totals.target_calls += trials
        totals.judge_calls += listed.judge_calls
        totals.script_calls += listed.script_calls
        price = self._prices.of(suite.name, target.name)
        if price is None and getattr(target.settings, "free", False) and not judged and not scripted:
            price = 0.0
        if price is None:
            totals.unpriced += trials
        else:
            totals.cost_usd = (totals.cost_usd or 0.0) + price * trials
        return listed


def _verdicts(entries: tuple[AssertionEntry, ...]) -> tuple[int, int]:
    """How many verdicts a list of assertions asks judges for, and how many calls its scripts may make at most."""
    verdicts = calls = 0
    for entry in entries:
        assertion = entry.assertion
        if entry.inner:
            nested, more = _verdicts(entry.inner)
            verdicts, calls = verdicts + nested, calls + more
        elif isinstance(assertion, DeclaredAssertion) and assertion.needs_judge:
            access = getattr(assertion, "judge_access", None)
            most = getattr(access, "max_calls", None)
            if most is None:
                verdicts += getattr(assertion, "votes", 1)
            else:
                calls += most
    return verdicts, calls


RUNS = 5
"""Earlier runs that are looked at, the last ones."""

ROWS = 2_000
"""Rows of each that are read: a mean needs no more."""


class Prices:
    """Mean cost of a trial by suite and target, including judges; read on first access.

    Args:
        results: the directory of runs; it may not exist.
    """

    def __init__(self, results: Path) -> None:
        self._results = results
        self._means: dict[tuple[str, str], float] | None = None

    def of(self, suite: str, target: str) -> float | None:
        """US dollars; None where no row says what such a trial cost."""
        if self._means is None:
            self._means = self._read()
        return self._means.get((suite, target))

    def _read(self) -> dict[tuple[str, str], float]:
        """The last run that knows a price is the one that counts for it."""
        means: dict[tuple[str, str], float] = {}
        for run in self._runs():
            for key, mean in _means_of(run / INDEX).items():
                means.setdefault(key, mean)
        return means

    def _runs(self) -> list[Path]:
        try:
            found = sorted(path for path in self._results.iterdir() if (path / INDEX).is_file())
        except OSError:
            return []
        return found[: -RUNS - 1 : -1]


def _means_of(index: Path) -> dict[tuple[str, str], float]:
    spent: dict[tuple[str, str], list[float]] = defaultdict(list)
    try:
        for row in islice(read_rows(index), ROWS):
            if row.cost_usd is not None:
                cost = total_cost(row.cost_usd, row.judge_cost_usd, row.user_cost_usd)
                spent[row.suite, row.target].append(cost or 0.0)
    except (StoreError, OSError):
        return {}  # an estimate is no reason to refuse; who opens that run says what is wrong with it
    return {key: sum(costs) / len(costs) for key, costs in spent.items()}
