#!/usr/bin/env python3
"""Time calls to a model: whole processes, start to exit, against a provider on this machine.

    benchmarks/model_calls.py delay-50
    benchmarks/model_calls.py rate-100 --rounds 3 --promptfoo 'node node_modules/.bin/promptfoo' --inspect inspect

Works: delay-N, every answer takes N milliseconds; rate-N, the same with 50 ms, and the provider accepts N requests a
second and refuses others with 429. The provider is agentv's `ModelServer` in its own process, a new one for each run.
1,000 cases × 5 deterministic assertions run at 50 workers with `agentv eval --target
openai:fake-model`; for comparison, the OpenAI SDK alone (AsyncOpenAI on its aiohttp client) makes the same calls and
compares the texts. promptfoo and Inspect also run if their commands are given. Each runs once per round, so that drift
affects all equally.

Prints medians: wall and CPU seconds (with all children), the largest process's memory, the cases that passed, and what
the provider counted: requests, the maximum concurrency, the share of 429s, and answers a second from the first
request to the last. `+ wall` and `+ CPU` are a case's cost beyond the SDK alone, in milliseconds. In delay-N a run
counts only if every case passed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
ANSWER = '{"answer": "fixed", "id": 7, "body": "The quick brown fox jumps over the lazy dog."}'
DELAY_MS = 50
TIMEOUT_S = 600

SDK = f"""
import asyncio, sys
from openai import APIError, AsyncOpenAI, DefaultAioHttpClient

async def main(count, workers, retries):
    passed, numbers = 0, iter(range(count))

    async def work():
        nonlocal passed
        for number in numbers:
            prompt = [{{"role": "user", "content": f"Question number {{number}}: reply with the fixed JSON."}}]
            try:
                got = await client.chat.completions.create(model="fake-model", messages=prompt)
            except APIError:
                continue
            passed += got.choices[0].message.content == {ANSWER!r}

    async with AsyncOpenAI(max_retries=retries, http_client=DefaultAioHttpClient()) as client:
        await asyncio.gather(*(work() for _ in range(workers)))
    print(passed)

asyncio.run(main(*map(int, sys.argv[1:])))
"""
INSPECT = """
import json, pathlib, re
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate

def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True

@scorer(metrics=[mean()])
def five_checks():
    async def score(state, target):
        output, row = state.output.completion, state.metadata
        checks = [
            row["contains"] in output,
            row["absent"] not in output,
            re.search(row["regex"], output) is not None,
            output.startswith(row["start"]),
            is_json(output),
        ]
        return Score(value=int(all(checks)), answer=output)
    return score

@task
def calls():
    rows = [json.loads(line) for line in pathlib.Path(__file__).with_name("rows.jsonl").open()]
    samples = [Sample(id=row["id"], input=row["input"], metadata=row) for row in rows]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=five_checks())
