#!/usr/bin/env python3
"""Time agentv as users run it: whole processes, start to exit, results on disk.

    benchmarks/measure.py version
    benchmarks/measure.py cases-10000 --rounds 5
    benchmarks/measure.py wait-1000
    benchmarks/measure.py validate-1000
    benchmarks/measure.py checkjsonl-1000000 --rounds 1

Works: version; cases-N and jsonl-N (N cases × 5 deterministic assertions on `echo`); lines-N (as jsonl-N without
pytest, which takes too long for a million); wait-N (a Python function that takes 100 ms, 50 workers); validate-N and
checkjsonl-N (nothing runs); wrong-N (validate a YAML file whose first case has a mistake: until the first line).
In cases and jsonl, plain pytest runs the same assertions, written by hand, once per round each, so that drift affects
both equally. Prints medians, and agentv's time over pytest's. A run counts only if all cases passed in its results.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(sysconfig.get_path("scripts"))
WORKERS = "50"
WAIT_S = 0.1

PYTEST_SUITE = """
import json, re, pathlib, pytest

rows = [json.loads(line) for line in pathlib.Path(__file__).with_name("rows.jsonl").open()]

@pytest.mark.parametrize("row", rows, ids=lambda row: row["id"])
def test_case(row):
    output = row["input"]
    assert row["contains"] in output
    assert row["absent"] not in output
    assert re.search(row["regex"], output)
    assert output.startswith(row["start"])
    json.loads(output)
"""
WRONG = """
name: wrong
target: echo
tests:
  - id: wrong
    input: a
    assert: [{contians: a}]
"""
WAITING_TARGET = f"""
import asyncio

async def answer(prompt):
    await asyncio.sleep({WAIT_S})
    return prompt
