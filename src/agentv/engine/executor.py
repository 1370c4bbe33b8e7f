"""Where trials run: a port, and the implementation that all runs have which do not ask for another."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from agentv.engine.conversation import is_conversation, run_conversation
from agentv.engine.rivals import graded_rivals
from agentv.engine.services import World
from agentv.engine.trial import Answered, answer_of, run_trial
from agentv.model.trial import Trial, TrialResult


class TrialExecutor(Protocol):
    """Runs trials. What goes wrong in one is its errored result, and never raised.

    Answers reach the run's store before what was made of them is returned from here.
    """

    def run(self, trial: Trial) -> Awaitable[TrialResult]:
        """The result of one trial."""
        ...

    async def answer(self, trial: Trial) -> Answered | TrialResult:
        """The answer to a trial, not graded yet; its errored result where there is none."""
        ...

    async def compare(self, answered: Sequence[Answered | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared with each other, in their order."""
        ...

    def interrupt(self) -> None:
        """The run is interrupted: nobody waits for another attempt any more, nor for a place at a server."""
        ...


class LocalTrials:
    """Trials that run in this process, on its event loop."""

    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, trial: Trial) -> Awaitable[TrialResult]:
        """The result of one trial."""
        return run_conversation(trial, self._world) if is_conversation(trial) else run_trial(trial, self._world)

    async def answer(self, trial: Trial) -> Answered | TrialResult:
        """The answer to a trial; its errored result where there is none."""
        return await answer_of(trial, self._world)

    async def compare(self, answered: Sequence[Answered | TrialResult]) -> Sequence[TrialResult]:
        """The results of trials whose answers are compared."""
        return await graded_rivals(answered, self._world)

    def interrupt(self) -> None:
        """End all waiting."""
        self._world.traffic.interrupt()
