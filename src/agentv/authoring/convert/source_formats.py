"""Formats that `agentv convert` reads, by name: those of the core, and how a message lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

AGENTV: Final = "agentv"
AGENT_SKILLS: Final = "agent-skills"
EVA: Final = "eva"

FORMATS = (AGENTV, AGENT_SKILLS, EVA)
"""What `--from` takes, beside the dialects of extensions and packages."""


def named_by(names: Sequence[str]) -> str:
    """How to name one of these formats."""
    flags = [f"--from {name}" for name in names]
    return f"name its format: {' or '.join([', '.join(flags[:-1])] * (len(flags) > 1) + flags[-1:])}"
