import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.engine.dependency_order import DependencyScheduler, OnDemandScheduler, split_completed
from agentv.engine.plan import Plan, PlanSettings
from agentv.engine.run import Run, RunOptions
from agentv.model.run.events import RunFinished, TrialFinished
from agentv.model.run.trial import TrialResult
from agentv.model.suite.conversation import Link
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from doubles.engine_runs import BAD, GOOD, case, events_of, results_of, suite
from doubles.run_contexts import FakeRunContext
from doubles.stores import MemoryStore


@dataclass
class Recording:
    """A target that answers `a!` to the case `a`, and records its requests, their cases and the times of its
    answers."""

    failing: Mapping[str, Failure] = field(default_factory=dict)
    asked: list[tuple[str, list[str]]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    at_once: int = 0
    most: int = 0

    async def answer(self, request: Any) -> Any:
        self.asked.append((request.case_id, [message.text for message in request.messages]))
        self.log.append(f"begin {request.case_id}")
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        for _ in range(3):
            await asyncio.sleep(0)
        self.at_once -= 1
        self.log.append(f"end {request.case_id}")
        return self.failing.get(request.case_id, TargetResponse(f"{request.case_id}!{request.sample}"))

    async def close(self) -> None:
        return


def linked(*cases: Case, needs: Mapping[str, Iterable[str]] | None = None, targets: Iterable[str] = ("t",)) -> Suite:
    """Return a suite with the dependencies from its cases' conversations and from `needs`."""
    talks: dict[str, list[str]] = {}
    for one in cases:
        if one.conversation_id is not None:
            talks.setdefault(one.conversation_id, []).append(one.id)
    follows = {later: earlier for talk in talks.values() for earlier, later in pairwise(talk)}
    needs = needs or {}
    links = {one: Link(tuple(needs.get(one, ())), follows.get(one)) for one in {**follows, **needs}}
    return suite(*cases, targets=targets, links=links)


def ran(
    one: Suite, target: Recording, *, workers: int = 4, settings: PlanSettings | None = None, **given: Any
) -> tuple[dict[tuple[str, str, int], TrialResult], RunFinished]:
    plan, run_context = Plan([one], settings or PlanSettings()), FakeRunContext(lambda _: target)
    work = events_of(DependencyScheduler(plan, plan), plan.counts()[1], run_context, workers, **given)
    events = asyncio.run(asyncio.wait_for(work, 20))
    results = results_of(events)
    found = {(one.trial.target.name, one.trial.case.id, one.trial.sample): one for one in results}
    assert len(found) == len(results), "a trial ended twice"
    return found, events[-1]


def statuses(found: Mapping[tuple[str, str, int], TrialResult]) -> dict[str, str]:
    return {case: result.status for (_, case, _), result in found.items()}


def test_what_depends_on_a_failed_case_is_skipped_with_the_reason():
    suite = linked(case("a", BAD), case("b"), case("c"), needs={"b": ["a"], "c": ["b"]})
    found, finished = ran(suite, Recording())
    assert statuses(found) == {"a": "failed", "b": "skipped", "c": "skipped"}
    b, c = found["t", "b", 1], found["t", "c", 1]
    shown = (b.error, b.score, b.output, b.attempts)
    assert shown == (Failure("dependency-not-passed", "'a', which it depends on, failed"), None, None, 0)
    assert c.error == Failure("dependency-not-passed", "'b', which it depends on, was not run")
    assert (finished.finished, finished.unstarted) == (3, 0)


def test_a_conversation_goes_on_after_a_bad_answer_and_not_after_none():
    talk = [case("a", BAD, conversation_id="x"), case("b", conversation_id="x"), case("c", conversation_id="x")]
    target = Recording({"b": Failure("timeout", "late")})
    found, _ = ran(linked(*talk), target)
    assert statuses(found) == {"a": "failed", "b": "errored", "c": "skipped"}
    assert target.asked == [("a", ["a?"]), ("b", ["a?", "a!1", "b?"])]
    assert found["t", "c", 1].error == Failure("broken-conversation", "'b', before it in the conversation 'x', errored")


def test_sample_by_sample_and_target_by_target_a_conversation_goes_on():
    talk = [case("a", conversation_id="x"), case("b", conversation_id="x")]
    target = Recording()
    found, _ = ran(linked(*talk, targets=["t", "u"]), target, settings=PlanSettings(repeat=2))
    assert len(found) == 8
    continued = sorted(asked for name, asked in target.asked if name == "b")
    assert continued == [["a?", "a!1", "b?"]] * 2 + [["a?", "a!2", "b?"]] * 2


def test_the_verdict_over_all_samples_counts():
    @dataclass
    class Once(Recording):
        async def answer(self, request: Any) -> Any:
            broken = request.case_id == "a" and request.sample == 2
            return Failure("timeout", "late") if broken else await Recording.answer(self, request)

    found, _ = ran(linked(case("a"), case("b"), needs={"b": ["a"]}), Once(), settings=PlanSettings(repeat=2))
    assert found["t", "a", 1].status == "passed"
    assert {found["t", "b", sample].status for sample in (1, 2)} == {"skipped"}
    assert found["t", "b", 1].error == Failure("dependency-not-passed", "'a', which it depends on, errored")


def test_a_dependency_with_a_target_of_its_own_counts_for_every_target():
    own = TargetSpec("own", "x", None)
    suite = linked(case("a", BAD, target=own), case("b"), case("c"), needs={"b": ["a"]}, targets=["t", "u"])
    found, _ = ran(suite, Recording())
    assert {key: result.status for key, result in found.items()} == {
        ("own", "a", 1): "failed",
        ("t", "b", 1): "skipped",
        ("u", "b", 1): "skipped",
        ("t", "c", 1): "passed",
        ("u", "c", 1): "passed",
    }


def test_each_target_has_its_own_verdict():
    class Half(Recording):
        async def answer(self, request: Any) -> Any:
            return Failure("timeout", "late") if request.env else TargetResponse("fine")

    targets = (TargetSpec("t", "x", None), TargetSpec("u", "x", None, env={"BROKEN": "1"}))
    found, _ = ran(replace(linked(case("a"), case("b"), needs={"b": ["a"]}), targets=targets), Half())
    assert (found["t", "b", 1].status, found["u", "b", 1].status) == ("passed", "skipped")


def test_what_waits_for_what_never_comes_is_skipped_and_no_run_hangs():
    found, _ = ran(linked(case("a"), needs={"a": ["gone"]}), Recording())
    assert found["t", "a", 1].error == Failure("dependency-not-passed", "'gone', which it depends on, was not run")


def test_a_bug_of_ours_ends_the_run_though_others_wait():
    class Broken(MemoryStore):
        def keep(self, call, answer: TargetResponse) -> None:
            raise OSError("disk full")

    plan = Plan([linked(case("a"), case("b"), case("c"), needs={"b": ["a"], "c": ["a"]})], PlanSettings())

    work = events_of(DependencyScheduler(plan, plan), 3, FakeRunContext(lambda _: Recording(), Broken()), 3)
    with pytest.raises(OSError, match="disk full"):
        asyncio.run(asyncio.wait_for(work, 20))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, dict[str, list[str]], set[str]]:
    """Draw a graph of cases that depend on earlier ones in an order other than the file's; some of them fail."""
    size = draw(st.integers(1, 12))
    names = draw(st.permutations([f"c{number}" for number in range(size)]))
    needs = {
        name: draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3))
        for place, name in enumerate(names)
        if place
    }
    return size, {name: several for name, several in needs.items() if several}, draw(st.sets(st.sampled_from(names)))


