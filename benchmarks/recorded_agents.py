#!/usr/bin/env python3
"""Time trials of an agent with its model, recorded, and replayed from the cassette, in turns.

    benchmarks/recorded_agents.py
    benchmarks/recorded_agents.py --calls 50 --delay 0.5 --replays 10

The agent is a small program that makes so many model calls one after the other, each with the whole conversation so
far; the model is a server on loopback that takes so many seconds for each. Prints the medians of a trial's duration,
milliseconds of a replayed call, and the size of the cassette. A replay counts only if its verdict and its answer are
those of the recording, no prompt differs, and the server is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agentv.testing import Answer, ModelServer

AGENT = """\
import json, os, sys
from urllib.request import Request, urlopen

messages = []
for number in range(int(sys.stdin.read())):
    messages.append({"role": "user", "content": f"question {number} " + "context " * 200})
    body = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    with urlopen(Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)) as reply:
        messages.append(json.load(reply)["choices"][0]["message"])
print(messages[-1]["content"])
"""


def evaluated(directory: Path, out: str, *words: str, **env: str) -> dict[str, Any]:
    """The row of the one trial of a run."""
    command = [sys.executable, "-m", "agentv", "eval", "a.eval.yaml", "--out", out, *words]
    subprocess.run(command, cwd=directory, env={**os.environ, **env}, check=True, capture_output=True)
    row: dict[str, Any] = json.loads((directory / out / "index.jsonl").read_text())
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20, help="model calls of the agent (default 20)")
    parser.add_argument("--delay", type=float, default=0.2, help="seconds of each reply of the model (default 0.2)")
    parser.add_argument("--replays", type=int, default=10, help="replays (default 10)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        directory.joinpath("agent.py").write_text(AGENT)
        directory.joinpath("a.eval.yaml").write_text(
            f"target: {{provider: cli, command: [{json.dumps(sys.executable)}, agent.py], gateway: openai}}\n"
            "sandbox: none\nworkspace: {}\n"
            f'tests:\n  - {{id: a, input: "{options.calls}", assert: [contains: reply]}}\n'
        )
        with ModelServer(Answer("reply", delay_s=options.delay)) as server:
            env = {"OPENAI_BASE_URL": server.openai, "OPENAI_API_KEY": "sk-benchmark-0123456789"}
            recorded = evaluated(directory, "recorded", "--record", "run.jsonl", **env)
        durations = []
        for number in range(options.replays):
            row = evaluated(directory, f"replayed{number}", "--replay", "run.jsonl")
            same = (row["status"], row["output"]) == (recorded["status"], recorded["output"])
            if not same or row.get("notes") or not row["reused"]:
                raise SystemExit(f"replay {number} differs: {row['status']} {row.get('notes')} {row['error']}")
            durations.append(row["duration_ms"])
        median = statistics.median(durations)
        size = directory.joinpath("run.jsonl").stat().st_size
        print(f"recorded {recorded['duration_ms']:.0f} ms with {options.calls} calls of {options.delay:g} s")
        print(f"replayed {median:.0f} ms ({len(durations)} times, {min(durations):.0f} to {max(durations):.0f} ms)")
        print(f"{median / options.calls:.1f} ms a call with the start of the agent; cassette of {size / 1000:,.0f} kB")


if __name__ == "__main__":
    main()
