import asyncio

from agentv.engine.dependency_order import OnDemandScheduler
from agentv.engine.plan import Plan, PlanSettings
from agentv.engine.run import Run, RunOptions
from agentv.model.run.events import RunFinished, TrialFinished
from agentv.model.run.grade import Grade
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.suite.conversation import Link
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import TargetResponse
from doubles.nested_grading import Given
from doubles.run_contexts import GivenRunContext


class Answering:
    def __init__(self):
        self.asked = []

    async def answer(self, request):
        self.asked.append(request.case_id)
        await asyncio.sleep(0)
        return TargetResponse("yes")

    async def close(self):
        return


def suite_of(*names, failing=(), needs=None):
    def case(name):
        entries = (AssertionEntry("given", Given(Grade.of(name not in failing, "good")), AssertionSettings()),)
        return Case(name, (Message("user", name),), entries, sha256=name)

    links = {name: Link(tuple(others)) for name, others in (needs or {}).items()}
    return Suite("suite", tuple(map(case, names)), targets=(TargetSpec("t", "x", None),), links=links)


def ran(suite, *asks):
    """The result of each ask, made when the one before had ended; the last event; the cases that the target saw."""
    plan = Plan([suite], PlanSettings())
    target, demand = Answering(), OnDemandScheduler(plan)
    trials = {trial.case.id: trial for trial in plan}

    async def main():
        run_context = GivenRunContext(lambda _: target)
        run = Run("run", demand, len(trials), run_context=run_context, options=RunOptions(3))
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
    found, demand, target = ran(suite_of("a", "b", "c", "d"), ["c"], ["a", "b"])

    assert found == {"c": "passed", "a": "passed", "b": "passed"}
    assert target.asked[0] == "c"
    assert demand.counts == (3, 3)


def test_what_hangs_on_a_failed_case_is_skipped_though_nobody_is_at_work():
    suite = suite_of("second", "first", failing=["first"], needs={"second": ["first"]})

    found, _, _ = ran(suite, ["first"], ["second"])

    assert found == {"first": "failed", "second": "skipped"}


def test_what_waits_for_a_case_that_nobody_asked_for_is_skipped_at_the_end():
    plan = Plan([suite_of("second", "first", needs={"second": ["first"]})], PlanSettings())
    demand = OnDemandScheduler(plan)
    second = next(trial for trial in plan if trial.case.id == "second")

    async def main():
        demand.ask([second])
        demand.end()
        return await demand.take()

    assert asyncio.run(asyncio.wait_for(main(), 10)) is None
    assert [trial.case.id for trial, _ in demand.skipped] == ["second"]
