#!/usr/bin/env python3
"""Time of `agentv mutate`, and what checks notice by operator.

    benchmarks/mutate.py                            1,000 answers with deterministic checks
    benchmarks/mutate.py --cases 10000
    benchmarks/mutate.py --suites examples tests/cases/valid

Without `--suites`, a suite is generated whose target, `mock`, answers in a few sentences or in JSON; the time is that
of the command without the start of Python. With `--suites`, each eval file below these directories runs in a copy, if
its targets and judges are `mock`, `echo` or `replay`, so that nothing is called. The others, and files of which no case
passes, are counted and left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections import Counter
from contextlib import chdir
from pathlib import Path

from agentv.app.mutate.mutating import MutationSettings, mutate
from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.errors import AgentvError
from agentv.model.run.mutation import MutationReport

ANSWER = (
    "Order {n} was sent from Berlin on 5 March 2024 and weighs 3 kg. Refunds are possible within 30 days. "
    "After that you can't return it. Please contact Ann Smith if the parcel does not arrive within 7 days."
)
OURS = {"order": 7, "items": [{"sku": "A-1", "quantity": 2}], "paid": True, "note": "Refunds within 30 days"}
OFFLINE = ("mock", "echo", "replay")
"""Providers that call nothing."""


def main() -> None:
    """Print the time, or the table by operator."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--suites", nargs="*", type=Path, default=[])
    given = options.parse_args()
    if given.suites:
        of_suites([path.resolve() for path in given.suites])
    else:
        generated(given.cases)


def generated(cases: int) -> None:
    """The time for so many answers."""
    with tempfile.TemporaryDirectory() as place, chdir(place):
        Path(".git").mkdir()
        answers = {
            f"case-{number}": json.dumps(OURS) if number % 4 == 0 else ANSWER.replace("{n}", str(number))
            for number in range(cases)
        }
        suite = {
            "name": "generated",
            "target": {"name": "mock", "provider": "mock", "responses": answers},
            "assert": [{"contains": "30 days"}, {"icontains": "refund"}, {"not-contains": "password"}],
            "tests": "cases.jsonl",
        }
        Path("generated.eval.yaml").write_text(json.dumps(suite))
        with Path("cases.jsonl").open("w") as file:
            for number in range(cases):
                row = {"id": f"case-{number}", "input": "Where is it?"}
                file.write(json.dumps(row | {"criteria": "Says that refunds end after 30 days"}) + "\n")
        evaluate(prepare(EvalSettings(("generated.eval.yaml",))), lambda _: None)
        for proposals in (20, None):
            began, cpu = time.perf_counter(), time.process_time()
            found = mutate("last", MutationSettings(proposals=proposals))
            took = f"{time.perf_counter() - began:.2f} s ({time.process_time() - cpu:.2f} s of CPU)"
            what = f"{found.answers:,} answers × {found.total / found.answers:.1f} mutants"
            lines = "20 proposals" if proposals else f"{len(found.survivors):,} survivors, a proposal for each"
            print(f"{what}: {took} with {lines}; score {found.score}")


def of_suites(directories: list[Path]) -> None:
    """What becomes of the mutants of each suite that passes with its expected output."""
    total, lines, files = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    for directory in directories:
        for path in sorted(directory.rglob("*.eval.yaml")):
            found = mutated_copy(directory, path)
            files["mutated" if found is not None else "left out"] += 1
            for name, count in found.operators.items() if found is not None else ():
                total[name, "killed"] += count.killed
                total[name, "survived"] += count.survived
                total[name, "not counted"] += count.total - count.killed - count.survived
            for one in found.survivors if found is not None else ():
                lines["with a line" if one.line else "without"] += one.counts
    print(f"files: {dict(files)}; survivors that count: {dict(lines)}")
    print(f"{'operator':16}  killed  survived  not counted")
    for name in dict.fromkeys(name for name, _ in total):
        killed, survived, other = (total[name, what] for what in ("killed", "survived", "not counted"))
        print(f"{name:16}  {killed:6}  {survived:8}  {other:11}")


def mutated_copy(directory: Path, path: Path) -> MutationReport | None:
    """What becomes of one file in a copy of its directory; None: nothing passes there."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "copy")
        shutil.copytree(directory, root, symlinks=True, ignore=shutil.ignore_patterns(".agentv/results"))
        (root / ".git").mkdir(exist_ok=True)
        file = root / path.relative_to(directory)
        with chdir(file.parent):
            try:
                prepared = prepare(EvalSettings((str(file),)))
                specs = (one for suite in prepared.suites for one in (*suite.targets, *suite.judges.values()))
                if any(one.provider not in OFFLINE for one in specs):
                    return None
                evaluate(prepared, lambda _: None)
                return mutate("last", MutationSettings())
            except AgentvError:
                return None


if __name__ == "__main__":
    main()
