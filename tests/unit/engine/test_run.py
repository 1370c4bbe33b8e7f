import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.engine.plan import Plan, PlanSettings
from agentv.engine.run import Run, RunOptions
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.workers import IndependentTrials, RunLimits, RunState, Workers
from agentv.model.run.events import RunInterrupted
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from doubles.engine_runs import BAD, GOOD, case, results_of, suite
from doubles.nested_grading import CallbackAssertion
from doubles.run_contexts import FakeRunContext
from doubles.stores import MemoryStore
from doubles.trials import finished, trial
from doubles.waiting import turns_until


@dataclass
class Scripted:
    """A target that answers by case id, awaiting the answer if necessary, and counts its concurrent calls."""

    answers: dict[str, Any] = field(default_factory=dict)
    at_once: int = 0
    most: int = 0
    asked: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    def answer(self, request: Any) -> Any:
        self.asked.append(request.case_id)
        given = self.answers.get(request.case_id, TargetResponse("fine"))
        if isinstance(given, BaseException):
            raise given
        return given if self.gate is None else self._wait(given)

    async def _wait(self, given: Any) -> Any:
        assert self.gate is not None
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await self.gate.wait()
        finally:
            self.at_once -= 1
        return given

    async def close(self) -> None:
        return


def run_of(plan: Plan, target: Scripted, *, workers: int = 4, store: MemoryStore | None = None, **given: Any) -> Run:
    run_context, options = FakeRunContext(lambda _: target, store or MemoryStore()), RunOptions(workers, **given)
    return Run("run", IndependentTrials(plan), plan.counts()[1], run_context=run_context, options=options)


async def happened(run: Run) -> list[Any]:
    return [event async for event in run.events()]


def results(events: list[Any]) -> dict[str, str]:
    return {one.trial.case.id: one.status for one in results_of(events)}


def run_all(plan: Plan, target: Scripted, **given: Any) -> list[Any]:
    async def main() -> list[Any]:
        return await happened(run_of(plan, target, **given))

    return asyncio.run(main())


def test_failed_and_errored_are_not_mixed_up():
    target = Scripted({"broken": Failure("timeout", "late"), "raises": ValueError("no"), "empty": TargetResponse("  ")})
    cases = [case("good"), case("bad", BAD), case("broken"), case("raises"), case("empty")]
    events = run_all(Plan([suite(*cases)], PlanSettings()), target)
    assert results(events) == {
        "good": "passed",
        "bad": "failed",
        "broken": "errored",
        "raises": "errored",
        "empty": "errored",
    }
    codes = {one.trial.case.id: one.error.code for one in results_of(events) if one.error}
    assert codes == {"broken": "timeout", "raises": "target-raised", "empty": "empty-output"}


def test_an_errored_grade_errs_the_trial_and_leaves_no_score():
    errored = Grade.errored("script-failed", "status 2")
    events = run_all(Plan([suite(case("a", GOOD, GOOD, GOOD, GOOD, errored))], PlanSettings()), Scripted())
    (result,) = results_of(events)
    assert result.status == "errored"
    assert result.score is None


def test_what_judging_took_is_counted_apart_and_that_of_errored_grades_too():
    first = replace(GOOD, cost_usd=0.25, token_usage=TokenUsage(10, 1, 11))
    broken = replace(Grade.errored("judge-timeout", "7 s"), cost_usd=0.5, token_usage=TokenUsage(5))
    events = run_all(Plan([suite(case("a", first, GOOD, broken), case("b"))], PlanSettings()), Scripted())
    found = {one.trial.case.id: one for one in results_of(events)}
    assert (found["a"].judge_cost_usd, found["a"].judge_token_usage) == (0.75, TokenUsage(15, 1, 11))
    assert (found["a"].cost_usd, found["a"].token_usage) == (None, None)
    assert (found["b"].judge_cost_usd, found["b"].judge_token_usage) == (None, None)


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("\u3000", "errored"),
        ("\u200b", "errored"),
        ("\x00\x01", "errored"),
        ("\x1b[0m\x1b[31m", "errored"),
        ("\x1b[31mred\x1b[0m", "passed"),
        ("\u200bé", "passed"),
    ],
)
def test_an_answer_shows_a_character(output, status):
    answers = Scripted({"a": TargetResponse(output)})
    assert results(run_all(Plan([suite(case("a"))], PlanSettings()), answers)) == {"a": status}


async def test_an_answer_is_kept_before_it_is_graded():
    seen, store = [], MemoryStore()

    def grade(_context: Any) -> Grade:
        seen.append(len(store.answers))
        return GOOD

    run = run_of(Plan([suite(case("a", CallbackAssertion(grade)))], PlanSettings()), Scripted(), store=store)
    await happened(run)
    assert seen == [1]


async def test_no_more_than_the_workers_run_at_once_and_all_of_them_do():
    cases = [case(str(number)) for number in range(20)]

    target = Scripted(gate=asyncio.Event())
    run = run_of(Plan([suite(*cases)], PlanSettings()), target, workers=7)
    watching = asyncio.create_task(happened(run))
    await turns_until(lambda: target.at_once == 7)
    target.gate.set()
    await watching
    assert target.most == 7
    assert len(target.asked) == 20


