"""Run one turn of each agent that is installed here, against a server that plays its model.

    python docs/website/agent_checks.py   rewrites agent_checks.json

The table of agents in `docs/reference/targets.md` shows these checks; agents that are not in the file were not run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentv.app.registries import registries
from agentv.registry.types import Provider
from agentv.testing import AgentScript, ModelServer

CHECKS = Path(__file__).with_name("agent_checks.json")


def agents() -> Iterator[Provider]:
    """The providers of agents with a program of their own, by name."""
    known = registries().providers
    for name in known.names:
        provider = known.find(name)
        if provider is not None and provider.name == name and getattr(provider.settings, "program", None) is not None:
            yield provider


def checked() -> Mapping[str, Any]:
    """Provider → the result of `agentv targets --check` of those that are installed."""
    installed = [one for one in agents() if one.settings.program.missing("") is None]  # type: ignore[attr-defined]
    with ModelServer(AgentScript(["OK"])) as server, TemporaryDirectory() as place:
        urls = {"anthropic": server.anthropic, "gemini": server.gemini}
        targets = [
            {
                "name": one.name,
                "provider": one.name,
                "model": "openai/m" if one.name in ("opencode", "mini-swe-agent", "pi-cli") else "m",
                "base_url": urls.get(one.settings.protocol or "", server.openai),  # type: ignore[attr-defined]
                "api_key": "sk-no-key-12345678",
            }
            for one in installed
        ]
        Path(place, ".git").mkdir()
        Path(place, ".agentv").mkdir()
        Path(place, ".agentv/targets.yaml").write_text(json.dumps({"targets": targets}), encoding="utf-8")
        command = [sys.executable, "-m", "agentv", "targets", "--check", "--json", "--timeout", "120"]
        ended = subprocess.run(command, cwd=place, env=os.environ, capture_output=True, text=True, check=False)
        if ended.returncode not in (0, 3):
            raise SystemExit(ended.stderr)
        return {one["name"]: one["check"] for one in json.loads(ended.stdout)["targets"]}


if __name__ == "__main__":
    found = checked()
    for one in found.values():
        del one["duration_ms"], one["agent"]["cost_usd"]
    CHECKS.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
