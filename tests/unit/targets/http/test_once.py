from __future__ import annotations

import asyncio

import pytest

from agentv.model.values.response import Failure, TargetResponse
from agentv.targets.http.once import Once, timed


def test_closing_stops_what_is_under_way():
    stopped = []

    async def prepare():
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    async def closed():
        once = Once()
        await once.close()
        call = asyncio.ensure_future(once.result(prepare))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await once.close()
        await once.close()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(closed())
    assert stopped == [1]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(TargetResponse("x", duration_ms=7), True), (Failure("a", "b"), True), (TargetResponse("x"), False)],
)
def test_only_an_answer_without_a_duration_gets_one(given, kept):
    async def answering():
        await asyncio.sleep(0.002)
        return given

    found = asyncio.run(timed(answering()))
    assert (found is given) is kept
    if not kept:
        assert found.duration_ms >= 2
