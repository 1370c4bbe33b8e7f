#!/usr/bin/env python3
"""Real coding agents against our own model server: overhead, calls and tokens that agree, orphans, many at once.

    unshare --net sh -c 'ip link set lo up; exec benchmarks/agents.py'
    benchmarks/agents.py --only claude,codex --program claude=/opt/claude --at-once 8
    benchmarks/agents.py --cassette

Every agent that is installed, or named by `--program`, works through a script of four model calls (read, edit, run a
command, answer): bare, with the flags and settings that agentv gives it, and through `agentv eval`. Nothing here needs
a network, so it is refused where there is one: the programs would report home.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from agentv.extensions.agents.adapters.native import TrialDirectories
from agentv.extensions.agents.adapters.native_settings import NativeAgentSettings
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.ports import TargetRequest
from agentv.registry.fields import Command
from agentv.targets.catalogue import PROVIDERS
from agentv.testing import AgentScript, Answer, ModelCall, ModelServer, use_tool
from agentv.testing.steps import Step

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
MODELS = {
    "claude": ("anthropic", "claude-haiku-4-5"),
    "codex": ("openai", "gpt-5.2"),
    "gemini-cli": ("gemini", "gemini-2.5-flash"),
    **dict.fromkeys(("copilot-cli", "pi-cli", "opencode", "mini-swe-agent"), ("openai", "gpt-4.1")),
}
"""Provider → protocol of the server that it calls, and a model whose name it knows."""

PROMPT = "Set the price in app.py to 2."
APP = "def price():\n    return 1\n"
MARK = "AGENTV_BENCHMARK"
STEP_S = 0.2

SCRIPT = (
    replace(use_tool("read", path="app.py"), text="I will look.", usage=TokenUsage(100, 11, 111, 40, 0)),
    replace(use_tool("edit", path="app.py", old="return 1", new="return 2"), usage=TokenUsage(200, 13, 213, 0, 0)),
    replace(use_tool("shell", command="cat app.py"), usage=TokenUsage(250, 9, 259, 0, 0)),
    Answer("The price is 2.", usage=TokenUsage(300, 17, 317, 0, 0)),
)


class AgentFailedError(Exception):
    """An agent could not be measured."""


class CountingServer:
    """A model server that counts what it answered."""

    def __init__(self) -> None:
        self._script = AgentScript(SCRIPT)
        self.calls = self.input = self.output = 0
        self.server = ModelServer(self._reply)

    def _reply(self, call: ModelCall) -> Step:
        step = self._script(call)
        if isinstance(step, Answer) and step.usage is not None:
            self.calls += 1
            self.input += step.usage.input or 0
            self.output += step.usage.output or 0
        return step

    def counts(self) -> tuple[int, int, int]:
        """Calls, tokens in and out since the last time."""
        found = self.calls, self.input, self.output
        self.calls = self.input = self.output = 0
        return found


@dataclass
class Agent:
    """An agent that is measured."""

    provider: str
    program: str
    server: CountingServer
    mark: str = field(default_factory=lambda: uuid4().hex)

    @property
    def base_url(self) -> str:
        url: str = getattr(self.server.server, MODELS[self.provider][0])
        return url

    def settings(self) -> NativeAgentSettings:
        model = MODELS[self.provider][1]
        given = {"command": Command((self.program,)), "model": model, "base_url": self.base_url, "api_key": "a-key"}
        settings: NativeAgentSettings = settings_class(self.provider)(**given)
        return settings

    def suite(self, directory: Path, cases: int = 1) -> Path:
        """An eval file with this agent as its target."""
        (directory / "repo").mkdir(parents=True, exist_ok=True)
        (directory / "repo/app.py").write_text(APP)
        target = {
            "name": self.provider,
            "provider": self.provider,
            "command": [self.program],
            "model": MODELS[self.provider][1],
            "base_url": self.base_url,
            "api_key": "a-key",
            "env": {MARK: self.mark},
        }
        asserts = [{"type": "file-contains", "path": "app.py", "value": "return 2"}, {"contains": "price is 2"}]
        tests = [{"id": f"case-{number}", "input": PROMPT, "assert": asserts} for number in range(cases)]
        suite = {"target": target, "workspace": {"template": "./repo"}, "tests": tests}
        file = directory / "agents.eval.yaml"
        file.write_text(json.dumps(suite))
        return file


def settings_class(provider: str) -> Any:
    module, _, name = PROVIDERS[provider].partition(":")
    return getattr(import_module(module), name)


def bare(agent: Agent) -> float:
    """Seconds of the program by itself, as agentv would start it."""
    with tempfile.TemporaryDirectory() as place:
        workspace = Path(place, "workspace")
        workspace.mkdir()
        (workspace / "app.py").write_text(APP)
        request = TargetRequest("case", PROMPT, (Message("user", PROMPT),), workspace_path=str(workspace))
        directories = TrialDirectories(request)
        try:
            launch = agent.settings().launch(request, directories.paths, "")
            problem = launch if isinstance(launch, Failure) else directories.prepare(launch, ())
            if problem is not None or isinstance(launch, Failure):
                raise AgentFailedError(str(problem))
            home = directories.paths.home
            env = {**os.environ, "HOME": home, **launch.env, MARK: agent.mark}
            began = time.monotonic()
            argv = (agent.program, *launch.argv)
            subprocess.run(argv, cwd=workspace, env=env, input=launch.stdin, capture_output=True, check=False)
            took = time.monotonic() - began
            if "return 2" not in (workspace / "app.py").read_text():
                raise AgentFailedError(f"{agent.provider}: the bare program did not do the work")
            return took
        finally:
            directories.remove()


@dataclass(frozen=True)
class Outcome:
    """One `agentv eval`."""

    seconds: float
    statuses: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    traces: tuple[Mapping[str, Any], ...]
    memory_mb: float
    orphans: int

    def usages(self, evidence: str) -> tuple[int, int, int]:
        """Calls, tokens in and out, as the agents or the gateway say."""
        steps = [one for trace in self.traces for one in trace["steps"] if is_usage(one, evidence)]
        tokens = [one.get("tokens") or {} for one in steps]
        return len(steps), sum(one.get("input") or 0 for one in tokens), sum(one.get("output") or 0 for one in tokens)


def is_usage(step: Mapping[str, Any], evidence: str) -> bool:
    return step.get("type") == "usage" and step.get("evidence", "agent") == evidence


def evaluated(agent: Agent, cases: int = 1, *further: str) -> Outcome:
    """Run `agentv eval`; what it found, and what it left."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        suite = agent.suite(directory, cases)
        argv = (AGENTV, "eval", str(suite), "--workers", str(cases), "--out", str(directory / "out"), *further)
        began = time.monotonic()
        with Memory(agent.mark) as memory:
            done = subprocess.run(
                argv, cwd=directory, env={**os.environ, MARK: agent.mark}, capture_output=True, text=True, check=False
            )
        took = time.monotonic() - began
        index = next(directory.glob("out/**/index.jsonl"), None)
        if index is None:
            raise AgentFailedError(f"{agent.provider}: {done.stdout}{done.stderr}")
        rows = tuple(json.loads(line) for line in index.read_text().splitlines())
        files = [index.parent / row["trace_path"] for row in rows if row.get("trace_path")]
        traces = tuple(json.loads(file.read_text()) for file in files)
        statuses = tuple(" ".join((row["status"], *([row["error"]["code"]] if row["error"] else []))) for row in rows)
        time.sleep(STEP_S)
        return Outcome(took, statuses, rows, traces, memory.most_mb, len(list(marked(agent.mark))))


