"""Real runs, killed at random moments and resumed: the rows and totals of an undisturbed run, and nothing paid twice."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from doubles.thorough import examples
from e2e.command import AGENTV

DRIVER = Path(__file__).parent.parent / "doubles" / "killed_runs.py"
WORKERS = 4
KILLS = {"SIGKILL": examples(100, 10), "SIGTERM": examples(20, 3)}
"""Of one test; for SIGKILL there are two, so that processes of tests share them."""

AGENT = """
import asyncio, json, os

def note(line):
    with open(os.environ["OUT"] + ".calls", "a") as file:
        file.write(line + "\\n")

async def answer(prompt, case_id):
    await asyncio.sleep(0.004)
    note("target " + case_id)
    return "It is " + prompt

async def judge(prompt, case_id):
    await asyncio.sleep(0.002)
    note("judge " + case_id)
    return json.dumps({"checks": [{"id": "r1", "satisfied": True}], "overall_reasoning": "so it is"})
"""
CASES = "".join(
    f"  - {{id: c{number}, input: 'no. {number}', assert: [contains: '{'7' if number % 3 else 'It'}', is right]}}\n"
    for number in range(24)
)
SUITE = f"target: python:agent.py:answer\njudge: python:agent.py:judge\ntests:\n{CASES}"
SAME = (
    "test_id",
    "sample",
    "status",
    "score",
    "output",
    "input",
    "key",
    "case_sha256",
    "metadata",
    "error",
    "attempts",
)


def row_of(line: str) -> dict:
    row = json.loads(line)
    scores = [(one["name"], one["score"], one["pass"], one["assertions"], one["reason"]) for one in row["scores"]]
    return {**{key: row[key] for key in SAME}, "scores": scores}


def rows(directory: Path) -> list[dict]:
    """What the run found, in the order of cases, without what differs from one undisturbed run to the next."""
    found = [row_of(line) for line in (directory / "index.jsonl").read_text().splitlines()]
    return sorted(found, key=lambda row: row["test_id"])


def totals(directory: Path) -> dict:
    summary = json.loads((directory / "summary.json").read_text())
    return {key: summary[key] for key in ("cases", "trials", "pass_rate", "mean_score", "by_target")}


def calls(project, run: str) -> Counter[str]:
    return Counter((project.path / f"{run}.calls").read_text().splitlines())


def answers(directory: Path) -> list[str]:
    """The keys of the answers in a journal."""
    lines = (json.loads(line) for line in (directory / "journal.jsonl").read_text().splitlines())
    return [line["key"] for line in lines if "key" in line]


@pytest.mark.parametrize(("number", "seed"), [*(("SIGKILL", seed) for seed in range(2)), ("SIGTERM", 11)])
def test_a_run_that_is_killed_over_and_over_ends_as_an_undisturbed_one(project, number, seed):
    kills = KILLS[number]
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    whole = project.run("eval", "a.eval.yaml", "--workers", str(WORKERS), "--out", "whole", env={"OUT": "whole"})
    assert whole.status == 1, whole.stderr
    done = project.other(sys.executable, str(DRIVER), str(kills), str(seed), number)
    runs = json.loads(done.stdout)
    assert sum(run["kills"] for run in runs) == kills
    assert max(run["kills"] for run in runs) > 1
    for run in runs:
        directory = project.path / run["out"]
        assert run["status"] == 1, (project.path / "stderr.txt").read_text()[-2000:]
        assert rows(directory) == rows(project.path / "whole")
        assert totals(directory) == totals(project.path / "whole")
        kept = answers(directory)
        assert len(kept) == len(set(kept)), "an answer that was kept was asked for again"
        repeated = calls(project, run["out"]) - calls(project, "whole")
        assert repeated.total() <= WORKERS * run["kills"]
        assert set(calls(project, run["out"])) == set(calls(project, "whole"))


def test_a_run_on_a_full_disk_says_so_and_goes_on_from_there(project):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    words = ["eval", "a.eval.yaml", "--workers", str(WORKERS), "--out", "out"]
    limited = f"ulimit -f 20; exec {AGENTV} {' '.join(words)}"  # blocks of a kilobyte that a file may have
    full = project.other("bash", "-c", limited, env={"OUT": "out"})
    assert full.returncode == 3, full.stderr
    assert "the file exceeds the maximum size" in full.stderr
    assert "Traceback" not in full.stderr
    resumed = project.run(*words, "--resume", env={"OUT": "out"})
    assert resumed.status == 1, resumed.stderr
    project.run("eval", "a.eval.yaml", "--out", "whole", env={"OUT": "whole"})
    assert rows(project.path / "out") == rows(project.path / "whole")
    kept = answers(project.path / "out")
    assert len(kept) == len(set(kept))
