#!/usr/bin/env python3
"""Time of `agentv mutate`, and what checks notice by operator.

    benchmarks/mutate.py                            1,000 answers with deterministic checks
    benchmarks/mutate.py --cases 10000
    benchmarks/mutate.py --suites examples --programs
    benchmarks/mutate.py --suites tests/cases/valid --most 50

Without `--suites`, a suite is generated whose target, `mock`, answers in a few sentences or in JSON; the time is that
of the command without the start of Python. With `--suites`, each eval file below these directories runs in a copy, if
its targets and judges are `mock`, `echo` or `replay`, so that nothing is called. The others, and files of which no case
passes, are counted and left out. With `--most`, files are drawn at random, always the same ones.

A proposed line was tried: the original passes with it, and the mutant fails. Whether it also accepts other wordings of
the original is measured with rewrites that keep the meaning: a sentence before it, one after it, other layout,
synonyms, and all of them together. No model is asked, so a line that passes them may still be too narrow.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.registries import registries
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.authoring.loading.load import load_entry
from agentv.engine.grading import judged
from agentv.errors import AgentvError
from agentv.extensions.mutate.mutating import MutationSettings, mutate
from agentv.extensions.mutate.reporting import MutationReport, Survivor
from agentv.model.run.context import AssertionContext

ANSWER = (
    "Order {n} was sent from Berlin on 5 March 2024 and weighs 3 kg. Refunds are possible within 30 days. "
    "After that you can't return it. Please contact Ann Smith if the parcel does not arrive within 7 days."
)
OURS = {"order": 7, "items": [{"sku": "A-1", "quantity": 2}], "paid": True, "note": "Refunds within 30 days"}
OFFLINE = ("mock", "echo", "replay")
"""Providers that call nothing."""

PROGRAMS = ("acp", "cli")
"""Providers that start programs, as agents of the examples are."""

SYNONYMS = dict(
    one.split(" = ")
    for one in (
        *("possible = allowed", "please = kindly", "contact = write to", "can't = cannot", "don't = do not"),
        *("after that = afterwards", "order = purchase", "parcel = package", "hello = hi", "sent = shipped"),
    )
)
THRESHOLDS = (100_000, 50, 100)
"""Those of the command for the collector of garbage."""


def main() -> None:
    """Print the time, or the table by operator."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--suites", nargs="*", type=Path, default=[])
    options.add_argument("--most", type=int, default=None, help="mutate so many of the files, at most")
    options.add_argument("--programs", action="store_true", help="mutate suites whose targets are local programs too")
    given = options.parse_args()
    gc.set_threshold(*THRESHOLDS)
    if given.suites:
        providers = (*OFFLINE, *PROGRAMS) if given.programs else OFFLINE
        of_suites([path.resolve() for path in given.suites], given.most, providers)
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
        evaluate(prepare(EvalSettings(paths=("generated.eval.yaml",))), lambda _: None)
        for proposals in (20, None):
            began, cpu = time.perf_counter(), time.process_time()
            found = mutate("last", MutationSettings(proposals=proposals))
            took = f"{time.perf_counter() - began:.2f} s ({time.process_time() - cpu:.2f} s of CPU)"
            what = f"{found.answers:,} answers × {found.counts.total / found.answers:.1f} mutants"
            lines = "20 proposals" if proposals else f"{len(found.survivors):,} survivors, a proposal for each"
            print(f"{what}: {took} with {lines}; score {found.score}; load {os.getloadavg()[0]:.1f}")


@dataclass
class Totals:
    """What became of all files."""

    files: Counter[str] = field(default_factory=Counter)
    mutants: Counter[tuple[str, str]] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    narrow: list[str] = field(default_factory=list)

    def add(self, found: MutationReport, outputs: dict[str, str]) -> None:
        """Add a file."""
        for name, count in found.operators.items():
            self.mutants[name, "killed"] += count.killed
            self.mutants[name, "survived"] += count.survived
            self.mutants[name, "errored"] += count.errored + count.others_errored + count.not_graded
            rest = count.total - count.killed - count.survived - count.errored - count.others_errored
            self.mutants[name, "not counted"] += rest - count.not_graded
        for one in found.survivors:
            if one.counts:
                self.lines["survivors that count"] += 1
                self._judge_line(one, outputs.get(one.case))

    def _judge_line(self, one: Survivor, output: str | None) -> None:
        if one.line is None:
            return
        self.lines["with a proposed line"] += 1
        accepted = None if output is None else [accepts(one.line, text) for text in rewrites(output)]
        if not accepted or None in accepted:
            self.lines["lines that no rewrite can try"] += 1
            return
        self.lines["lines that rewrites tried"] += 1
        self.lines["lines that accept all rewrites but synonyms"] += all(accepted[:3])
        self.lines["lines that accept all rewrites"] += all(accepted)
        if not all(accepted):
            self.narrow.append(f"{one.case}: {one.change} → {one.line}")