async def test_cases_are_pulled_one_by_one():
    pulled: list[str] = []

    class Counting:
        def __iter__(self):
            for number in range(1000):
                pulled.append(str(number))
                yield case(str(number))

        def __len__(self) -> int:
            return 1000

    target = Scripted(gate=asyncio.Event())
    run = run_of(Plan([replace(suite(), cases=Counting())], PlanSettings()), target, workers=5)
    pulled.clear()
    watching = asyncio.create_task(happened(run))
    await turns_until(lambda: target.at_once == 5)
    ahead = len(pulled)
    target.gate.set()
    await watching
    assert ahead == 5


async def test_stop_lets_running_trials_finish_and_starts_no_more():
    target = Scripted(gate=asyncio.Event())
    run = run_of(Plan([suite(*[case(str(number)) for number in range(10)])], PlanSettings()), target, workers=3)
    watching = asyncio.create_task(happened(run))
    await turns_until(lambda: target.at_once == 3)
    run.stop()
    await asyncio.sleep(0)
    target.gate.set()
    events = await watching
    assert set(results(events)) == {"0", "1", "2"}
    assert any(isinstance(event, RunInterrupted) and event.running == 3 for event in events)
    assert events[-1].interrupted
    assert events[-1].unstarted == 7


async def test_abort_leaves_no_row_of_what_ran():
    target = Scripted(gate=asyncio.Event())
    run = run_of(Plan([suite(case("a"), case("b"))], PlanSettings()), target, workers=2)
    watching = asyncio.create_task(happened(run))
    await turns_until(lambda: target.at_once == 2)
    run.abort()
    events, left = await watching, target.at_once
    assert results(events) == {}
    assert left == 0
    assert events[-1].unstarted == 2


@pytest.mark.parametrize(("answer", "seen"), [(Failure("x", "y"), "errored"), (TargetResponse("fine"), "failed")])
def test_fail_fast_starts_nothing_after_the_first_that_does_not_pass(answer, seen):
    cases = [case("0"), case("1", BAD), *(case(str(number)) for number in range(2, 9))]
    plan = Plan([suite(*cases)], PlanSettings())
    events = run_all(plan, Scripted({"1": answer}), workers=1, limits=RunLimits(fail_fast=True))
    assert results(events) == {"0": "passed", "1": seen}
    assert (events[-1].interrupted, events[-1].unstarted) == (False, 7)


def test_max_errors_stops_and_counts_what_was_not_run():
    target = Scripted({str(number): Failure("x", "y") for number in range(50)})
    cases = [case(str(number)) for number in range(50)]
    events = run_all(Plan([suite(*cases)], PlanSettings()), target, workers=1, limits=RunLimits(3))
    assert len(results(events)) == 3
    assert not events[-1].interrupted
    assert events[-1].unstarted == 47


async def test_a_bug_of_ours_is_raised_and_not_swallowed():
    class Broken(MemoryStore):
        def keep(self, call, answer: TargetResponse) -> None:
            raise OSError("disk full")

    run = run_of(Plan([suite(case("a"))], PlanSettings()), Scripted(), store=Broken())
    with pytest.raises(OSError, match="disk full"):
        await happened(run)


def state(*results: str, **limits: object) -> RunState:
    async def main() -> RunState:
        found = RunState(RunLimits(**limits))
        for status in results:
            found.add(finished(status))
        return found

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("results", "limits", "stopped"),
    [
        (["passed", "failed", "errored"], {}, None),
        (["passed", "skipped"], {"fail_fast": True}, None),
        (["passed", "failed"], {"fail_fast": True}, "fail-fast"),
        (["errored", "failed"], {"max_errors": 2}, None),
        (["errored", "failed", "errored"], {"max_errors": 2}, "max-errors"),
        (["passed"], {"decided": lambda result: result.status == "passed"}, "decided"),
        (["failed"], {"decided": lambda result: result.status == "passed"}, None),
        (["errored"], {"fail_fast": True, "max_errors": 1}, "fail-fast"),
    ],
)
def test_a_run_stops_at_the_first_limit_that_is_reached(results, limits, stopped):
    assert state(*results, **limits).stopped == stopped


@dataclass
class Running:
    """A runner whose trials pass, except for the named cases."""

    interrupted: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    ran: list[tuple[int, str]] = field(default_factory=list)

    async def run(self, one: Trial) -> Sequence[TrialResult]:
        task = asyncio.current_task()
        self.ran.append((int(task.get_name()), one.case.id))
        if one.case.id in self.broken:
            raise RuntimeError(one.case.id)
        return () if one.case.id in self.interrupted else (finished(trial=one),)


def worked(queue: IndependentTrials, runner: Running, *, number: int = 1, stop_at: str | None = None) -> Any:
    """Return the finished cases, the workers' results, and the state of a run done by this many workers."""

    async def main() -> Any:
        def stopping(result: TrialResult) -> bool:
            if result.trial.case.id == stop_at:
                state.stop("interrupt")
            return False

        state = RunState(RunLimits(decided=stopping))
        workers = Workers(queue, runner, SequentialSampler(), state, FakeRunContext(lambda _: None))
        queue.on_skipped = workers.take_skipped
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
