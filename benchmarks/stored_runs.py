#!/usr/bin/env python3
"""CPU time and peak memory of what reads whole runs, of two runs of so many rows; and of a resume of a finished one.

benchmarks/stored_runs.py 100000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import SCRIPTS, WORKERS, write_suites

AGENTV = str(SCRIPTS / "agentv")
NOISY = """
import zlib

def answer(prompt):
    return "no" if zlib.crc32(str(prompt).encode()) % 100 < 7 else prompt
"""
RUN = ("eval", "cases.jsonl", "--workers", WORKERS, "-q")
BASE, CANDIDATE = ".agentv/results/20261121T140322Z-7f3a", ".agentv/results/20261122T140322Z-7f3a"
WORKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("run, the base", (*RUN, "--target", "echo", "--out", BASE)),
    ("run, the candidate", (*RUN, "--target", "python:noisy.py:answer", "--out", CANDIDATE)),
    ("resume of the base", (*RUN, "--target", "echo", f"--resume={BASE}")),
    ("compare", ("compare", BASE, CANDIDATE)),
    ("compare --json", ("compare", BASE, CANDIDATE, "--json")),
    ("results report --html", ("results", "report", BASE, "--html", "page.html")),
    ("results report --md", ("results", "report", BASE, "--md", "short.md")),
    ("trend", ("trend",)),
    ("power --from", ("power", "--from", BASE)),
)


def measured(words: tuple[str, ...], home: Path) -> tuple[float, float, int]:
    """CPU seconds, megabytes at the peak, and the exit status of a command."""
    silent = subprocess.DEVNULL
    process = subprocess.Popen([AGENTV, *words], cwd=home, stdout=silent, stderr=silent)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        write_suites(home, rows, "lines")
        (home / "noisy.py").write_text(NOISY)
        print(f"{rows:,} rows a run{'CPU s':>29}{'MB':>7}")
        well = True
        for name, words in WORKS:
            seconds, megabytes, status = measured(words, home)
            well = well and status in (0, 1)  # 1: the candidate fails some cases, and is worse
            print(f"  {name:<38}{seconds:8.2f}{megabytes:7.0f}" + ("" if status in (0, 1) else f"  exit {status}"))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
