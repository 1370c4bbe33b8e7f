import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.engine.calls.retry_policy import INTERRUPTED, UNAFFORDABLE
from agentv.engine.workers import RunState, TrialRunner
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import CallFailure, Failure
from doubles.run_contexts import FakeRunContext
from doubles.trials import finished, trial
from doubles.waiting import turns

REFUSED = CallFailure("http-status", "HTTP 401", status=401, stops=True)


@dataclass
class Executing:
    """An executor that returns each trial's result by case id, and counts the trials in progress."""

    results: dict[str, TrialResult] = field(default_factory=dict)
    state: RunState | None = None
    gate: asyncio.Event | None = None
    at_once: int = 0
    most: int = 0
    counted: list[int] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    async def run(self, one: Trial) -> TrialResult:
        self.ran.append(one.case.id)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if self.state is not None:
            self.counted.append(len(self.state.begun))
        if self.gate is not None:
            await self.gate.wait()
        self.at_once -= 1
        return replace(self.results.get(one.case.id, finished()), trial=one)

    answer = run

    async def compare(self, answered: Sequence[Any]) -> Sequence[TrialResult]:
        return list(answered)

    def interrupt(self) -> None: ...


def running(
    *trials: Trial, executor: Executing, comparison_group: Iterable[Trial] = (), failure: CallFailure | None = None
) -> tuple[list[Sequence[TrialResult]], RunState]:
    """Return each trial's results and the final state of the run; `failure` has stopped the trials' target."""

    async def main() -> tuple[list[Sequence[TrialResult]], RunState]:
        run_state, context = RunState(), FakeRunContext(lambda _: None)
        executor.state = run_state
        if failure is not None:
            context.throttle.record_stop(trials[0].target, failure)
        runner = TrialRunner(executor, context, run_state, lambda number: list(comparison_group)[:number])
        return [await runner.run(one) for one in trials], run_state

    return asyncio.run(main())


def errored(error: Failure) -> TrialResult:
    return finished("errored", error=error)


@pytest.mark.parametrize(
    ("error", "stopped"),
    [(INTERRUPTED, None), (Failure(UNAFFORDABLE, "x"), "budget"), (Failure(f"judge-{UNAFFORDABLE}", "x"), "budget")],
)
def test_a_trial_whose_call_was_not_made_has_no_result(error, stopped):
    (results,), state = running(trial("a"), executor=Executing({"a": errored(error)}))
    assert (results, state.stopped) == ((), stopped)


def test_a_trial_whose_target_is_stopped_is_not_run():
    executor = Executing()
    (results,), _ = running(trial("a"), executor=executor, failure=REFUSED)
    assert [(one.status, one.attempts, one.error.code) for one in results] == [("skipped", 0, "target-stopped")]
    assert executor.ran == []


async def test_a_target_gets_no_more_calls_at_once_than_it_may():
    limited = trial("a")
    limited = replace(limited, target=replace(limited.target, workers=2))

    executor = Executing(gate=asyncio.Event())
    runner = TrialRunner(executor, FakeRunContext(lambda _: None), RunState(), lambda _: ())
    tasks = [asyncio.ensure_future(runner.run(limited)) for _ in range(5)]
    await turns()
    executor.gate.set()
    await asyncio.gather(*tasks)
    assert (executor.most, len(executor.ran)) == (2, 5)


def test_a_case_waits_for_the_queries_of_its_suite_and_does_not_begin_once_the_run_has_stopped():
    query = trial("query")
    query = replace(query, case=replace(query.case, asks_judge=True))
    case = replace(trial("case"), suite=query.suite)

    async def main(stops: bool) -> tuple[list[str], Sequence[TrialResult]]:
        executor, state = Executing(gate=asyncio.Event()), RunState()
        runner = TrialRunner(executor, FakeRunContext(lambda _: None), state, lambda _: ())
        tasks = [asyncio.ensure_future(runner.run(one)) for one in (query, case)]
        await turns()
        before = list(executor.ran)
        if stops:
            state.stop("interrupt")
        executor.gate.set()
        return before, (await asyncio.gather(*tasks))[1]

    before, results = asyncio.run(main(stops=False))
    assert (before, [one.trial.case.id for one in results]) == (["query"], ["case"])
    assert asyncio.run(main(stops=True)) == (["query"], ())
