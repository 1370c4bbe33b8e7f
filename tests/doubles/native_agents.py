"""Fake agents that print the recorded output of real agents, which ran against a local model server.

The streams are in `tests/unit/extensions/agents/adapters/streams/AGENT/SITUATION.jsonl`, with paths and long irrelevant
texts replaced. What an agent also writes to a file is appended to its stdout, as in its trace.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agentv.extensions.agents.adapters.native_settings import Ending, Memory, NativeAgentSettings, StreamReader
from agentv.extensions.agents.adapters.recorder import Recording
from agentv.registry.fields import Command
from agentv.targets.catalogue import PROVIDERS

PROGRAM = Path(__file__).with_name("native_agent.py")
STREAMS = Path(__file__).parents[1] / "unit/extensions/agents/adapters/streams"


def stream(agent: str, situation: str) -> Path:
    """Return the recorded stream of an agent in a situation."""
    return STREAMS / agent / f"{situation}.jsonl"


def settings_of(provider: str, **settings: Any) -> Any:
    module, _, name = PROVIDERS[provider].partition(":")
    return getattr(import_module(module), name)(**settings)


def program(script: dict[str, Any]) -> Command:
    """Return the command of a fake agent that follows this script."""
    return Command((sys.executable, str(PROGRAM), json.dumps(script)))


def printing_program(file: Path, status: int = 0) -> Command:
    """Return the command of a program that prints a file and exits."""
    return program({"streams": [str(file)], "status": status})


def replaying_settings(agent: str, situation: str, status: int = 0, **settings: Any) -> Any:
    """Return the settings of an agent whose program prints a recorded stream."""
    return settings_of(agent, command=printing_program(stream(agent, situation), status), **settings)


def printing_settings(settings: type[NativeAgentSettings], *situations: str, agent: str = "", **more: Any) -> Any:
    """Return settings of an agent whose program prints the streams of these situations; `script` extends its script."""
    script = {"streams": [str(stream(agent or settings.program.name, one)) for one in situations]}
    script |= more.pop("script", {})
    return settings(command=program(script), **more)


def read(reader: StreamReader, path: Path) -> Ending:
    """Read a recorded stream event by event and return its ending."""
    for line in path.read_text(encoding="utf-8").splitlines():
        reader.read(json.loads(line))
    return reader.ending()


def read_recording(settings: NativeAgentSettings, situation: str) -> tuple[Recording, Ending]:
    recording = Recording("Do the task.")
    return recording, read(settings.reader(recording, Memory()), stream(settings.program.name, situation))


def target_of(agent: str, situations: dict[str, str], **more: object) -> str:
    """Return a target that prints the stream chosen by its prompt: text in the prompt → situation."""
    script = {"by_prompt": {text: str(stream(agent, one)) for text, one in situations.items()}}
    command = [sys.executable, str(PROGRAM), json.dumps(script)]
    return json.dumps({"name": agent, "provider": agent, "command": command, **more})
