"""The gateway in a trial: opened, closed in every case, and counting tokens in place of the agent."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from agentv.engine.executor import LocalExecutor
from agentv.extensions.agents.trial import gateway_use
from agentv.extensions.agents.trial.gateway_use import GatewayUse
from agentv.model.suite.tools import ModelUpstream
from agentv.model.suite.workspace import WorkLimits
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.trace import AgentActivity, MessageStep, Trace, UsageStep
from agentv.model.values.usage import TokenUsage
from doubles.given_gateway import STEP, FakeGateway, FakeSession
from unit.extensions.agents.trial.test_work import Given

UPSTREAM = ModelUpstream("openai", "http://127.0.0.1:9/v1", "sk-real-0123456789")
SPENT = Failure("budget-spent", "nothing is left")


@dataclass
class AtGateway:
    """A trial whose agent calls its model through a gateway."""

    given: Given
    session: Any = None

    def __post_init__(self):
        given = self.given
        self.session = self.session or FakeSession(given.notes)
        self.gateway = given.context.gateway = FakeGateway(self.session)
        given.trial = replace(given.trial, target=replace(given.trial.target, upstream=UPSTREAM))

    def result(self):
        return self.given.result()


def test_the_agent_gets_the_gateway_and_not_the_key():
    at = AtGateway(Given())
    env = {"KEY": UPSTREAM.api_key, "T": f"x{UPSTREAM.api_key}", "URL": "{{ gateway.anthropic }}"}
    at.given.trial = replace(at.given.trial, target=replace(at.given.trial.target, env=env))
    at.result()
    asked = at.given.agent.asked[0]
    assert asked.env["URL"] == "http://127.0.0.1:1/anthropic"
    assert asked.gateway == at.session.access
    assert (asked.env["OPENAI_API_KEY"], asked.env["OPENAI_BASE_URL"]) == ("token", "http://127.0.0.1:1/openai/v1")
    assert UPSTREAM.api_key not in "".join(asked.env.values())


def test_its_token_is_refused_before_anything_is_graded():
    at = AtGateway(Given())
    result = at.result()
    notes = at.given.notes
    assert notes.index("gateway closed") < notes.index("finish") < notes.index("grade")
    assert (result.token_usage, result.cost_usd, result.notes) == (STEP.tokens, 0.5, ("noted",))


def test_our_count_wins_and_what_the_agent_reports_stays_beside_it():
    own = UsageStep("m", TokenUsage(1, 1, 2), 0.1)
    trace = Trace((MessageStep("assistant", "done", started_ms=0.0), own), "acp")
    answer = TargetResponse("done", token_usage=TokenUsage(1, 1, 2), cost_usd=0.1, trace=trace)
    at = AtGateway(Given([answer]))
    result = at.result()
    seen = at.given.seen.contexts[0]
    assert (seen.token_usage, seen.cost_usd, result.cost_usd) == (STEP.tokens, 0.5, 0.5)
    assert result.work.trace.usages == (replace(STEP, started_ms=1.0),)
    assert result.work.trace.metadata[gateway_use.REPORTED] == {"input": 1, "output": 1, "total": 2, "cost_usd": 0.1}
    assert any("the agent reports 1 input and 1 output tokens" in note for note in result.notes)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(TargetResponse("success"), "agent-api"), (Failure("agent-limit", "no answer after 15 s"), "agent-limit")],
)
def test_calls_that_were_all_broken_off_are_why_unless_the_agent_was_ended(answer, code):
    at = AtGateway(Given([answer]))
    at.session.failure, at.session.abandoned = Failure("agent-api", "the agent broke off all of its calls"), True
    assert at.result().error.code == code


@pytest.mark.parametrize(
    "answer", [TargetResponse("success"), Failure("exit-status", "exit 1"), Failure("timeout", "late")]
)
def test_a_failure_of_the_gateway_is_why_whatever_the_agent_says(answer):
    at = AtGateway(Given([answer]))
    at.session.failure = SPENT
    result = at.result()
    assert (result.status, result.error.code, at.given.seen.contexts) == ("errored", "budget-spent", [])
    assert (result.token_usage, result.cost_usd) == (STEP.tokens, 0.5)


@pytest.mark.parametrize(("on_limit", "status"), [("grade", "passed"), ("error", "errored")])
def test_a_spent_budget_of_the_trial_is_a_limit(on_limit, status):
    response = TargetResponse("half done", logs={"stdout.txt": b"half"})
    answer = CallFailure("exit-status", "exit 1", response=response)
    at = AtGateway(Given([answer], limits=WorkLimits(on_limit=on_limit, budget_usd=0.2)))
    at.session.failure = Failure("agent-limit", "the budget of the trial is spent")
    result = at.result()
    assert (result.status, at.gateway.opened[0].budget_usd) == (status, 0.2)
    assert (result.error is None) or result.error.code == "agent-limit"


def test_an_agent_that_goes_on_although_it_is_refused_is_ended(monkeypatch):
    monkeypatch.setattr(gateway_use, "ENDING_S", 0.01)
    at = AtGateway(Given())
    ended = []

    async def goes_on(_request):
        at.session.failure = SPENT
        at.session.refused.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    at.given.agent.answer = goes_on
    assert (at.result().error.code, ended) == ("budget-spent", ["ended"])


async def test_it_is_closed_when_a_trial_is_cancelled():
    at = AtGateway(Given())

    started = asyncio.Event()

    async def hangs(_request):
        started.set()
        await asyncio.Event().wait()

    at.given.agent.answer = hangs
    task = asyncio.ensure_future(LocalExecutor(at.given.context).run(at.given.trial))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert at.given.notes[-2:] == ["gateway closed", "close, keep False"]


def test_a_gateway_that_cannot_listen_is_an_error_and_leaves_nothing():
    at = AtGateway(Given(), Failure("gateway-failed", "no port"))
    result = at.result()
    assert (result.error.code, at.given.agent.asked) == ("gateway-failed", [])
    assert at.given.notes[-1] == "close, keep False"


def test_a_failure_that_only_shows_after_the_answer_takes_the_verdict_away():
    at = AtGateway(Given())
    grade = at.given.seen.grade

    def late(context):
        at.session.failure = SPENT
        return grade(context)

    at.given.seen.grade = late
    result = at.result()
    assert (result.status, result.score, result.error.code) == ("errored", None, "budget-spent")


ACTIVITY = AgentActivity("edit", 3, 2, 1, 0.5)


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ((), ACTIVITY),
        ((UsageStep(error="broke off"),), ACTIVITY),
        ((UsageStep("m", TokenUsage(10, 5), 0.01),) * 2, AgentActivity("edit", 3, 2, 30, 0.02)),
        ((UsageStep("m", TokenUsage(10, 5, 16)),) * 5, AgentActivity("edit", 5, 2, 80, None)),
    ],
)
def test_our_own_count_wins_over_what_an_agent_reports(steps, seen):
    session = SimpleNamespace(usages=lambda: steps)
    assert GatewayUse(session).corrected(ACTIVITY) == seen


@pytest.mark.parametrize(
    ("budget_usd", "settings", "code"),
    [
        (0.5, {}, "no-gateway"),
        (0.5, {"free": True}, None),
        (None, {}, None),
        (None, {"faults": {"429": 0.5}}, "no-gateway"),
    ],
)
def test_a_budget_or_faults_that_need_the_gateway_are_an_error_before_the_agent_begins(budget_usd, settings, code):
    given = Given(limits=WorkLimits(budget_usd=budget_usd))
    given.trial = replace(given.trial, target=replace(given.trial.target, settings=SimpleNamespace(**settings)))
    error = given.result().error
    assert (error.code if error is not None else None) == code
    assert bool(given.agent.asked) == (code is None)