def of_suites(directories: list[Path], most: int | None, providers: tuple[str, ...]) -> None:
    """What becomes of the mutants of each suite that passes with its expected output."""
    totals = Totals()
    paths = [(directory, path) for directory in directories for path in sorted(directory.rglob("*.eval.yaml"))]
    if most is not None:
        Random(0).shuffle(paths)
    for directory, path in paths:
        if totals.files["mutated"] == most:
            break
        found = mutated_copy(directory, path, providers)
        totals.files["left out" if found is None else "mutated"] += 1
        if found is not None:
            totals.add(*found)
    print(f"files: {dict(totals.files)}")
    kinds = ("killed", "survived", "errored", "not counted")
    print(f"{'operator':16}" + "".join(f"  {kind:>11}" for kind in kinds))
    for name in dict.fromkeys(name for name, _ in totals.mutants):
        print(f"{name:16}" + "".join(f"  {totals.mutants[name, kind]:11}" for kind in kinds))
    sums = [sum(number for (_, of), number in totals.mutants.items() if of == kind) for kind in kinds]
    print(f"{'all':16}" + "".join(f"  {one:11}" for one in sums))
    for what, number in totals.lines.items():
        print(f"{what}: {number}")
    for line in totals.narrow[:20]:
        print(f"  narrow: {line}")


def mutated_copy(
    directory: Path, path: Path, providers: tuple[str, ...]
) -> tuple[MutationReport, dict[str, str]] | None:
    """What becomes of one file in a copy of its folder, and the answers by case; None: nothing passes there."""
    within = path.relative_to(directory)
    top = directory / within.parts[0] if len(within.parts) > 1 else directory
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "copy")
        shutil.copytree(top, root, symlinks=True, ignore=shutil.ignore_patterns(".agentv/results"))
        (root / ".git").mkdir(exist_ok=True)
        file = root / path.relative_to(top)
        with chdir(file.parent):
            try:
                prepared = prepare(EvalSettings(paths=(str(file),)))
                specs = (one for suite in prepared.suites for one in (*suite.targets, *suite.judges.values()))
                if any(one.provider not in providers for one in specs):
                    return None
                evaluate(prepared, lambda _: None)
                found = mutate("last", MutationSettings())
            except AgentvError:
                return None
        rows = (json.loads(line) for one in root.glob(".agentv/results/*/index.jsonl") for line in one.open())
        return found, {row["test_id"]: row["output"] for row in rows if row["output"]}


def rewrites(output: str) -> list[str]:
    """Other wordings of an answer with the same meaning: lead-in, ending, layout, synonyms, all together."""
    try:
        value = json.loads(output)
    except ValueError:
        layout = re.sub(r"(?<=[.!?]) ", "\n\n", output)
        other = output
        for word, synonym in SYNONYMS.items():
            other = re.sub(rf"\b{word}\b", synonym, other, flags=re.IGNORECASE)
        both = re.sub(r"(?<=[.!?]) ", "\n\n", other)
        return [
            f"Thank you for asking. {output}",
            f"{output} Have a nice day.",
            layout,
            other,
            f"Thank you for asking. {both}",
        ]
    ordered = dict(reversed(value.items())) if isinstance(value, dict) else value
    return [json.dumps(value, indent=4), json.dumps(value, separators=(",", ":")), json.dumps(ordered)]


def accepts(line: str, output: str) -> bool | None:
    """Whether a proposed line passes an answer; None: it does not look at the answer alone."""
    (item,) = yaml.safe_load(line)
    entry, _ = load_entry(item, ".", registries(), {})
    if entry is None or entry.type.startswith(("trajectory", "tool", "file", "diff", "command")):
        return None
    grade: Any = judged(entry, entry.assertion.grade(AssertionContext(input=(), output=output)), 0.8)
    return bool(grade.passed)


if __name__ == "__main__":
    main()
