#!/usr/bin/env python3
"""Time exams and libraries of prompts: whole processes, start to exit.

    benchmarks/prompts.py exam-50
    benchmarks/prompts.py library-1000 --rounds 7

Works: exam-N, an exam of N cases with plain assertions, run by `agentv prompt eval --workers 10` against a provider on
this machine (`python -m agentv.testing`, its own process) whose answers take 100 ms; it is compared with the ideal,
the time that ten workers wait, and with `--version`, the time of starting a program. library-N, a
library of N prompts that have all passed their exams and are ready, of which one in ten was edited since: `agentv
prompt list`, `show`, and on the library before those edits `doctor` and `check`.

Prints the median, minimum and maximum in seconds, and the largest process's memory. A run counts only if its output is
correct: every case passed, every prompt listed, no findings.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
DELAY_MS = 100
WORKERS = 10
EDITED = 10
"""One prompt in so many was edited since its exam."""

PROMPT = """\
<system>
You are an editor. You shorten texts and change nothing of what they say.
</system>
<user>
Shorten this text to at most {{ words }} words: {{ text }}
</user>
"""
META = "description: Shortens texts, in manner number %d.\nstatus: draft\nowner: bench\n"
EXAM = """\
cases:
  - name: happy-path
    inputs_from: examples/happy-path
    assert:
      - contains: shop
      - max_tokens: 80
  - name: inline
    inputs: {words: 5, text: the shop is closed}
    assert:
      - contains: closed
"""
INPUTS = "words: 20\ntext: the shop moves to another street\n"


@dataclass(frozen=True)
class Measured:
    wall_s: float
    rss_mb: float


@dataclass(frozen=True)
class Work:
    """A command, where it runs, what it must print, and its exit status."""

    words: list[str]
    home: Path
    prints: Callable[[str], bool] = lambda _: True
    status: int = 0


def measure(work: Work, env: dict[str, str]) -> Measured:
    with tempfile.TemporaryFile("w+") as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            [AGENTV, *work.words], cwd=work.home, env={**os.environ, **env}, stdout=said, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode != work.status or not work.prints(text):
        sys.exit(f"agentv {' '.join(work.words)}: exit status {process.returncode}\n{text[-2000:]}")
    return Measured(wall, usage.ru_maxrss / 1024)


def write_prompt(directory: Path, number: int) -> None:
    (directory / "examples" / "happy-path").mkdir(parents=True)
    (directory / "prompt.xml").write_text(PROMPT)
    (directory / "meta.yaml").write_text(META % number)
    (directory / "eval.yml").write_text(EXAM)
    (directory / "examples" / "happy-path" / "inputs.yml").write_text(INPUTS)


def write_library(home: Path, count: int) -> None:
    """Create prompts that have passed their exams and are ready, with `echo` as the model."""
    (home / ".git").mkdir(parents=True)  # a repository of its own: no settings of this one reach it
    (home / ".agentv").mkdir()
    (home / ".agentv" / "targets.yaml").write_text(
        "targets: [{name: pupil, provider: echo}]\ndefaults: {target: pupil}\n"
    )
    names = [f"prompt-{number:04d}" for number in range(count)]
    for number, name in enumerate(names):
        write_prompt(home / "prompts" / name, number)
    subprocess.run([AGENTV, "prompt", "eval", "--all", "-q"], cwd=home, check=True, capture_output=True)
    subprocess.run([AGENTV, "prompt", "promote", "--to", "ready", *names], cwd=home, check=True, capture_output=True)
    shutil.rmtree(home / ".agentv" / "results")


def edit_some(home: Path) -> int:
    edited = sorted((home / "prompts").iterdir())[::EDITED]
    for directory in edited:
        with (directory / "prompt.xml").open("a") as file:
            file.write("\n")
    return len(edited)


def write_exam(home: Path, count: int) -> None:
    (home / ".git").mkdir(parents=True)
    write_prompt(home / "prompts" / "shorten", 0)
    cases = (
        f"  - name: case-{number}\n    inputs: {{words: {number + 5}, text: the shop moves}}\n"
        "    assert:\n      - contains: quick brown fox\n      - max_tokens: 80\n"
        f"      - not-contains: forbidden-{number}\n"
        for number in range(count)
    )
    exam = f"defaults: {{model: 'openai:fake-model'}}\ncases:\n{''.join(cases)}"
    (home / "prompts" / "shorten" / "eval.yml").write_text(exam)


@contextmanager
def provider() -> Iterator[str]:
    """Its address for OpenAI's SDK."""
    options = ["--port", "0", "--delay-ms", str(DELAY_MS), "--text", "The quick brown fox."]
    command = [sys.executable, "-m", "agentv.testing", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            addresses = dict(process.stdout.readline().split() for _ in range(5))
            yield addresses["openai"]
        finally:
            process.terminate()


def exam_works(home: Path, count: int) -> dict[str, Work]:
    write_exam(home, count)
    words = ["prompt", "eval", "shorten", "--workers", str(WORKERS), "--no-progress"]
    return {
        "version": Work(["--version"], home),
        "exam": Work(words, home, lambda text: f"passed, {count} of {count}" in text),
    }


def library_works(home: Path, count: int) -> dict[str, Work]:
    as_it_was, edited = home / "as-it-was", home / "edited"
    write_library(as_it_was, count)
    shutil.copytree(as_it_was, edited)
    number = edit_some(edited)

    def lists(text: str) -> bool:
        rows = json.loads(text)
        return len(rows) == count and sum(row["edited"] for row in rows) == number

    nothing = f"{count} prompts: nothing is wrong"
    return {
        "version": Work(["--version"], home),
        "list": Work(["prompt", "list"], edited, lambda text: f"{count} ready ({number} edited)" in text),
        "list --json": Work(["prompt", "list", "--json"], edited, lists),
        "show": Work(["prompt", "show", "prompt-0001"], edited),
        "doctor": Work(["prompt", "doctor"], as_it_was, lambda text: nothing in text),
        "check": Work(["prompt", "check", "--require", "ready"], as_it_was, lambda text: nothing in text),
    }


def table(runs: dict[str, list[Measured]]) -> Iterator[str]:
    yield f"{'':12} {'median s':>9} {'min':>7} {'max':>7} {'RSS MB':>7}"
    for name, measured in runs.items():
        walls = [one.wall_s for one in measured]
        rss = statistics.median(one.rss_mb for one in measured)
        yield f"{name:12} {statistics.median(walls):9.3f} {min(walls):7.3f} {max(walls):7.3f} {rss:7.0f}"


def run_rounds(works: dict[str, Work], rounds: int, env: dict[str, str]) -> dict[str, list[Measured]]:
    runs: dict[str, list[Measured]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            runs[name].append(measure(work, env))
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", help="exam-N or library-N")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    match = re.fullmatch(r"(exam|library)-([1-9]\d*)", args.work)
    if not match:
        parser.error(f"no work '{args.work}'")
    count = int(match[2])
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        alone = {"HOME": directory, "AGENTV_TARGET": "", "AGENTV_JUDGE": ""}
        if match[1] == "library":
            runs = run_rounds(library_works(home, count), args.rounds, alone)
        else:
            with provider() as address:
                asked = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "unused"}
                runs = run_rounds(exam_works(home, count), args.rounds, {**alone, **asked})
    print(f"{args.work}: {args.rounds} rounds")
    print(*table(runs), sep="\n")
    if match[1] == "exam":
        print(f"ideal {-(-count // WORKERS) * DELAY_MS / 1000:.1f} s")


if __name__ == "__main__":
    main()