"""


@dataclass(frozen=True)
class Load:
    """Number of cases, and concurrency."""

    count: int
    workers: int
    delay_ms: float
    rate: float | None


@dataclass(frozen=True)
class Measured:
    wall_s: float
    cpu_s: float
    rss_mb: float
    passed: int
    counts: dict[str, Any]

    def refused(self) -> float:
        """The share of 429s among all replies."""
        statuses = self.counts["statuses"]
        return statuses.get("429", 0) / max(1, sum(statuses.values()))

    def answers_a_second(self) -> float:
        return self.counts["statuses"].get("200", 0) / max(1e-9, self.counts["seconds"])


@dataclass(frozen=True)
class Contender:
    """A program that makes the calls, and where it says how many cases passed."""

    command: list[str]
    passed: Callable[[Path, str], int]
    environment: dict[str, str] = field(default_factory=dict)


def rows(count: int) -> Iterator[dict[str, str]]:
    for number in range(count):
        yield {
            "id": f"case-{number:06d}",
            "input": f"Question number {number}: reply with the fixed JSON.",
            "contains": "quick brown fox",
            "absent": f"forbidden-{number}",
            "regex": r'"id": \d+',
            "start": '{"answer":',
        }


def assertions(row: dict[str, str]) -> list[dict[str, str]]:
    return [
        {"type": "contains", "value": row["contains"]},
        {"type": "not-contains", "value": row["absent"]},
        {"type": "regex", "value": row["regex"]},
        {"type": "starts-with", "value": row["start"]},
        {"type": "is-json"},
    ]


def write_suites(home: Path, count: int) -> None:
    """One file a contender; JSON is YAML too."""
    (home / ".git").mkdir()  # the root of a repository of its own: no settings of this one reach it
    made = list(rows(count))
    ours = [{"id": row["id"], "input": row["input"], "assert": assertions(row)} for row in made]
    theirs = [{"description": row["id"], "vars": {"input": row["input"]}, "assert": assertions(row)} for row in made]
    promptfoo = {"prompts": ["{{input}}"], "providers": ["openai:chat:fake-model"], "tests": theirs}
    (home / "bench.eval.yaml").write_text(yaml({"name": "bench", "target": "echo"}, ours))
    (home / "promptfoo.yaml").write_text(json.dumps({"description": "bench", **promptfoo}, indent=1))
    (home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    (home / "bare_sdk.py").write_text(SDK)
    (home / "inspect_task.py").write_text(INSPECT)


def yaml(head: dict[str, str], tests: list[dict[str, object]]) -> str:
    lines = [f"{key}: {value}\n" for key, value in head.items()]
    return "".join([*lines, "tests:\n", *(f"  - {json.dumps(test)}\n" for test in tests)])


def contenders(args: argparse.Namespace, load: Load) -> dict[str, Contender]:
    workers, count = str(load.workers), str(load.count)
    # Where nothing is refused nothing is tried again. Two tries, its default, would give up most cases of rate-N.
    retries = "0" if load.rate is None else "100"
    run = ["eval", "bench.eval.yaml", "--target", "openai:fake-model", "--workers", workers, "--out", "out", "-q"]
    found = {
        "agentv": Contender([AGENTV, *run], _passed_of_agentv),
        "SDK": Contender([sys.executable, "bare_sdk.py", count, workers, retries], lambda _home, said: int(said)),
    }
    if args.promptfoo:
        quiet = ["--no-cache", "--no-table", "--no-progress-bar", "-o", "out/results.json"]
        command = [*shlex.split(args.promptfoo), "eval", "-c", "promptfoo.yaml", "-j", workers, *quiet]
        found["promptfoo"] = Contender(command, _passed_of_promptfoo, PROMPTFOO)
    if args.inspect:
        model = ["--model", "openai/fake-model", "-M", "responses_api=false", "--max-connections", workers]
        log = ["--max-samples", workers, "--display", "none", "--log-dir", "out", "--log-format", "json"]
        command = [*shlex.split(args.inspect), "eval", "inspect_task.py", *model, *log]
        found["Inspect"] = Contender(command, _passed_of_inspect)
    return found


PROMPTFOO = {
    "NO_UPDATE_NOTIFIER": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_SELF_HOSTED": "1",
}


def _passed_of_agentv(home: Path, _said: str) -> int:
    with (home / "out" / "index.jsonl").open() as lines:
        return sum(json.loads(line)["status"] == "passed" for line in lines)


def _passed_of_promptfoo(home: Path, _said: str) -> int:
    results = json.loads((home / "out" / "results.json").read_text())["results"]["results"]
    return sum(row["success"] is True for row in results)


def _passed_of_inspect(home: Path, _said: str) -> int:
    (log,) = (home / "out").glob("*.json")
    samples = json.loads(log.read_text()).get("samples") or []
    scores = [(sample.get("scores") or {}).get("five_checks", {}) for sample in samples]
    return sum(score.get("value") == 1 for score in scores)


PROVIDER = """
import json, sys
from agentv.testing import ModelServer
text, delay_ms, rate = json.loads(sys.argv[1])
with ModelServer(text, delay_s=delay_ms / 1000, rate=rate) as server:
    print(server.openai, flush=True)
    for _ in sys.stdin:
        calls, statuses = server.calls, server.statuses
        seconds = calls[-1].at - calls[0].at if calls else 0
        print(json.dumps([len(calls), server.most_at_once, seconds, statuses]), flush=True)
"""
"""A process that prints its address, and for each line that it reads what it has counted."""


@contextmanager
def provider(load: Load) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Its address for OpenAI's SDK, and what it has counted."""
    command = [sys.executable, "-c", PROVIDER, json.dumps([ANSWER, load.delay_ms, load.rate])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, said = process.stdin, process.stdout

        def counts() -> dict[str, Any]:
            print(file=asked, flush=True)
            return dict(
                zip(("requests", "most_at_once", "seconds", "statuses"), json.loads(said.readline()), strict=True)
            )

        try:
            yield said.readline().strip(), counts
        finally:
            process.terminate()


def measure(contender: Contender, home: Path, load: Load) -> Measured:
    shutil.rmtree(home / "out", ignore_errors=True)
    (home / "out").mkdir()
    with provider(load) as (address, counts), (home / "log").open("w") as log:
        asked = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "unused", "HOME": str(home)}
        started = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=home,
            env={**os.environ, **contender.environment, **asked},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,
        )
        said = _said(process)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu, rss = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        return Measured(wall, cpu, rss, _passed(contender, home, said), counts())