@given(graph=graphs(), workers=st.integers(1, 4))
def test_every_case_ends_once_and_runs_only_after_all_that_it_needs_passed(graph, workers):
    size, needs, failing = graph
    cases = [case(f"c{number}", BAD if f"c{number}" in failing else GOOD) for number in range(size)]
    target = Recording()
    found, _ = ran(linked(*cases, needs=needs), target, workers=workers)
    ended = statuses(found)
    assert ended.keys() == {one.id for one in cases}
    for name, several in needs.items():
        assert (ended[name] == "skipped") == any(ended[one] != "passed" for one in several)
        if ended[name] != "skipped":
            begun = target.log.index(f"begin {name}")
            assert all(target.log.index(f"end {one}") < begun for one in several)


def test_what_an_earlier_run_kept_is_gone_on_from():
    talk = [case("a", conversation_id="x"), case("b", conversation_id="x"), case("c")]
    plan = Plan([linked(*talk, needs={"c": ["a"]})], PlanSettings())
    first = next(iter(plan))
    kept = TrialResult(
        first, "failed", 0.0, "hi", first.case.input, (), None, 1.0, "now", turns=(TargetResponse("hi"),)
    )
    target = Recording()

    order = DependencyScheduler(plan, (one for one in plan if one.key != first.key))
    order.restore(kept)
    work = events_of(order, 2, FakeRunContext(lambda _: target), 2)
    ended = {one.trial.case.id: one.status for one in results_of(asyncio.run(asyncio.wait_for(work, 20)))}
    assert target.asked == [("b", ["a?", "hi", "b?"])]
    assert ended == {"b": "passed", "c": "skipped"}


