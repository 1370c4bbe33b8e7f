"""Scripted ACP agents as targets, and a sandbox that records its calls."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentv.extensions.agents.adapters.acp import Acp
from agentv.registry.fields import Command

AGENT = Path(__file__).with_name("acp_agent.py")


def acp(
    *steps: dict, begin: dict | None = None, options: list | None = None, prompts: list | None = None, **settings: Any
) -> Acp:
    """Return an agent that performs these steps at each prompt, or the successive entries of `prompts`."""
    script = {"begin": begin or {}, "options": options, "prompts": prompts or [list(steps)]}
    return Acp(Command((sys.executable, str(AGENT), json.dumps(script))), **settings)


def call(identity: str = "call-1", **more: Any) -> dict:
    """Return a step that reports a tool call."""
    told = {"sessionUpdate": "tool_call", "toolCallId": identity, "title": "Bash", "status": "completed", **more}
    return {"update": told}


@dataclass
class RecordingSandbox:
    """A sandbox that confines nothing and records its calls."""

    home: str = ""
    name: str = "none"
    network: str = "host"
    started: list[tuple[str, ...]] = field(default_factory=list)

    def argv(self, argv, cwd=""):
        self.started.append((*argv, cwd))
        return ("env", "CONFINED=yes", *argv)

    def environment(self, env, named=()):
        return dict(env)

    def forwarding(self, forwards):
        self.forwards = dict(forwards)
        return self
