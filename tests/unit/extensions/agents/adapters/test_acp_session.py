"""What an agent reports while it works, and how it ends when the run is interrupted."""

import asyncio
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from doubles.agents import acp, call
from doubles.asking import request, spec_of
from doubles.processes_alive import all_gone


async def interrupted(settings, asked, *, when):
    """Return the result of an interrupted call, and how long it took after the interruption."""
    target = settings.connect(spec_of(settings), None)
    interruption = asyncio.get_running_loop().create_future()
    begun = asyncio.Event()
    asked = replace(asked, interruption=interruption, on_activity=lambda _: begun.set())
    calling = asyncio.ensure_future(target.answer(asked))
    if when == "working":
        await begun.wait()
    began = time.monotonic()
    interruption.set_result(None)
    found = await calling
    await target.close()
    return found, time.monotonic() - began


def test_an_interrupted_agent_is_asked_to_cancel_and_its_trace_is_kept():
    settings = acp(call("1"), {"hang": "until cancelled"})
    found, took_s = asyncio.run(interrupted(settings, request(timeout_s=60), when="working"))
    assert (found.code, found.retryable) == ("interrupted", False)
    trace = found.response.trace
    assert [one.name for one in trace.tool_calls] == ["shell"]
    assert trace.stop_reason == "cancelled"
    assert b'"session/cancel"' in trace.native
    assert took_s < 2


@pytest.mark.parametrize("kind", ["child", "deaf"])
def test_an_agent_that_hears_nothing_is_ended_with_all_that_it_started(tmp_path, kind):
    asked = request(timeout_s=8, workspace_path=str(tmp_path))
    settings = acp(call("1"), {"hang": kind})
    found, took_s = asyncio.run(interrupted(settings, asked, when="working"))
    assert (found.code, len(found.response.trace.tool_calls)) == ("interrupted", 1)
    agent, child = Path(tmp_path, "pids").read_text().split()
    assert all_gone([agent])
    assert kind == "child" or all_gone([child])
    assert took_s < 10


def test_an_agent_that_has_not_begun_its_session_is_ended():
    settings = acp(begin={"hang": True})
    found, took_s = asyncio.run(interrupted(settings, request(timeout_s=60), when="at once"))
    assert found.code == "interrupted"
    assert "before the agent began its session" in found.message
    assert took_s < 10
