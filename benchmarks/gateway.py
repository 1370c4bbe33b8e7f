#!/usr/bin/env python3
"""Time model calls through the gateway against calls of the same server without it, in turns.

    benchmarks/gateway.py
    benchmarks/gateway.py --calls 500 --megabytes 50

Three processes: a server that streams as a model API does, the gateway in front of it, and this client. Prints medians:
milliseconds of a small call (whole and streamed), and milliseconds per streamed megabyte in events of about 200 bytes;
and the processor time that the gateway took, which other work on the machine does not change.
A run counts only if the gateway counted every call with its tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from aiohttp import ClientSession, web

KEY = "sk-benchmark-0123456789"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
WORDS = "x" * 120
CPU = "processor time"


def event(choices: list[Any], usage: dict[str, int] | None = None) -> bytes:
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": choices, "usage": usage}).encode() + b"\n\n"


PIECE = event([{"index": 0, "delta": {"content": WORDS}, "finish_reason": None}])


async def answer(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if not body.get("stream"):
        message = {"role": "assistant", "content": "fine"}
        choices = [{"message": message, "finish_reason": "stop"}]
        return web.json_response({"model": "m", "choices": choices, "usage": USAGE})
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    block = PIECE * 20
    for _ in range(int(body["messages"][0]["content"]) // len(block) + 1):
        await reply.write(block)
    await reply.write(event([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    await reply.write(event([], USAGE) + b"data: [DONE]\n\n")
    return reply


async def serve(pipe: Connection) -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pipe.send(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    await asyncio.to_thread(pipe.recv)


async def forward(pipe: Connection, base_url: str) -> None:
    from agentv.engine.calls.call_throttle import CallThrottle
    from agentv.extensions.agents.gateway.server import LocalGateway
    from agentv.model.run.trial import Trial
    from agentv.model.suite.suite import Case, Suite, TargetSpec
    from agentv.model.suite.tools import ModelUpstream

    upstream = ModelUpstream("openai", base_url, KEY)
    spec = TargetSpec("agent", "cli", object(), upstream=upstream)
    trial = Trial(Suite("suite", ()), Case("case", (), ()), spec, threshold=1.0, timeout_s=600.0)
    gateway = LocalGateway(CallThrottle(), None, time.monotonic)
    session = await gateway.open(trial, upstream)
    pipe.send((session.access.base_url("openai"), session.access.token))
    while await asyncio.to_thread(pipe.recv) == CPU:
        pipe.send(time.process_time())
    pipe.send([call.tokens is not None and call.tokens.total == 15 for call in session.calls])
    await gateway.close()


def run_server(pipe: Connection) -> None:
    asyncio.run(serve(pipe))


def run_gateway(pipe: Connection, base_url: str) -> None:
    asyncio.run(forward(pipe, base_url))


@asynccontextmanager
async def processes() -> AsyncIterator[tuple[str, str, str, Connection]]:
    """The server's address, the gateway's and its token, and a pipe that the gateway tells its counts by."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=run_server, args=(theirs,), daemon=True)
    server.start()
    bare = await asyncio.to_thread(ours.recv)
    pipe, other = context.Pipe()
    gateway = context.Process(target=run_gateway, args=(other, bare), daemon=True)
    gateway.start()
    address, token = await asyncio.to_thread(pipe.recv)
    try:
        yield bare, address, token, pipe
    finally:
        ours.send(None)
        gateway.join(5)
        server.join(5)


async def call(client: ClientSession, base_url: str, token: str, size: int | None) -> float:
    """Milliseconds of one call; `size`: of the stream in bytes; None: it is not streamed."""
    body = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": str(size or 0)}]}
    if size is not None:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    began = time.perf_counter()
    headers = {"Authorization": f"Bearer {token}"}
    async with client.post(f"{base_url}/chat/completions", json=body, headers=headers) as reply:
        reply.raise_for_status()
        async for _ in reply.content.iter_any():
            pass
    return (time.perf_counter() - began) * 1000


async def cpu_of(pipe: Connection) -> float:
    """Seconds of processor time that the gateway has taken."""
    pipe.send(CPU)
    found: float = await asyncio.to_thread(pipe.recv)
    return found


async def main(calls: int, megabytes: int) -> None:
    async with processes() as (bare, through, token, pipe), ClientSession() as client:
        ways = {"bare": (bare, KEY), "gateway": (through, token)}
        works = {
            "a call": (calls, None),
            "a stream of 1 kB": (calls, 1000),
            "1 MB streamed": (5, megabytes * 1_000_000),
        }
        made = 0
        for address, key in ways.values():
            await call(client, address, key, None)
        made += 1
        for name, (count, size) in works.items():
            times: dict[str, list[float]] = {way: [] for way in ways}
            spent = -await cpu_of(pipe)
            for _ in range(count):
                for way, (address, key) in ways.items():
                    times[way].append(await call(client, address, key, size))
            made += count
            spent += await cpu_of(pipe)
            per = megabytes if name.startswith("1 MB") else 1
            plain, counted = (statistics.median(times[way]) / per for way in ("bare", "gateway"))
            used = spent * 1000 / count / per
            print(f"{name:18} bare {plain:8.2f} ms   gateway {counted:8.2f} ms   processor {used:6.2f} ms")
        pipe.send(None)
        counts = await asyncio.to_thread(pipe.recv)
        if counts != [True] * made:
            raise SystemExit(f"the gateway counted {sum(counts)} of {made} calls")
        print(f"{made} calls, all counted with their tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=20)
    given = parser.parse_args()
    asyncio.run(main(given.calls, given.megabytes))