def test_what_hangs_on_a_case_without_a_row_does_not_stand_either_wherever_it_is_written():
    cases = [case(name, conversation_id="x" if name in "de" else None) for name in "abcdef"]
    plan = Plan([linked(*cases, needs={"a": ["c"], "b": ["a"], "d": ["b"]}), linked(case("z"))], PlanSettings())
    keys = [trial.key for trial in plan]
    assert split_completed(plan, {key for number, key in enumerate(keys) if number != 2}, 0)[0] == keys[5:]
    assert split_completed(plan, set(keys), 0)[0] == keys
    assert split_completed(plan, set(keys[:5]), 0)[0] == keys[:5]


class CountedCases(tuple[Case, ...]):
    """Cases that count how often they are iterated over."""

    __slots__ = ()
    passes: ClassVar[int] = 0

    def __iter__(self):
        type(self).passes += 1
        return super().__iter__()


def test_what_stands_and_what_does_not_is_found_in_one_pass():
    cases = CountedCases(case(name) for name in "abcd")
    plan = Plan((replace(linked(), cases=cases, links={}),), PlanSettings())
    keys = [trial.key for trial in plan]
    CountedCases.passes = 0
    done, others = split_completed(plan, {keys[0], keys[2]}, most=2)
    assert (done, [trial.key for trial in others]) == ([keys[0], keys[2]], [keys[1], keys[3]])
    assert CountedCases.passes == 1
    assert split_completed(plan, {keys[0]}, most=2) == ([keys[0]], None)
    assert split_completed(plan, set(), most=4)[1] == list(plan)


def asked_for(suite, *asks):
    """Return each request's result, made after the previous one ended; the last event; the cases that the target
    saw."""
    plan = Plan([suite], PlanSettings())
    target, demand = Recording(), OnDemandScheduler(plan)
    trials = {trial.case.id: trial for trial in plan}

    async def main():
        run = Run("run", demand, len(trials), run_context=FakeRunContext(lambda _: target), options=RunOptions(3))
        found, left = {}, [list(names) for names in asks]
        demand.ask(trials[name] for name in left[0])
        async for event in run.events():
            last = event
            if isinstance(event, TrialFinished):
                found[event.result.trial.case.id] = event.result.status
            while left and set(left[0]) <= found.keys():
                del left[0]
                if left:
                    demand.ask(trials[name] for name in left[0])
                else:
                    demand.end()
        return found, last

    found, last = asyncio.run(asyncio.wait_for(main(), 10))
    assert isinstance(last, RunFinished)
    return found, demand, target


def test_only_what_was_asked_for_runs_and_the_run_waits_for_more():
    found, demand, target = asked_for(linked(*map(case, "abcd")), ["c"], ["a", "b"])

    assert found == {"c": "passed", "a": "passed", "b": "passed"}
    assert target.asked[0][0] == "c"
    assert demand.counts == (3, 3)


def test_what_hangs_on_a_failed_case_is_skipped_though_nobody_is_at_work():
    cases = (case("second"), case("first", BAD))
    found, _, _ = asked_for(linked(*cases, needs={"second": ["first"]}), ["first"], ["second"])

    assert found == {"first": "failed", "second": "skipped"}


def test_what_waits_for_a_case_that_nobody_asked_for_is_skipped_at_the_end():
    plan = Plan([linked(case("second"), case("first"), needs={"second": ["first"]})], PlanSettings())
    demand = OnDemandScheduler(plan)
    second = next(trial for trial in plan if trial.case.id == "second")

    async def main():
        demand.ask([second])
        demand.end()
        return await demand.take()

    assert asyncio.run(asyncio.wait_for(main(), 10)) is None
    assert [trial.case.id for trial, _ in demand.skipped] == ["second"]
