"""Agents that print a recorded stream, as targets; the streams by agent and situation."""

import json
import sys
from pathlib import Path
from typing import Any

from agentv.extensions.agents.adapters.native_settings import Ending, Memory, NativeAgentSettings, StreamReader
from agentv.extensions.agents.adapters.recorder import Recording
from agentv.registry.fields import Command

PROGRAM = Path(__file__).with_name("native_agent.py")
STREAMS = Path(__file__).parents[1] / "unit/extensions/agents/adapters/streams"


def stream(agent: str, situation: str) -> Path:
    """A stream that the agent printed in that situation."""
    return STREAMS / f"{agent}--{situation}.jsonl"


def printing(settings: type[NativeAgentSettings], *situations: str, agent: str = "", **more: Any) -> Any:
    """Settings of an agent whose program prints the streams of these situations; `script` has more for the program."""
    script = {"streams": [str(stream(agent or settings.program.name, one)) for one in situations]}
    script |= more.pop("script", {})
    return settings(command=Command((sys.executable, str(PROGRAM), json.dumps(script))), **more)


def read(reader: StreamReader, path: Path) -> Ending:
    """How a recorded stream ends, read event by event."""
    for line in path.read_text(encoding="utf-8").splitlines():
        reader.read(json.loads(line))
    return reader.ending()


def recorded(settings: NativeAgentSettings, situation: str) -> tuple[Recording, Ending]:
    """What a recorded stream comes to."""
    recording = Recording("Do the task.")
    return recording, read(settings.reader(recording, Memory()), stream(settings.program.name, situation))


def target_of(agent: str, situations: dict[str, str], **more: object) -> str:
    """The target that prints a stream by what its prompt holds: text → situation."""
    script = {"by_prompt": {text: str(STREAMS / f"{agent}--{one}.jsonl") for text, one in situations.items()}}
    command = [sys.executable, str(PROGRAM), json.dumps(script)]
    return json.dumps({"name": agent, "provider": agent, "command": command, **more})
