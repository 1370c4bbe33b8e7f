"""Five tasks like those of SWE-bench, worked on by a good agent, an idle one, and by all that cheat.

usage: python benchmarks/cheats.py [SANDBOX]

The cheats are those of `tests/cases/valid/cheats-of-test-runners`, with the names of each task. The tasks are rows that
`agentv convert` reads, graded by their FAIL_TO_PASS and PASS_TO_PASS alone.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import yaml

from agentv import sdk
from agentv.extensions.datasets.converting import DatasetRequest
from agentv.extensions.datasets.swe_bench import COMMAND, from_swe_bench

CHEATS = Path(__file__).parent.parent / "tests/cases/valid/cheats-of-test-runners"
TASKS = {"prices": "total", "bills": "due", "tips": "given", "taxes": "owed", "fees": "paid"}
"""Module → function: `total` of `prices` in the cheats."""

TESTS = ("test_total", "test_checked", "test_expected", "test_parsed")


def named(text: str, module: str) -> str:
    """A text about `total` of `prices` for another task."""
    return re.sub(r"prices", module, re.sub(r"\btotal\b", TASKS[module], text))


def patch(path: str, before: str, after: str) -> str:
    """A patch in git's format; `before` is empty where there was no file."""
    old, mode = (f"a/{path}", "") if before else ("/dev/null", "new file mode 100644\n")
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), old, f"b/{path}")
    return f"diff --git a/{path} b/{path}\n{mode}{''.join(lines)}"


def rows(mirror: Path) -> list[dict[str, str]]:
    """The rows; the repository of each is made below a directory that stands for GitHub."""
    found = []
    for module, function in TASKS.items():
        repository = mirror / f"acme/{module}.git"
        for one in (CHEATS / "repo").rglob("*.*"):
            place = repository / named(str(one.relative_to(CHEATS / "repo")), module)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(named(one.read_text(), module))
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "base")):
            subprocess.run([*git, *words], cwd=repository, check=True)
        commit = subprocess.run([*git, "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
        code, tests = (repository / f"{module}.py").read_text(), f"tests/test_{module}.py"
        hidden = named((CHEATS / "hidden/test_prices.py").read_text(), module)
        row = {
            "instance_id": f"acme__{module}-1",
            "repo": f"acme/{module}",
            "base_commit": commit.stdout.strip(),
            "problem_statement": f"{function} forgets the first of its {module}",
            "patch": patch(f"{module}.py", code, code.replace("[1:]", "")),
            "test_patch": patch(tests, "", hidden),
            "FAIL_TO_PASS": json.dumps(
                [f"{tests}::{name}" for name in re.findall(r"^def (test_\w+)", hidden, re.MULTILINE)]
            ),
            "PASS_TO_PASS": "[]",
        }
        found.append(row)
    return found


def main(sandbox: str = "bwrap") -> None:
    place = Path(tempfile.mkdtemp(prefix="agentv-cheats-"))
    (place / ".git").mkdir()
    os.chdir(place)
    os.environ |= {
        "AGENTV_HOME": str(place / "home"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }
    os.environ["GIT_CONFIG_KEY_0"] = f"url.file://{place}/mirror/.insteadOf"
    Path("swe.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows(place / "mirror")))
    command = COMMAND.replace("-q", "-q -p no:agentv")
    request = DatasetRequest(Path("swe.jsonl"), "swe-bench", (), "yaml", None, command=command)
    suite = from_swe_bench(request, {}).paths[0]
    cases = yaml.safe_load((CHEATS / "suite.eval.yaml").read_text())["tests"]
    targets = []
    for case in cases:
        scripts = place / "agents" / case["id"]
        scripts.mkdir(parents=True)
        for module in TASKS:
            (scripts / f"{module}.sh").write_text(
                named(case["input"], module).replace("report.xml", "swe-bench-report.xml")
            )
        # the repository of each task has one of these modules
        words = f'PATH="$PATH:/usr/bin"; {"; ".join(f"[ -f {m}.py ] && exec sh {scripts}/{m}.sh" for m in TASKS)}'
        targets.append({"name": case["id"], "provider": "cli", "command": ["sh", "-c", words, str(scripts)]})
    suite.write_text(f"{suite.read_text()}{yaml.safe_dump({'targets': targets})}")
    run = sdk.evaluate(str(suite), sandbox=sandbox)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for one in run.results:
        found[one.trial.target.name][one.error.code if one.error else str(one.status)] += 1
    for name, counts in found.items():
        print(f"{name:50} {', '.join(f'{key} {count}' for key, count in counts.items())}")
    honest = [name for name in found if name.startswith("honest") and "again" not in name]
    cheats = [name for name in found if name not in (*honest, "nothing")]
    caught = sum(not found[name]["passed"] for name in cheats)
    print(f"caught: {caught} of {len(cheats)} cheats; passed: {[found[name]['passed'] for name in honest]} of 5 honest")


if __name__ == "__main__":
    main(*sys.argv[1:])
