"""Reporting of the current actions of agents in a run, and interrupting them."""

import asyncio

from agentv.engine.calls.running_agents import TICK_S, RunningAgents
from agentv.model.suite.workspace import Variant
from agentv.model.values.trace import AgentActivity
from doubles.asking import request
from doubles.trials import trial
from doubles.virtual_time import run_at_once

ONE = trial("one", target="agent", variant=Variant("bare"))


def watched(agents):
    """Return the number of updates so far."""
    calls = []
    agents.on_news = lambda: calls.append(1)
    return calls


async def test_the_latest_of_each_agent_is_news_once():
    agents = RunningAgents()
    calls = watched(agents)
    asked = agents.begin(ONE, request())
    other = agents.begin(trial("two", target="agent"), request())
    assert [one.case for one in agents.news()] == ["one", "two"]
    asked.on_activity(AgentActivity("shell", 1))
    asked.on_activity(AgentActivity("edit", 2))
    (news,) = agents.news()
    assert (news.case, news.target, news.variant, news.activity) == ("one", "agent", "bare", AgentActivity("edit", 2))
    assert list(agents.news()) == []
    assert len(calls) == 4
    agents.end(ONE)
    (ended,) = agents.news()
    assert (ended.case, ended.activity) == ("one", None)
    asked.on_activity(AgentActivity("edit", 3))
    assert list(agents.news()) == [], "it has ended"
    other.on_activity(AgentActivity("read", 1))
    assert [one.activity.last_tool for one in agents.news()] == ["read"]
    agents.end(trial("two", target="agent"))


def test_an_agent_that_does_nothing_visible_is_reported_again_and_again_until_it_ends():
    async def main():
        agents = RunningAgents()
        calls = watched(agents)
        agents.begin(ONE, request())
        await asyncio.sleep(TICK_S * 3 + 1)
        assert len(calls) == 4
        agents.end(ONE)
        await asyncio.sleep(TICK_S * 3)
        assert len(calls) == 5

    run_at_once(main())


async def test_an_agent_may_report_from_another_thread():
    agents = RunningAgents()
    watched(agents)
    asked = agents.begin(ONE, request())
    list(agents.news())
    await asyncio.to_thread(asked.on_activity, AgentActivity("shell", 1))
    await asyncio.sleep(0)
    assert [one.activity.last_tool for one in agents.news()] == ["shell"]
    agents.end(ONE)


async def test_an_interruption_reaches_agents_that_work_and_those_that_begin():
    agents = RunningAgents()
    working = agents.begin(ONE, request())
    assert not working.interruption.done()
    agents.interrupt()
    agents.interrupt()
    assert working.interruption.done()
    assert agents.begin(trial("two"), request()).interruption.done()

    later = RunningAgents()
    later.interrupt()
    assert later.begin(ONE, request()).interruption.done()