def _said(process: subprocess.Popen[str]) -> str:
    """All that it prints, until it closes its output; one that takes too long is ended."""
    assert process.stdout is not None
    too_long = threading.Timer(TIMEOUT_S, os.killpg, (process.pid, signal.SIGKILL))
    too_long.start()
    try:
        return process.stdout.read()
    finally:
        too_long.cancel()


def _passed(contender: Contender, home: Path, said: str) -> int:
    try:
        return contender.passed(home, said)
    except (OSError, ValueError, KeyError) as error:
        printed = (home / "log").read_text()[-2000:]
        sys.exit(f"{shlex.join(contender.command)}: no results: {error!r}\n{said[-2000:]}{printed}")


def columns(base: list[Measured], load: Load) -> Iterator[tuple[str, str, Callable[[list[Measured]], float]]]:
    """Heading, format, and the number of a contender's runs."""

    def more(number: Callable[[Measured], float]) -> Callable[[list[Measured]], float]:
        return lambda runs: (middle(number)(runs) - middle(number)(base)) / load.count * 1000

    yield "wall s", ".2f", middle(lambda run: run.wall_s)
    yield "min", ".2f", lambda runs: min(run.wall_s for run in runs)
    yield "max", ".2f", lambda runs: max(run.wall_s for run in runs)
    yield "CPU s", ".2f", middle(lambda run: run.cpu_s)
    yield "RSS MB", ".0f", middle(lambda run: run.rss_mb)
    yield "passed", ".0f", middle(lambda run: run.passed)
    yield "requests", ".0f", middle(lambda run: run.counts["requests"])
    yield "at once", ".0f", middle(lambda run: run.counts["most_at_once"])
    yield "429s", ".1%", middle(Measured.refused)
    yield "answers/s", ".1f", middle(Measured.answers_a_second)
    yield "+ wall ms", ".2f", more(lambda run: run.wall_s)
    yield "+ CPU ms", ".2f", more(lambda run: run.cpu_s)


def middle(number: Callable[[Measured], float]) -> Callable[[list[Measured]], float]:
    """The median over runs."""
    return lambda runs: statistics.median(map(number, runs))


def table(runs: dict[str, list[Measured]], load: Load) -> Iterator[str]:
    shown = list(columns(runs["SDK"], load))
    yield " ".join([" " * 9, *(f"{heading:>9}" for heading, _, _ in shown)])
    for name, measured in runs.items():
        yield " ".join([f"{name:9}", *(f"{number(measured):>9{how}}" for _, how, number in shown)])


def ideal_s(load: Load) -> float:
    """No run can be faster: each worker waits for its answers, and the limit lets a second's worth pass at once."""
    waiting = load.count * load.delay_ms / 1000 / load.workers
    return waiting if load.rate is None else max(waiting, (load.count - load.rate) / load.rate)


def arguments() -> tuple[argparse.Namespace, Load]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", help="delay-N or rate-N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--promptfoo", metavar="CMD", help="how to start promptfoo")
    parser.add_argument("--inspect", metavar="CMD", help="how to start Inspect")
    args = parser.parse_args()
    match = re.fullmatch(r"(delay|rate)-([1-9]\d*)", args.work)
    if not match:
        parser.error(f"no work '{args.work}'")
    number = int(match[2])
    limited = match[1] == "rate"
    return args, Load(args.calls, args.workers, DELAY_MS if limited else number, number if limited else None)


def run_round(rivals: dict[str, Contender], home: Path, load: Load) -> Iterator[tuple[str, Measured]]:
    for name, contender in rivals.items():
        measured = measure(contender, home, load)
        print(f"{name}: {measured.wall_s:.2f} s, {measured.passed} passed", file=sys.stderr)
        if load.rate is None and measured.passed != load.count:
            sys.exit(f"{name}: {measured.passed} of {load.count} cases passed\n{(home / 'log').read_text()[-2000:]}")
        yield name, measured


def main() -> None:
    args, load = arguments()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        write_suites(home, load.count)
        rivals = contenders(args, load)
        runs: dict[str, list[Measured]] = {name: [] for name in rivals}
        for _ in range(args.rounds):
            for name, measured in run_round(rivals, home, load):
                runs[name].append(measured)
    print(f"{args.work}: {args.rounds} rounds, {load.count} calls, {load.workers} workers, ideal {ideal_s(load):.1f} s")
    print(*table(runs, load), sep="\n")


if __name__ == "__main__":
    main()