def marked(mark: str) -> Iterator[int]:
    """Processes that have the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


class Memory:
    """The most memory that marked processes have at once, each shared page counted by its share."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most_mb = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(STEP_S):
            self.most_mb = max(self.most_mb, sum(map(share_mb, marked(self._mark))))


def share_mb(process: int) -> float:
    with suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
    return 0.0


def compared(agent: Agent, rounds: int) -> Iterator[str]:
    """The row of an agent's overhead and of what agrees."""
    bare(agent)  # what it caches of itself, it caches for both
    agent.server.counts()
    alone = statistics.median(bare(agent) for _ in range(rounds))
    agent.server.counts()
    outcomes = []
    for _ in range(rounds):
        agent.server.counts()
        outcomes.append((evaluated(agent), agent.server.counts()))
    outcome, served = outcomes[-1]
    through = statistics.median(one.seconds for one, _ in outcomes)
    yield agent.provider
    yield outcome.traces[0].get("agent_version", "") if outcome.traces else ""
    yield f"{alone:.1f} s"
    yield f"{through:.1f} s"
    yield f"{through - alone:+.1f} s"
    yield shown(served)
    yield shown(outcome.usages("agent"))
    yield shown(outcome.usages("gateway"))
    yield " ".join(sorted({status for one, _ in outcomes for status in one.statuses}))
    yield str(sum(one.orphans for one, _ in outcomes) + len(list(marked(agent.mark))))


