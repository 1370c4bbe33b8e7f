#!/usr/bin/env python3
"""Time and size of HTML reports: writing them, and opening them in a headless Chromium.

    benchmarks/html_report.py
    benchmarks/html_report.py --cases 100 1000 --rounds 5

A case has an answer of 1,200 characters, an input of 600, five grades with evidence, and a judge's reason. `write` is
the time of `render` including the file, without creating the trials; its memory is the peak of that process.
`open` is the time from the navigation until the list, the filters and the overview are shown; `search` that of a word
that occurs in one case of a hundred; `case` that of opening one. Prints medians.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentv.extensions.view.pages.page import HtmlReport, render
from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.suite.suite import Case, Suite, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.values import Span

TEXT = """
the lamp can be returned within thirty days of its purchase when the box is unopened and a receipt is shown otherwise a
credit note over the present price is made out shipping is paid by the customer unless the item broke
"""
TYPES = ("contains", "regex", "is-json", "llm-rubric", "latency")
READY = "() => document.documentElement.dataset.ready === ''"


def text(chance: random.Random, length: int) -> str:
    words: list[str] = []
    known = TEXT.split()
    while length > 0:
        words.append(chance.choice(known))
        length -= len(words[-1]) + 1
    return " ".join(words)


def results(number: int) -> Iterator[TrialResult]:
    """Finished trials, one at a time; one of a hundred contains `needle`."""
    chance = random.Random(number)
    suites = [Suite(f"suite-{one}", (), path=f"/repo/evals/suite-{one}.eval.yaml") for one in range(8)]
    target = TargetSpec("gpt", "echo", None)
    for one in range(number):
        yield result(one, suites[one % 8], target, chance)


def result(one: int, suite: Suite, target: Any, chance: random.Random) -> TrialResult:
    passed = chance.random() < 0.85
    tags = ("fast", f"topic-{one % 6}")
    case = Case(f"case-{one:05d}", (Message("user", text(chance, 600)),), (), tags=tags, sha256="c" * 64)
    answer = text(chance, 1200) + (" needle" if one % 100 == 7 else "")
    return TrialResult(
        trial=Trial(suite, case, target, 0.8, 300.0, key=f"{one:064x}"),
        status="passed" if passed else "failed",
        score=1.0 if passed else 0.6,
        output=answer,
        input=case.input,
        scores=tuple(grade(kind, suite.path, passed or kind != "llm-rubric", chance) for kind in TYPES),
        error=None,
        duration_ms=900 + chance.random() * 400,
        timestamp="2026-11-22T10:00:00.000Z",
        cost_usd=0.0012,
    )


def grade(kind: str, path: str, passed: bool, chance: random.Random) -> Score:
    entry = AssertionEntry(kind, None, AssertionSettings(name=f"{kind}: what it looks for"), Span(path, 14, 9, 14, 20))
    checks = (Check(f"the answer says what {kind} asks", passed, text(chance, 80)),)
    reason = text(chance, 200) if kind == "llm-rubric" else None
    return Score(entry, Grade(1.0 if passed else 0.0, passed, checks, reason), 0.2)


def write(number: int, path: Path) -> None:
    report = HtmlReport("20261122T100000Z-7f3a", {"started": "2026-11-22T10:00:00Z"}, None, results(number), "/repo")
    with path.open("w", encoding="utf-8") as file:
        file.writelines(render(report))


def written(number: int, path: Path) -> tuple[float, float]:
    """Seconds of rendering without creating the trials, and the peak memory of this process in megabytes."""
    began = time.perf_counter()
    write(number, path)
    took, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    for _ in results(number):
        pass
    return took - (time.perf_counter() - began), peak / 1024


def in_a_process(number: int, path: Path) -> tuple[float, float]:
    words = [sys.executable, __file__, "--write", str(number), str(path)]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return float(told[0]), float(told[1])


def opened(page: Any, path: Path) -> tuple[float, float, float]:
    """Seconds to open, to search, and to open a case."""
    began = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_function(READY, polling=5)
    page.wait_for_selector(".row")
    ready = time.perf_counter()
    page.fill(".search", "needle")
    told = "() => / of .* passed/.test(document.querySelector('.told').textContent)"
    page.wait_for_function(told, polling=5)
    searched = time.perf_counter()
    page.click(".row >> nth=0")
    page.wait_for_selector("article.case", state="attached")
    return ready - began, searched - ready, time.perf_counter() - searched


def measure(numbers: list[int], rounds: int) -> None:
    from playwright.sync_api import sync_playwright

    print(f"{'cases':>7} {'size MB':>8} {'write s':>8} {'memory MB':>10} {'open s':>7} {'search s':>9} {'case s':>7}")
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for number in numbers:
            path = Path(folder) / f"{number}.html"
            took, memory = in_a_process(number, path)
            timed = []
            for _ in range(rounds):
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                timed.append(opened(page, path))
                page.close()
            ready, searched, shown = (statistics.median(column) for column in zip(*timed, strict=True))
            size = path.stat().st_size / 1e6
            print(f"{number:7d} {size:8.2f} {took:8.2f} {memory:10.1f} {ready:7.2f} {searched:9.2f} {shown:7.2f}")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", nargs=2, metavar=("CASES", "FILE"), help="write one report and print what it took")
    chosen = parser.parse_args()
    if chosen.write:
        print(*written(int(chosen.write[0]), Path(chosen.write[1])))
    else:
        measure(chosen.cases, chosen.rounds)


if __name__ == "__main__":
    main()
