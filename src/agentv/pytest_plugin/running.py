"""The run behind the tests: one for all eval files of a process, on a thread of its own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Condition, Thread

from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared
from agentv.app.running.drive import GRACE_S
from agentv.app.running.evaluate import Outcome, evaluate_async
from agentv.engine.dependency_order import OnDemandScheduler
from agentv.engine.plan import Plan
from agentv.errors import AgentvError, StoreError
from agentv.model.run.events import Event, TrialFinished
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.formatting import money, plural
from agentv.model.values.response import Failure
from agentv.reports.text import shown_from
from agentv.user_code.guard import attempt


class Runs:
    """The eval files of a pytest session, and the run of their cases.

    In a single process, all selected cases run concurrently, as in `agentv eval`, while pytest goes through its tests.
    With pytest-xdist, each process runs a case when its test starts.

    Attributes:
        noted: number of cases that passed with a failed check.

    Args:
        one_by_one: run each case when its test starts, because other processes run tests too.
    """

    def __init__(self, *, one_by_one: bool) -> None:
        self.noted = 0
        self._one_by_one = one_by_one
        self._prepared: list[Prepared] = []
        self._by_case: dict[tuple[int, str], list[Trial]] = defaultdict(list)
        self._requested: set[str] = set()
        self._results: dict[str, TrialResult] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Outcome] | None = None
        self._scheduler: OnDemandScheduler | None = None
        self._outcome: Outcome | None = None
        self._error: AgentvError | None = None

    def add(self, prepared: Prepared) -> None:
        """Add an eval file, before the first test starts."""
        self._prepared.append(prepared)

    def begin(self, selected: Iterable[Sequence[Trial]]) -> None:
        """Start the run with the trials of the selected cases; do nothing if it was started."""
        if self._thread is not None:
            return
        for prepared in self._prepared:
            for trial in prepared.plan:
                if trial.suite.links or trial.comparison_group:
                    self._by_case[id(trial.suite), trial.case.id].append(trial)
        self._thread = Thread(target=self._run, name="agentv", daemon=True)
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._scheduler is not None or self._over)
        if not self._one_by_one:
            self._request([trial for trials in selected for trial in trials])

    def results_of(self, trials: Sequence[Trial]) -> list[TrialResult]:
        """Wait for trials and return their results; fewer if the run ended early.

        Raises:
            StoreError: the results could not be saved.
        """
        self._request(trials)
        keys = [_identity(trial) for trial in trials]
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._ended(keys))
        if self._error is not None:
            raise self._error
        return [self._results[key] for key in keys if key in self._results]  # not removed: a test may be run again

    def end(self) -> None:
        """Start no more trials, wait for running ones for the grace period, and cancel the rest."""
        thread, loop, scheduler, task = self._thread, self._loop, self._scheduler, self._task
        if thread is None or loop is None or scheduler is None or task is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(scheduler.close)
        thread.join(GRACE_S)
        if thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
            thread.join(GRACE_S)

    def notes(self) -> list[str]:
        """Return lines for the terminal summary: number of cases, cost, path of the results, and notes."""
        outcome = self._outcome
        if outcome is None:
            return []
        summary = outcome.summary
        spent = f", {money(summary.spent_usd)}" if summary.spent_usd is not None else ""
        lines = [f"{plural(summary.cases.total, 'case')}{spent}: {shown_from(str(outcome.directory), str(Path.cwd()))}"]
        if self.noted:
            lines.append(f"{plural(self.noted, 'case')} passed with a failed check: -rP shows which")
        problem = (outcome.problem,) if outcome.problem else ()
        return [*lines, *outcome.notes, *problem]

    def _ended(self, keys: Sequence[str]) -> bool:
        """Return whether the samples of a case are complete: all have results, or sampling stopped early."""
        found = [self._results[key] for key in keys if key in self._results]
        return len(found) == len(keys) or any(result.stopped is not None for result in found)

    @property
    def _over(self) -> bool:
        return self._outcome is not None or self._error is not None

    def _request(self, trials: Sequence[Trial]) -> None:
        loop, scheduler = self._loop, self._scheduler
        new = [trial for trial in trials if _identity(trial) not in self._requested]
        if not new or loop is None or scheduler is None or self._over:
            return
        to_run = [one for trial in new for one in self._needed(trial, set())]
        self._requested.update(map(_identity, new))
        loop.call_soon_threadsafe(scheduler.ask, to_run)

    def _needed(self, trial: Trial, seen: set[tuple[int, str]]) -> Iterator[Trial]:
        """Yield the trials of the case's dependencies, then the trial with those that it is compared with."""
        spot = id(trial.suite), trial.case.id
        if spot in seen:
            return
        seen.add(spot)
        link = trial.suite.links.get(trial.case.id)
        for needed in link.needs if link is not None else ():
            for other in self._by_case[id(trial.suite), needed]:
                yield from self._needed(other, seen)
        yield from self._by_case[spot] if link is not None or trial.comparison_group else (trial,)

    def _run(self) -> None:
        found = attempt(asyncio.run, self._evaluate(), "internal-error", "agentv")
        with self._changed:
            if isinstance(found, Failure) and self._outcome is None and self._error is None:
                self._error = StoreError(found.message)
            self._changed.notify_all()

    async def _evaluate(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(evaluate_async(self._merged(), self._on_event, demand=self._set_scheduler))
        try:
            self._outcome = await self._task
        except AgentvError as error:
            self._error = error

    def _set_scheduler(self, scheduler: OnDemandScheduler) -> None:
        with self._changed:
            self._scheduler = scheduler
            self._changed.notify_all()

    def _merged(self) -> Prepared:
        """Return one run of all files."""
        first = self._prepared[0]
        suites = tuple(suite for prepared in self._prepared for suite in prepared.suites)
        plan = Plan(suites, first.plan.settings)
        paths = tuple(path for prepared in self._prepared for path in prepared.settings.paths)
        diagnostics = tuple(one for prepared in self._prepared for one in prepared.diagnostics)
        return Prepared(replace(first.settings, paths=paths), suites, plan, plan.counts(), diagnostics)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, TrialFinished):
            with self._changed:
                self._results[_identity(event.planned or event.result.trial)] = event.result
                self._changed.notify_all()


def _identity(trial: Trial) -> str:
    """Return an identifier of a trial. Keys of trials are not unique, because two files may have the same case."""
    return f"{id(trial.suite)} {trial.key}"
