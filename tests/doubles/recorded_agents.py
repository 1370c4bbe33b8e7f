"""Programs that print what a real agent printed against our own model server, so that adapters are tested as they run.

The streams are in `tests/unit/extensions/agents/adapters/streams/AGENT/SCENARIO.jsonl`, with paths, and what only takes space,
replaced. What an agent writes to a file beside its stdout stands in them behind it, as its trace keeps it.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agentv.registry.fields import Command
from agentv.targets.catalogue import PROVIDERS

STREAMS = Path(__file__).parents[1] / "unit/extensions/agents/adapters/streams"

_PRINT = """
import sys
stream, status = sys.argv[1:3]
sys.stdout.buffer.write(open(stream, "rb").read())
sys.stdout.flush()
sys.exit(int(status))
"""


def stream(agent: str, scenario: str) -> Path:
    """The file of a recorded stream."""
    return STREAMS / agent / f"{scenario}.jsonl"


def prints(file: Path, status: int = 0) -> Command:
    """A program that prints a file and exits."""
    return Command((sys.executable, "-c", _PRINT, str(file), str(status)))


def settings_of(provider: str, **settings: Any) -> Any:
    """The settings of a provider, by its name."""
    module, _, name = PROVIDERS[provider].partition(":")
    return getattr(import_module(module), name)(**settings)


def played(agent: str, scenario: str, status: int = 0, **settings: Any) -> Any:
    """The settings of an agent whose program prints a recorded stream."""
    return settings_of(agent, command=prints(stream(agent, scenario), status), **settings)