"""


@dataclass(frozen=True)
class Measured:
    wall_s: float
    rss_mb: float


def rows(count: int) -> Iterator[dict[str, str]]:
    for number in range(count):
        body = f"The quick brown fox number {number} jumps over the lazy dog."
        yield {
            "id": f"case-{number:06d}",
            "input": json.dumps({"id": number, "topic": f"topic-{number % 97}", "body": body}),
            "contains": f"fox number {number} ",
            "absent": f"forbidden-{number}",
            "regex": r'"id": \d+',
            "start": f'{{"id": {number},',
        }


def assertions(row: dict[str, str]) -> Iterator[dict[str, str]]:
    yield {"type": "contains", "value": row["contains"]}
    yield {"type": "not-contains", "value": row["absent"]}
    yield {"type": "regex", "value": row["regex"]}
    yield {"type": "starts-with", "value": row["start"]}
    yield {"type": "is-json"}


def case_of(row: dict[str, str]) -> dict[str, object]:
    return {"id": row["id"], "input": row["input"], "assert": list(assertions(row))}


def write_suites(home: Path, count: int, kind: str) -> None:
    (home / ".git").mkdir()  # the root of a repository of its own: no settings of this one reach it
    (home / "test_suite.py").write_text(PYTEST_SUITE)
    (home / "waiting.py").write_text(WAITING_TARGET)
    (home / "cases.yaml").write_text("name: bench\ntarget: echo\n")
    (home / "wrong.eval.yaml").write_text(WRONG)
    if kind == "lines":
        with (home / "cases.jsonl").open("w") as lines:
            lines.writelines(f"{json.dumps(case_of(row))}\n" for row in rows(count))
        return
    with (
        (home / "rows.jsonl").open("w") as plain,
        (home / "cases.jsonl").open("w") as lines,
        (home / "bench.eval.yaml").open("w") as yaml,
    ):
        yaml.write("name: bench\ntarget: echo\ntests:\n")
        for row in rows(count):
            plain.write(json.dumps(row) + "\n")
            lines.write(json.dumps(case_of(row)) + "\n")
            yaml.write(f"  - id: {row['id']}\n    input: {json.dumps(row['input'])}\n    assert:\n")
            yaml.writelines(f"      - {json.dumps(one)}\n" for one in assertions(row))
    with (home / "wrong.eval.yaml").open("a") as wrong, (home / "bench.eval.yaml").open() as right:
        wrong.writelines(line for number, line in enumerate(right) if number > 2)  # without its head


def command_of(kind: str, home: Path) -> list[str]:
    agentv, out = str(SCRIPTS / "agentv"), str(home / "out")
    run = ["--workers", WORKERS, "--out", out, "-q"]
    return {
        "version": [agentv, "--version"],
        "validate": [agentv, "validate", str(home / "bench.eval.yaml")],
        "checkjsonl": [agentv, "validate", str(home / "cases.jsonl")],
        "wrong": [agentv, "validate", str(home / "wrong.eval.yaml")],
        "cases": [agentv, "eval", str(home / "bench.eval.yaml"), *run],
        "lines": [agentv, "eval", str(home / "cases.jsonl"), *run],
        "jsonl": [agentv, "eval", str(home / "cases.jsonl"), *run],
        "wait": [agentv, "eval", str(home / "bench.eval.yaml"), *run, "--target", "python:waiting.py:answer"],
    }[kind]


def measure(command: list[str], home: Path, *, wrong: bool = False) -> Measured:
    shutil.rmtree(home / "out", ignore_errors=True)
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE if wrong else subprocess.DEVNULL
    )
    if process.stderr is not None:
        process.stderr.readline()
    wall = time.perf_counter() - started
    _, status, usage = os.wait4(process.pid, 0)
    wall = wall if wrong else time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (2 if wrong else 0):
        sys.exit(f"exit status {process.returncode}: {' '.join(command)}")
    return Measured(wall, usage.ru_maxrss / 1024)


def check(home: Path, count: int) -> None:
    index = home / "out" / "index.jsonl"
    with index.open() as lines:
        passed = sum(json.loads(line)["status"] == "passed" for line in lines)
    if passed != count:
        sys.exit(f"{passed} of {count} cases passed")


def table(runs: dict[str, list[Measured]]) -> Iterator[str]:
    yield f"{'':8} {'median s':>9} {'min':>7} {'max':>7} {'RSS MB':>7}"
    for name, measured in runs.items():
        walls = [one.wall_s for one in measured]
        rss = statistics.median(one.rss_mb for one in measured)
        yield f"{name:8} {statistics.median(walls):9.3f} {min(walls):7.3f} {max(walls):7.3f} {rss:7.0f}"
    if len(runs) > 1:
        ours, other = (statistics.median(one.wall_s for one in measured) for measured in runs.values())
        yield f"pytest takes {other / ours:.1f} times as long"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", help="version, or KIND-N with a kind out of the list above")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    match = re.fullmatch(r"(version|cases|jsonl|lines|wait|validate|checkjsonl|wrong)(?:-(\d+))?", args.work)
    if not match:
        parser.error(f"no work '{args.work}'")
    kind, count = match[1], int(match[2] or 1000)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        write_suites(home, count, kind)
        commands = {"agentv": command_of(kind, home)}
        if kind in ("cases", "jsonl"):
            alone = ["env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"]  # without what the environment happens to have
            pytest = [str(SCRIPTS / "pytest"), "-q", "-p", "no:cacheprovider"]
            commands["pytest"] = [*alone, *pytest, str(home / "test_suite.py")]
        runs: dict[str, list[Measured]] = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                runs[name].append(measure(command, home, wrong=kind == "wrong"))
                if name == "agentv" and kind in ("cases", "jsonl", "lines", "wait"):
                    check(home, count)
    print(f"{args.work}: {args.rounds} rounds")
    print(*table(runs), sep="\n")
    if kind == "wait":
        print(f"ideal {count * WAIT_S / int(WORKERS):.1f} s")


if __name__ == "__main__":
    main()
