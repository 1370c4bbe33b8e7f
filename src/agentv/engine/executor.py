"""The executor port, and the local executor."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from agentv.engine.comparison_group import graded_rivals
from agentv.engine.conversation import is_conversation, run_conversation
from agentv.engine.services import RunContext
from agentv.engine.trial import Answered, answer_of, run_trial
from agentv.model.run.trial import Trial, TrialResult
from agentv.user_code.processes.supervised import leftovers


class TrialExecutor(Protocol):
    """Runs trials. What goes wrong in one is its errored result, and never raised.

    Answers reach the run's store before what was made of them is returned from here.
    """

    def run(self, trial: Trial) -> Awaitable[TrialResult]:
        """The result of one trial."""
        ...

    async def answer(self, trial: Trial) -> Answered | TrialResult:
        """The answer to a trial, not graded yet; its errored result if there is none."""
        ...

    async def compare(self, answered: Sequence[Answered | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared with each other, in their order."""
        ...

    def interrupt(self) -> None:
        """The run is interrupted: end all waits for retries and for servers."""
        ...


class LocalTrials:
    """Trials that run in this process, on its event loop."""

    def __init__(self, world: RunContext) -> None:
        self._world = world

    async def run(self, trial: Trial) -> TrialResult:
        """The result of one trial. What it leaves running is ended."""
        found = leftovers()
        number = found.begin()
        try:  # no context manager, since this is done for every trial
            if is_conversation(trial):
                return await run_conversation(trial, self._world)
            return await run_trial(trial, self._world)
        finally:
            found.end(number)

    async def answer(self, trial: Trial) -> Answered | TrialResult:
        """The answer to a trial; its errored result if there is none."""
        with _ending_leftovers():
            return await answer_of(trial, self._world)

    async def compare(self, answered: Sequence[Answered | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared."""
        with _ending_leftovers():
            return await graded_rivals(answered, self._world)

    def interrupt(self) -> None:
        """End all waiting."""
        self._world.throttle.interrupt()


@contextmanager
def _ending_leftovers() -> Iterator[None]:
    found = leftovers()
    trial = found.begin()
    try:
        yield
    finally:
        found.end(trial)
