import asyncio
import gc
from collections.abc import Awaitable

import pytest

from agentv.engine.calls.deadlines import in_time
from agentv.model.values.response import Failure
from agentv.user_code.functions.deadline import Deadline


async def answer() -> str:
    return "42"


async def waiting(given: Awaitable[str]) -> str | Failure:
    return await in_time(given, Deadline(5), code="target-raised", what="f", missing="answer")


def test_a_wait_that_is_cancelled_before_the_code_begins_leaves_no_coroutine_unawaited(recwarn):
    async def cancelled_early() -> None:
        task = asyncio.ensure_future(waiting(answer()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled_early())
    gc.collect()
    assert [str(one.message) for one in recwarn] == []


def test_code_that_has_begun_is_cancelled_with_the_wait():
    ended: list[str] = []

    async def begun() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")
        return "late"

    async def cancelled_later() -> None:
        task = asyncio.ensure_future(waiting(begun()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled_later())
    assert ended == ["cancelled"]
