"""Time of prompts through the `acp` target, over the bare SDK: python benchmarks/acp_overhead.py [PROMPTS] [TRIALS]

A trivial agent answers each prompt with one message. Measured are prompts of one session, and whole trials: an agent
started, asked once, ended. The bare SDK is `spawn_agent_process`, with a client that keeps nothing.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block

from agentv.extensions.agents.adapters.acp import Acp
from agentv.extensions.agents.adapters.acp_session import open_session
from agentv.model.values.message import Message
from agentv.ports import TargetRequest
from agentv.registry.fields import Command

AGENT = """
import asyncio, sys
from acp import (Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent, update_agent_message_text)

SIZE = int(sys.argv[1])

class Trivial(Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, **_):
        return NewSessionResponse(session_id="s")

    async def prompt(self, prompt, session_id, **_):
        left = SIZE
        while left > 0:
            await self.client.session_update(session_id, update_agent_message_text("x" * min(left, 1000)))
            left -= 1000
        return PromptResponse(stop_reason="end_turn")

asyncio.run(run_agent(Trivial()))
"""


class Silent:
    """A client that keeps nothing."""

    def on_connect(self, conn: object) -> None:
        pass

    async def session_update(self, session_id: str, update: object, **_: object) -> None:
        pass


def request(turn: int | None) -> TargetRequest:
    return TargetRequest("case", "hello", (Message("user", "hello"),), timeout_s=600, turn=turn)


async def bare(command: list[str], prompts: int) -> list[float]:
    took = []
    async with spawn_agent_process(Silent(), command[0], *command[1:]) as (connection, _):
        await connection.initialize(PROTOCOL_VERSION)
        session = await connection.new_session(cwd="/")
        for _ in range(prompts):
            began = time.perf_counter()
            await connection.prompt(session.session_id, [text_block("hello")])
            took.append(time.perf_counter() - began)
    return took


async def ours(command: list[str], prompts: int) -> list[float]:
    took = []
    session = await open_session(Acp(Command(tuple(command))), request(1))
    try:
        for number in range(1, prompts + 1):
            began = time.perf_counter()
            await session.prompt(request(number))
            took.append(time.perf_counter() - began)
    finally:
        await session.close()
    return took


async def trials(command: list[str], count: int, *, through_us: bool) -> list[float]:
    target = Acp(Command(tuple(command))).connect(None, None)
    took = []
    for _ in range(count):
        began = time.perf_counter()
        if through_us:
            await target.answer(request(None))
        else:
            await bare(command, 1)
        took.append(time.perf_counter() - began)
    return took


def show(what: str, found: list[float]) -> None:
    print(f"{what:34} median {statistics.median(found) * 1000:9.2f} ms   mean {statistics.mean(found) * 1000:9.2f} ms")


def main(prompts: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        agent = Path(directory, "agent.py")
        agent.write_text(AGENT)
        for size, number in ((10, prompts), (10_000_000, 1)):
            command = [sys.executable, str(agent), str(size)]
            print(f"{number} prompts of one session, {size:,} letters each")
            show("bare SDK", asyncio.run(bare(command, number)))
            show("acp target", asyncio.run(ours(command, number)))
        command = [sys.executable, str(agent), "10"]
        print(f"{count} trials, each an agent of its own")
        show("bare SDK", asyncio.run(trials(command, count, through_us=False)))
        show("acp target", asyncio.run(trials(command, count, through_us=True)))
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    main(*(numbers or [500, 10]))
