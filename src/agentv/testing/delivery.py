"""Delivery of a reply: whole, streamed, or with a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentv.testing.replies import Reply
from agentv.testing.steps import ClosedConnection, Hang, SlowDrip, Step, StoppedStream, Truncated

if TYPE_CHECKING:
    from aiohttp.web import Request, StreamResponse

_DRIPS = 10


async def deliver(request: Request, reply: Reply, step: Step | None) -> StreamResponse:
    """Send a reply as its step specifies.

    Args:
        request: the request to answer.
        reply: the reply to send.
        step: the step of the reply; None if it has none.
    """
    from aiohttp import web

    if isinstance(step, Hang):
        await _hang()
    if isinstance(step, ClosedConnection):
        if request.transport is not None:
            request.transport.abort()
        return web.Response()
    body = b"".join(reply.pieces)
    length = {"Content-Length": str(len(body))} if isinstance(step, Truncated) and not reply.streamed else {}
    headers = {**reply.headers, "Content-Type": reply.content_type, **length}
    if not reply.streamed and not isinstance(step, Truncated | SlowDrip | StoppedStream):
        return web.Response(status=reply.status, body=body, headers=headers)
    response = web.StreamResponse(status=reply.status, headers=headers)
    await response.prepare(request)
    for piece in _pieces(reply, body, step):
        if isinstance(step, SlowDrip):
            await asyncio.sleep(step.seconds / _DRIPS)
        await response.write(piece)
    if isinstance(step, Truncated):
        if request.transport is not None:
            request.transport.close()
        return response
    if isinstance(step, StoppedStream) and step.silent:
        await _hang()
    await response.write_eof()
    return response


def _pieces(reply: Reply, body: bytes, step: Step | None) -> Sequence[bytes]:
    """The chunks to send, which may be only a part of the reply."""
    if isinstance(step, SlowDrip):
        return [body[len(body) * drip // _DRIPS : len(body) * (drip + 1) // _DRIPS] for drip in range(_DRIPS)]
    if isinstance(step, StoppedStream) and reply.streamed:
        return reply.pieces[: len(reply.pieces) // 2]
    return [body[: len(body) // 2]] if isinstance(step, Truncated | StoppedStream) else reply.pieces


async def _hang() -> None:
    """Wait until the client disconnects or the server stops: both cancel the handler."""
    await asyncio.Event().wait()
