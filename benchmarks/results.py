#!/usr/bin/env python3
"""Time the commands on stored runs, on a run of any size.

    benchmarks/results.py 1000000
    benchmarks/results.py 10000 --keep RUNS

Makes a run of N rows (a tenth failed, a hundredth errored, two suites, three targets, ten tags), then starts each
command as a user would and prints its time and its peak memory. With --keep the run stays in that directory, and is
used again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Span
from agentv.store.files.encoding import to_document, to_json
from agentv.store.journal.answers import HEADER, row_checksum_line, summary_checksum_line
from agentv.store.rows.reading import read_rows
from agentv.store.rows.rows import row_of
from agentv.store.totals.summary import PlannedCounts, summarize

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
RUN_ID = "20261121T140322Z-7f3a"
SUITES = ("refunds", "orders")
TARGETS = ("gpt", "haiku", "gemini")
ANSWER = "You can return the lamp within 30 days, provided that it was not used. " * 4
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("shows one", ("show", "last", "--limit", "1")),
    ("list", ("list",)),
    ("show, first 20", ("show", "last")),
    ("show --failed", ("show", "last", "--failed")),
    ("show --errored --json", ("show", "last", "--errored", "--json", "--limit", "100")),
    ("show --case, one id", ("show", "last", "--case", "case-77")),
    ("show --case, a pattern", ("show", "last", "--case", "*-9999?")),
    ("show --suite --target --tag", ("show", "last", "--suite", "orders", "--target", "haiku", "--tag", "tag-3")),
    ("export, first 100 rows", ("export", "last", "--failed", "--limit", "100", "-o", "some.jsonl")),
)


class _Judged:
    """Stands for an assertion."""

    def label(self) -> str:
        return "'30 days'"

    def grade(self, context: object) -> Grade:
        raise NotImplementedError


def results(number: int, root: str) -> Iterator[TrialResult]:
    """So many finished trials."""
    file = f"{root}/evals/support.eval.yaml"
    entries = [AssertionEntry("contains", _Judged(), DEFAULTS, Span(file, line, 9, line, 20)) for line in (9, 10, 11)]
    good = tuple(Score(one, Grade.of(True, "the output contains '30 days'"), 0.25) for one in entries)
    bad = (*good[:2], Score(entries[2], Grade.of(False, "the output contains '30 days'", "found: no such text"), 0.25))
    asked, usage = (Message("user", "May I return the lamp that I bought?"),), TokenUsage(120, 48, 168)
    suites = [Suite(name, (), path=file) for name in SUITES]
    targets = [TargetSpec(name, "mock", None) for name in TARGETS]  # type: ignore[arg-type]  # nobody asks it
    for at in range(number):
        case = Case(
            f"case-{at}",
            asked,
            (),
            expected_output=(Message("assistant", ANSWER),),
            tags=(f"tag-{at % 10}",),
            sha256=f"{at:064x}",
        )
        trial = Trial(suites[at % 2], case, targets[at % 3], 0.8, 300.0, key=f"{at:064x}")
        result = TrialResult(
            trial, "passed", 1.0, ANSWER, asked, good, None, 812.5, "2026-11-21T14:03:22.123Z", 1, (), usage, 0.0012
        )
        if at % 100 == 0:
            result = replace(
                result, status="errored", score=None, output=None, scores=(), error=Failure("timeout", "too late")
            )
        elif at % 10 == 0:
            result = replace(result, status="failed", score=0.6667, scores=bad)
        yield result


def make(root: Path, number: int) -> Path:
    """A run's directory with so many rows."""
    run = root / ".agentv" / "results" / RUN_ID
    run.mkdir(parents=True)
    (root / ".git").mkdir(exist_ok=True)
    places = str(root)
    index, journal = run / "index.jsonl", run / "journal.jsonl"
    with index.open("wb", buffering=1 << 20) as file, journal.open("wb", buffering=1 << 20) as checksums:
        checksums.write(HEADER)
        for result in results(number, str(root)):
            line = to_json(row_of(result, places))
            file.write(line + b"\n")
            checksums.write(row_checksum_line(result.trial.key, line))
    suites = [{"name": name, "targets": [{"name": target} for target in TARGETS]} for name in SUITES]
    planned = {"cases": number, "trials": number}
    record = {"schema_version": 1, "run_id": RUN_ID, "planned": planned, "suites": suites}
    (run / "run.json").write_bytes(to_document(record))  # type: ignore[arg-type]  # plain data
    rows = read_rows(run / "index.jsonl")
    summary = summarize(rows, run_id=RUN_ID, planned=PlannedCounts(number, number), duration_ms=3_600_000.0)
    content = to_document(summary.as_json())
    with journal.open("ab") as file:
        file.write(summary_checksum_line(content, index.stat().st_size))
    (run / "summary.json").write_bytes(content)
    return run


def timed(root: Path, words: tuple[str, ...]) -> tuple[float, float, int]:
    """Seconds, megabytes at the peak, and the exit status of a command."""
    (root / "some.jsonl").unlink(missing_ok=True)
    started = time.perf_counter()
    process = subprocess.Popen([AGENTV, "results", *words], cwd=root, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - started, usage.ru_maxrss / 1024, process.returncode


def measure(root: Path, number: int) -> bool:
    """Print a table; whether every command did what it should."""
    run = root / ".agentv" / "results" / RUN_ID
    if not run.exists():
        make(root, number)
    print(f"{number:,} rows, {(run / 'index.jsonl').stat().st_size / 1e6:,.0f} MB")
    well = True
    for name, words in COMMANDS:
        seconds, megabytes, status = timed(root, words)
        well = well and status == 0
        print(f"  {name:<30}{seconds:8.2f} s {megabytes:8.0f} MB" + ("" if status == 0 else f"  exit {status}"))
    return well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int)
    parser.add_argument("--keep", type=Path, help="make the run here, or use the one that is here")
    chosen = parser.parse_args()
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
        return 0 if measure(chosen.keep.absolute(), chosen.rows) else 1
    with tempfile.TemporaryDirectory() as root:
        return 0 if measure(Path(root), chosen.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