def shown(counts: tuple[int, int, int]) -> str:
    calls, given, made = counts
    return f"{calls}: {given}+{made}" if calls else "-"


def at_once(agent: Agent, count: int) -> Iterator[str]:
    """The row of many agents at once."""
    agent.server.counts()
    outcome = evaluated(agent, count)
    yield agent.provider
    yield f"{outcome.seconds:.1f} s"
    yield f"{outcome.memory_mb:.0f} MB"
    yield f"{outcome.memory_mb / count:.0f} MB"
    yield shown(agent.server.counts())
    yield f"{sum(one == 'passed' for one in outcome.statuses)} of {count}"
    yield str(outcome.orphans)


def replayed(agent: Agent, times: int) -> Iterator[str]:
    """The row of a run that is recorded once, and replayed while the server answers nothing that counts."""
    with tempfile.TemporaryDirectory() as place:
        cassette = f"{place}/run.cassette"
        recorded = evaluated(agent, 1, "--record", cassette)
        agent.server.counts()
        again = [evaluated(agent, 1, "--replay", cassette) for _ in range(times)]
        yield agent.provider
        yield f"{recorded.seconds:.1f} s"
        yield f"{statistics.median(one.seconds for one in again):.1f} s"
        yield f"{sum(one.statuses == recorded.statuses for one in again)} of {times}"
        yield " ".join(sorted({status for one in (recorded, *again) for status in one.statuses}))
        yield str(agent.server.counts()[0])
        yield str(sum(one.orphans for one in (recorded, *again)))


def print_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def print_head(*cells: str) -> None:
    print()
    print_row(*cells)
    print_row(*("---" for _ in cells))


def programs(named: list[str], only: str) -> Iterator[tuple[str, str]]:
    """Provider and program of each agent that is there."""
    given = dict(one.split("=", 1) for one in named)
    wanted = only.split(",") if only else list(MODELS)
    for provider in wanted:
        program = given.get(provider) or settings_class(provider).program.find()
        if shutil.which(program):
            yield provider, program
        else:
            print(f"{provider}: not installed", file=sys.stderr)


def has_network() -> bool:
    with suppress(OSError):
        return len(Path("/proc/net/route").read_text().splitlines()) > 1
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", default=[], metavar="AGENT=PATH", help="program of an agent")
    parser.add_argument("--only", default="", metavar="AGENTS", help="comma-separated; default: all that are installed")
    parser.add_argument("--rounds", type=int, default=3, help="runs, of which the median counts")
    parser.add_argument("--at-once", type=int, default=0, metavar="N", help="only measure N agents at once")
    parser.add_argument("--cassette", type=int, nargs="?", const=10, default=0, metavar="N", help="only replay N times")
    parser.add_argument("--with-network", action="store_true", help="run where the programs can reach a network")
    options = parser.parse_args()
    if has_network() and not options.with_network:
        raise SystemExit("there is a network here; run this inside `unshare --net`, or with --with-network")
    server = CountingServer()
    with server.server:
        agents = [Agent(provider, program, server) for provider, program in programs(options.program, options.only)]
        if options.at_once:
            print_head("agent", "time", "memory", "per agent", "server", "passed", "orphans")
            rows = (at_once(one, options.at_once) for one in agents)
        elif options.cassette:
            print_head("agent", "recorded", "replayed", "same verdict", "verdict", "calls of the server", "orphans")
            rows = (replayed(one, options.cassette) for one in agents)
        else:
            names = ("agent", "version", "bare", "agentv eval", "overhead", "server", "agent says", "gateway")
            print_head(*names, "verdict", "orphans")
            rows = (compared(one, options.rounds) for one in agents)
        for row in rows:
            try:
                print_row(*row)
            except AgentFailedError as error:
                print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
