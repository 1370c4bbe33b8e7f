"""The process of an agent: interrupted as by Ctrl-C, and killed if it does not end."""

import asyncio
import sys

import pytest

from agentv.extensions.agents.adapters.process import start_argv
from doubles.asking import request

POLITE = "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt: print('what it did')\n"
DEAF = (
    "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('ready', flush=True)\ntime.sleep(60)\n"
)


async def interrupted(code, cwd):
    process = await start_argv((sys.executable, "-c", code), request(), str(cwd))
    assert await process.line() == b"ready"
    await process.interrupt(1.0 if code is DEAF else 20.0)
    ended = await process.wait(0)
    rest = [] if ended is None else [await process.line(), await process.line()]
    await process.end(0.2)
    return ended, rest, await process.wait(0)


@pytest.mark.parametrize(("code", "ended", "said"), [(POLITE, 0, [b"what it did", None]), (DEAF, None, [])])
def test_an_interrupted_agent_can_say_what_it_did(tmp_path, code, ended, said):
    first, rest, status = asyncio.run(interrupted(code, tmp_path))
    assert (first, rest) == (ended, said)
    assert status is not None
