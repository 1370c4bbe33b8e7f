"""Two tasks like those of SWE-bench: a small repository and, for each task, an issue, hidden tests and a fix."""

import difflib
import json
from pathlib import Path
from typing import Any

from doubles.git_remotes import Hosts

MODULES = {
    "prices": ("def total(prices):\n    return sum(prices[1:])\n", "prices[1:]", "prices", "total([1, 2, 3]) == 6"),
    "dates": ("def leap(year):\n    return year % 4 == 0\n", "year % 4 == 0", "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)", "leap(1900) == False"),
}  # fmt: skip
"""Module of the package `shop` → its text, the wrong code, the fix, and a check that only the fix passes."""


def patch(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def tests_of(module: str, *checks: str) -> str:
    function = MODULES[module][0].removeprefix("def ").partition("(")[0]
    head = f"import unittest\n\nfrom shop.{module} import {function}\n\n\nclass TestIt(unittest.TestCase):\n"
    return head + "".join(f"    def {name}(self):\n        assert {check}\n" for name, check in zip(("test_old", "test_new"), checks, strict=False))  # fmt: skip


OLD = {"prices": "total([0, 5]) == 5", "dates": "leap(2024) == True"}
"""Module → a check that passes before and after the fix."""


def rows(hosts: Hosts) -> list[dict[str, Any]]:
    """Return the tasks' rows, and create their repository `github.com/acme/shop`."""
    files = {f"shop/{module}.py": text for module, (text, *_) in MODULES.items()}
    files |= {f"tests/test_{module}.py": tests_of(module, check) for module, check in OLD.items()}
    remote = hosts.repository("github.com/acme/shop", {**files, "shop/__init__.py": "", "README.md": "A shop.\n"})
    commit = remote.git("rev-parse", "HEAD")
    found = []
    for module, (text, wrong, right, check) in MODULES.items():
        tests, path = tests_of(module, OLD[module]), f"tests/test_{module}.py"
        found.append(
            {
                "repo": "acme/shop",
                "instance_id": f"acme__shop-{module}",
                "base_commit": commit,
                "patch": patch(f"shop/{module}.py", text, text.replace(wrong, right)),
                "test_patch": patch(path, tests, tests_of(module, OLD[module], check)),
                "problem_statement": f"{module} is wrong for {{{{ some }}}} values",
                "hints_text": "",
                "version": "1.0",
                "FAIL_TO_PASS": json.dumps([f"{path}::TestIt::test_new"]),
                "PASS_TO_PASS": json.dumps([f"{path}::TestIt::test_old"]),
                "environment_setup_commit": commit,
            }
        )
    remote.commit({"shop/later.py": "# holds the repair of a later commit\n"})
    return found


def write_rows(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in found), encoding="utf-8")
    return path
