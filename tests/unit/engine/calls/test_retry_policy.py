"""Targets and judges that refuse everything: one error, and no further calls."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.engine.calls.call_throttle import CallThrottle
from agentv.engine.calls.retry_policy import TargetStop, is_interrupted, is_stopped, is_unaffordable
from agentv.engine.plan import Plan, PlanSettings
from agentv.engine.run import Run, RunOptions
from agentv.engine.workers import IndependentTrials, RunLimits
from agentv.model.run.events import RunFinished, TargetStopped
from agentv.model.run.grade import Grade
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.ports import TargetRequest
from doubles.engine_runs import case, results_of
from doubles.nested_grading import entry
from doubles.run_contexts import FakeRunContext, FixedClock
from doubles.servers import Server, spec
from doubles.virtual_time import run_at_once

REFUSED = CallFailure("http-status", "HTTP 401 Unauthorized", status=401, stops=True)
BUSY = CallFailure("http-status", "HTTP 500", retryable=True, status=500)


class Clock(FixedClock):
    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@dataclass(frozen=True)
class Judged:
    """An assertion that calls a judge."""

    judge: str | None = None
    needs_judge: bool = True

    def label(self) -> str:
        return ""

    async def grade(self, context: Any) -> Grade:
        found = await context.services.judge(self.judge).ask("?")
        return Grade.errored(f"judge-{found.code}", found.message) if isinstance(found, Failure) else Grade.of(True, "")


@dataclass(frozen=True)
class Nested:
    """A set around an assertion that calls a judge."""

    assert_: tuple[AssertionEntry, ...]

    def label(self) -> str:
        return ""

    def grade(self, context: Any) -> Grade:
        return Grade.of(True, "")


@dataclass
class Asked:
    """A judge that returns its target's response."""

    target: Any

    async def ask(self, prompt: str) -> Any:
        return await self.target.answer(TargetRequest("", prompt, ()))


def ran(suite: Suite, servers: dict[str, Server], *, workers: int = 1, stop_after: int | None = None, **given: Any):
    """Return the statuses by case and target, and all events."""

    async def main() -> list[Any]:
        throttle, connected = CallThrottle(workers, lambda: 1.0), {}

        def connect(one: TargetSpec) -> Any:
            if id(one) not in connected:
                connected[id(one)] = throttle.wrap(one, servers[one.name])
            return connected[id(one)]

        def judge(one: TargetSpec, _suite: Suite) -> Any:
            return Asked(connect(one))

        run_context = FakeRunContext(connect, clock=Clock(), throttle=throttle, judge=judge)
        plan = Plan([suite], PlanSettings())
        options = RunOptions(workers, **given)
        run = Run("run", IndependentTrials(plan), plan.counts()[1], run_context=run_context, options=options)
        if stop_after is not None:
            asyncio.get_running_loop().call_later(stop_after, run.stop)
        return [event async for event in run.events()]

    events = run_at_once(main())
    return {(one.trial.target.name, one.trial.case.id): one for one in results_of(events)}, events


def serving(*given: Any) -> Server:
    return Server(given, takes_s=1.0)


def statuses(results: dict[Any, Any]) -> list[str]:
    return [one.status for one in results.values()]


def test_one_trial_is_errored_and_the_others_are_not_run():
    server = serving(REFUSED)
    results, events = ran(Suite("s", tuple(case(str(n)) for n in range(9)), targets=(spec("t"),)), {"t": server})
    assert statuses(results) == ["errored"] + ["skipped"] * 8
    assert len(server.asked) == 1
    assert results["t", "3"].error == Failure("target-stopped", "'t' is stopped: HTTP 401 Unauthorized")
    assert results["t", "0"].error.stops
    shown = [event for event in events if isinstance(event, TargetStopped)]
    assert shown == [TargetStopped("t", "HTTP 401 Unauthorized")]


def test_those_in_flight_that_fail_alike_are_not_errors_either():
    server = serving(REFUSED)
    cases = tuple(case(str(n)) for n in range(9))
    results, _ = ran(Suite("s", cases, targets=(spec("t"),)), {"t": server}, workers=4)
    assert sorted(statuses(results)) == ["errored"] + ["skipped"] * 8
    assert len(server.asked) == 4


