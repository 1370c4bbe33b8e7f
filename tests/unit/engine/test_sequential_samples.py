import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.engine.dependency_order import DependencyScheduler
from agentv.engine.plan import Plan, PlanSettings
from agentv.engine.sequential_samples import SequentialSampler
from agentv.engine.workers import IndependentTrials
from agentv.model.run.grade import Grade
from agentv.model.run.trial import TrialResult
from agentv.model.suite.conversation import Link
from agentv.model.suite.suite import RunSettings, Suite
from agentv.model.values.response import Failure, TargetResponse
from doubles.engine_runs import case, events_of, results_of, suite
from doubles.nested_grading import CallbackAssertion
from doubles.run_contexts import FakeRunContext
from doubles.trials import finished, trial

EARLY = PlanSettings(repeat=20, until="decided")


SAYS_YES = CallbackAssertion(lambda context: Grade.of(context.output == "yes", "yes"))


class Told:
    """A target whose answers to a case are given by a text of y, n and e, one letter per call."""

    def __init__(self, **answers: str) -> None:
        self._answers = answers
        self.asked: list[tuple[str, int]] = []
        self.at_once: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def answer(self, request: Any) -> Any:
        case = request.case_id
        self.most[case] = max(self.most.get(case, 0), self.at_once.get(case, 0) + 1)
        self.at_once[case] = self.at_once.get(case, 0) + 1
        await asyncio.sleep(0)
        self.at_once[case] -= 1
        self.asked.append((case, request.sample))
        text = self._answers[case]
        given = text[min(request.sample, len(text)) - 1]
        return Failure("timeout", "late") if given == "e" else TargetResponse("yes" if given == "y" else "no")

    async def close(self) -> None:
        return


def suite_of(*ids: str, **given: Any) -> Suite:
    return suite(*(case(one, SAYS_YES) for one in ids), **given)


def ran(one: Suite, target: Told, *, kept: Sequence[TrialResult] = (), settings: PlanSettings = EARLY) -> Any:
    plan, series = Plan([one], settings), SequentialSampler(limited=one.run.cost_limit_usd is not None)
    for result in kept:
        series.restore(result)
    keys = {result.trial.key for result in kept}
    to_do = [trial for trial in series.undecided(plan) if trial.key not in keys]
    firsts = series.firsts(iter(to_do))
    trials = DependencyScheduler(plan, firsts) if one.links else IndependentTrials(firsts)

    work = events_of(trials, len(to_do), FakeRunContext(lambda _: target), 4, sampler=series)
    events = asyncio.run(work)
    return results_of(events), events[-1]


def ends(results: Sequence[TrialResult]) -> dict[str, tuple[str, int]]:
    found = {}
    for result in results:
        if result.stopped is not None:
            assert result.trial.case.id not in found
            found[result.trial.case.id] = (result.stopped.why, result.stopped.samples)
    return found


def test_every_case_is_sampled_until_it_is_decided_one_sample_after_the_other():
    target = Told(always="y", never="n", half="yn" * 10, breaks="yye")
    results, over = ran(suite_of("always", "never", "half", "breaks"), target)
    assert ends(results) == {
        "always": ("above", 16),
        "never": ("below", 3),
        "half": ("undecided", 20),
        "breaks": ("errored", 2),
    }
    assert [sample for name, sample in target.asked if name == "always"] == list(range(1, 17))
    assert set(target.most.values()) == {1}
    assert (over.finished, over.unstarted) == (16 + 3 + 20 + 3, 0)


def test_without_until_every_sample_is_run():
    results, _ = ran(suite_of("never"), Told(never="n"), settings=PlanSettings(repeat=2))
    assert (len(results), ends(results)) == (2, {})


def test_a_run_that_goes_on_counts_the_samples_that_it_has():
    one, target = suite_of("never", "always"), Told(never="n", always="y")
    before, _ = ran(one, target)
    kept = [result for result in before if result.trial.case.id == "always" or result.trial.sample <= 2]
    results, over = ran(one, target, kept=[replace(result, stopped=None) for result in kept])
    assert [(result.trial.case.id, result.trial.sample) for result in results] == [("never", 3)]
    assert ends(results) == {"never": ("below", 3)}
    assert (over.finished, over.unstarted) == (1, 0)


def test_samples_that_may_end_early_are_other_trials():
    plain, early = Plan([suite_of("a")], PlanSettings(repeat=20)), Plan([suite_of("a")], EARLY)
    assert {one.key for one in plain}.isdisjoint(one.key for one in early)


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_a_result_of_a_case_without_more_to_come_ends_it(alpha):
    result = finished("failed", trial=trial(alpha=alpha, repeat=3, key="k-1"))
    told, following = SequentialSampler().after(result)
    assert following is None
    assert told.stopped is None


class Priced(Told):
    """The same at 0.25 USD per call; calls for one case never overlap."""

    async def answer(self, request: Any) -> Any:
        answer = await super().answer(request)
        return replace(answer, cost_usd=0.25) if isinstance(answer, TargetResponse) else answer


LIMITED = RunSettings(repeat=4, cost_limit_usd=0.5)
ALL = PlanSettings()


def statuses(results: Sequence[TrialResult], name: str) -> list[str]:
    return [one.status for one in sorted(results, key=lambda one: one.trial.sample) if one.trial.case.id == name]


def test_samples_that_cost_what_they_may_are_the_last_of_their_case():
    target = Priced(yes="y", breaks="eyyy")
    results, over = ran(suite_of("yes", "breaks", run=LIMITED), target, settings=ALL)
    assert statuses(results, "yes") == ["passed", "passed", "skipped", "skipped"]
    assert statuses(results, "breaks") == ["errored", "passed", "passed", "skipped"]
    assert set(target.most.values()) == {1}
    (error,) = {one.error for one in results if one.status == "skipped"}
    assert error == Failure("cost-limit", "the samples of the case before it cost $0.5000; 'cost_limit_usd' is $0.5000")
    assert (over.finished, over.unstarted) == (8, 0)


def test_a_resumed_run_counts_what_the_samples_of_a_case_have_cost():
    one, target = suite_of("yes", "other", run=LIMITED), Priced(yes="y", other="y")
    before, _ = ran(one, target, settings=ALL)
    done = [result for result in before if result.trial.case.id == "yes" and result.trial.sample <= 2]
    kept = [replace(result, trial=replace(result.trial, cost_limit_usd=None)) for result in done]  # as in a row
    results, over = ran(one, target, kept=kept, settings=ALL)
    assert statuses(results, "yes") == ["skipped", "skipped"]
    assert statuses(results, "other") == ["passed", "passed", "skipped", "skipped"]
    assert (over.finished, over.unstarted) == (6, 0)


@pytest.mark.parametrize(("policy", "status"), [("skip", "skipped"), ("fail", "errored"), ("run", "passed")])
def test_what_keeps_one_sample_from_running_keeps_all_of_its_case(policy: Any, status: str):
    needs = {"needs": Link(("no",)), "last": Link(("needs",))}
    cases = (
        case("no", SAYS_YES),
        replace(case("needs", SAYS_YES), on_dependency_failure=policy),
        case("last", SAYS_YES),
    )
    one = replace(suite_of(links=needs, run=replace(LIMITED, cost_limit_usd=9.0)), cases=cases)
    results, over = ran(one, Priced(no="n", needs="y", last="y"), settings=ALL)
    assert statuses(results, "needs") == [status] * 4
    assert statuses(results, "last") == ["passed" if policy == "run" else "skipped"] * 4
    assert (over.finished, over.unstarted) == (12, 0)
