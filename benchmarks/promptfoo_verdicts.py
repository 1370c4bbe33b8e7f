"""Verdicts of promptfoo and of agentv on the same configurations, side by side.

    python benchmarks/promptfoo_verdicts.py PROMPTFOO [-k NAME]

PROMPTFOO is the command that starts promptfoo, such as `node PATH/promptfoo` (Node 22 or newer). Every configuration in
`CONFIGURATIONS` asks the provider `echo`, is converted with `agentv convert`, and runs in both programs. No model is
called, and nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml
from promptfoo_configurations import CONFIGURATIONS, FILES

QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true",
}


def main() -> int:
    """Print a line for each test, and how many verdicts are equal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("promptfoo", help="command that starts promptfoo")
    parser.add_argument("-k", dest="only", default="", help="only configurations whose name contains this")
    given = parser.parse_args()
    equal = total = 0
    for name, text in CONFIGURATIONS.items():
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as directory:
            for line, same in _compared(name, text, Path(directory), shlex.split(given.promptfoo)):
                total, equal = total + 1, equal + same
                print(line)
    print(f"{equal} of {total} verdicts are equal")
    return 0 if equal == total else 1


def _compared(name: str, text: str, directory: Path, promptfoo: list[str]) -> Iterator[tuple[str, bool]]:
    for file, content in FILES.items():
        (directory / file).write_text(content)
    (directory / "promptfooconfig.yaml").write_text(text)
    theirs = _theirs(directory, promptfoo)
    ours, said = _ours(directory)
    tests = yaml.safe_load(text).get("tests") or [{}]
    if len(theirs) != len(ours):
        yield f"DIFFERENT {name}: {len(theirs)} results, {len(ours)} here: {said}", False
        return
    for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        test = tests[place] if len(tests) == len(theirs) else {}
        shown = test.get("description") or json.dumps(test.get("assert") or test)[:90]
        yield f"{'equal    ' if one == other else 'DIFFERENT'} {name}: {one}, {other}: {shown}", one == other


def _theirs(directory: Path, promptfoo: list[str]) -> list[str]:
    out = directory / "theirs.json"
    command = [*promptfoo, "eval", "-c", "promptfooconfig.yaml", "--no-cache", "--no-table", "-o", out.name]
    env = {**os.environ, **QUIET, "PROMPTFOO_CONFIG_DIR": str(directory / "home")}
    ended = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, check=False)
    if not out.exists():
        print(ended.stdout[-500:], ended.stderr[-500:], file=sys.stderr)
        return []
    rows = json.loads(out.read_text())["results"]["results"]
    rows.sort(key=lambda row: (row["testIdx"], row["promptIdx"]))
    return ["passed" if row["success"] else "errored" if row.get("failureReason") == 2 else "failed" for row in rows]


def _ours(directory: Path) -> tuple[list[str], str]:
    agentv = [sys.executable, "-m", "agentv"]
    convert = [*agentv, "convert", "promptfooconfig.yaml", "-o", "ours.eval.yaml"]
    converted = subprocess.run(convert, cwd=directory, capture_output=True, text=True, check=False)
    if converted.returncode:
        return [], f"convert exits with {converted.returncode}: {converted.stderr.strip()[:300]}"
    run = [*agentv, "eval", "ours.eval.yaml", "-o", "ours", "-q"]
    ended = subprocess.run(run, cwd=directory, capture_output=True, text=True, check=False)
    index = directory / "ours" / "index.jsonl"
    if not index.exists():
        return [], ended.stderr.strip()[:300]
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    cases = yaml.safe_load((directory / "ours.eval.yaml").read_text())["tests"]
    order = {case["id"]: place for place, case in enumerate(cases) if isinstance(case, dict)}
    rows.sort(key=lambda row: (order.get(row["test_id"].partition("[")[0], 0), row["test_id"]))
    return ["passed" if row["status"] == "shown" else row["status"] for row in rows], ended.stderr


if __name__ == "__main__":
    sys.exit(main())