def test_trials_of_other_targets_go_on():
    servers = {"bad": serving(REFUSED), "good": serving(TargetResponse("fine"))}
    results, _ = ran(Suite("s", (case("a"), case("b")), targets=(spec("bad"), spec("good"))), servers)
    shown = {key: one.status for key, one in results.items()}
    assert shown == {("bad", "a"): "errored", ("bad", "b"): "skipped", ("good", "a"): "passed", ("good", "b"): "passed"}


def test_what_was_not_run_is_no_error_to_count():
    server = serving(REFUSED)
    results, _ = ran(
        Suite("s", tuple(case(str(n)) for n in range(5)), targets=(spec("t"),)), {"t": server}, limits=RunLimits(2)
    )
    assert len(results) == 5


@pytest.mark.parametrize("check", [Judged(), Judged("j"), Nested((entry(Judged()),))])
def test_a_stopped_judge_spares_the_target_of_all_that_need_it(check):
    servers = {"t": serving(TargetResponse("fine")), "j": serving(REFUSED)}
    cases = (case("first", Judged()), case("second", check), case("third"))
    judge = spec("j")
    results, _ = ran(Suite("s", cases, targets=(spec("t", None),), judge=judge, judges={"j": judge}), servers)
    assert statuses(results) == ["errored", "skipped", "passed"]
    assert servers["t"].asked == ["first", "third"]
    assert results["t", "second"].error.message == "'j' is stopped: HTTP 401 Unauthorized"
    assert results["t", "first"].error.stops  # so that resuming calls again


def test_a_case_that_names_its_own_judge_is_spared_by_that_judge_and_not_by_the_suites():
    servers = {"t": serving(TargetResponse("fine")), "j": serving(TargetResponse("yes")), "bad": serving(REFUSED)}
    cases = (case("first", Judged("bad")), case("second", Judged("bad")), case("third", Judged()))
    suite = Suite("s", cases, targets=(spec("t", None),), judge=spec("j"), judges={"bad": spec("bad")})
    results, _ = ran(suite, servers)
    assert statuses(results) == ["errored", "skipped", "passed"]
    assert servers["t"].asked == ["first", "third"]


def test_a_conversation_that_meets_a_stopped_target_is_not_run():
    server = serving(TargetResponse("fine"), REFUSED)
    turns = tuple(Turn((Message("user", text),)) for text in "ab")
    suite = Suite("s", (case("talk", turns=turns), case("late", turns=turns)), targets=(spec("t"),))
    results, _ = ran(suite, {"t": server})
    assert statuses(results) == ["errored", "skipped"]
    assert results["t", "talk"].error.message == "turn 2: HTTP 401 Unauthorized"
    assert results["t", "talk"].error.stops


def test_a_target_is_stopped_by_its_first_refusal_alone():
    stop = TargetStop()
    assert not stop.note(Failure("target-raised", "ValueError"))
    assert not stop.note(BUSY)
    assert (stop.failure, stop.failure_for("t")) == (None, None)
    assert stop.note(REFUSED)
    assert not stop.note(replace(REFUSED, message="HTTP 403"))
    assert stop.failure is REFUSED


@pytest.mark.parametrize("prefix", ["", "judge-", "embedder-"])
def test_why_a_trial_has_no_verdict_is_known_by_its_code_whoever_failed(prefix):
    failures = {
        code: Failure(prefix + code, "") for code in ("target-stopped", "interrupted", "budget-spent", "timeout")
    }
    for told, code in (
        (is_stopped, "target-stopped"),
        (is_interrupted, "interrupted"),
        (is_unaffordable, "budget-spent"),
    ):
        assert [name for name, failure in failures.items() if told(failure)] == [code]
        assert not told(None)


def test_an_interrupted_wait_leaves_no_row_and_the_run_ends():
    later = CallFailure("http-status", "HTTP 429", retryable=True, status=429, retry_after_s=60.0)
    cases = tuple(case(str(n)) for n in range(5))
    results, events = ran(Suite("s", cases, targets=(spec("t"),)), {"t": serving(later)}, workers=3, stop_after=5)
    assert results == {}
    assert (events[-1].interrupted, events[-1].unstarted, events[-1].duration_ms) == (True, 5, 5000)
    assert isinstance(events[-1], RunFinished)
