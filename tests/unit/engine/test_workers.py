import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentv.engine.run_state import RunState
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.workers import IndependentTrials, Workers
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import Failure
from doubles.run_contexts import GivenRunContext
from doubles.trials import finished, trial


@dataclass
class Running:
    """A runner whose trials pass; one whose case is named ends otherwise."""

    interrupted: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    ran: list[tuple[int, str]] = field(default_factory=list)

    async def run(self, one: Trial) -> Sequence[TrialResult]:
        task = asyncio.current_task()
        assert task is not None
        self.ran.append((int(task.get_name()), one.case.id))
        if one.case.id in self.broken:
            raise RuntimeError(one.case.id)
        return () if one.case.id in self.interrupted else (finished(trial=one),)


def worked(queue: IndependentTrials, runner: Running, *, number: int = 1, stop_at: str | None = None) -> Any:
    """The state of a run when so many workers have done its work, and how they ended."""

    async def main() -> Any:
        state = RunState()
        workers = Workers(queue, runner, SequentialSampler(), state, GivenRunContext(lambda _: None))
        add = state.add

        def stopping(result: TrialResult) -> None:
            add(result)
            if result.trial.case.id == stop_at:
                state.stop("interrupt")

        state.add = stopping
        tasks = [asyncio.create_task(workers.work(), name=str(one)) for one in range(number)]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        return [one.trial.case.id for one in state.finished], ended, state

    return asyncio.run(main())


def test_a_worker_whose_trial_was_interrupted_takes_no_other():
    found, _, _ = worked(IndependentTrials([trial(name) for name in "abc"]), Running(interrupted=frozenset("b")))
    assert found == ["a"]


@pytest.mark.parametrize("late", [False, True])
def test_trials_that_will_not_run_are_handed_in_as_skipped(late):
    queue = IndependentTrials([trial("a")])
    skipped = (trial("b"), Failure("dependency-not-passed", "'a' failed"))
    runner = Running()
    if late:
        run = runner.run

        async def skipping(one: Trial) -> Sequence[TrialResult]:
            queue.skipped.append(skipped)
            return await run(one)

        runner.run = skipping
    else:
        queue.skipped.append(skipped)
    found, _, state = worked(queue, runner)
    assert found == ["a", "b"]
    assert state.finished[1].status == "skipped"
