"""Converts rows of SWE-bench: an issue, the tests that a fix must pass, and a fix (AGENTS.md section 11).

The patches of a row become files beside the suite: the tests, which are hidden from agents, and the solution.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from agentv.authoring.convert.records import Findings, records
from agentv.authoring.source.nodes import NOWHERE, MapNode, mapping, node_of, plain, span_of
from agentv.errors import UsageError
from agentv.extensions.datasets.cases import escaped_case
from agentv.extensions.datasets.converting import ConvertedDataset, DatasetRequest, SuiteContent, write_suite

TESTS, REPORT = "{tests}", "{report}"
"""Placeholders in a test command for the test files and for the report."""

COMMAND = f"python3 -m pytest -q -p no:cacheprovider --junit-xml {REPORT} {TESTS}"
_REPORT = "swe-bench-report.xml"
_TIMEOUT_S = 1800

_TEXTS = ("instance_id", "repo", "base_commit", "problem_statement", "patch", "test_patch")
_PATCHES = {"patch": ".patch", "test_patch": ".tests.patch"}
_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
_PATTERNS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "instance_id": (re.compile(r"\w[\w.-]*"), "letters, digits, '.', '-' and '_'"),
    "repo": (re.compile(r"[\w.-]+/[\w.-]+"), "ORG/NAME"),
    "base_commit": (re.compile(r"[0-9a-f]{7,64}"), "the hash of a commit"),
}
_PATCHED_FILE = re.compile(r"^\+\+\+ b/([^\t\n]+)", re.MULTILINE)
_UNITTEST_NAME = re.compile(r"(\w+) \(([\w.]+)\)")


def from_swe_bench(request: DatasetRequest, process_env: Mapping[str, str]) -> ConvertedDataset:
    """Write rows of SWE-bench as a suite, with their patches in a directory beside it.

    Args:
        request: what to convert.
        process_env: the environment in which the suite is loaded.

    Raises:
        LoadError, UsageError, OSError: as in `from_dataset`.
    """
    findings = Findings()
    beside = (request.out or request.source).absolute()
    folder = beside.with_name(beside.name.split(".")[0] + ".tasks")
    with ExitStack() as undo:
        try:
            folder.mkdir()
        except FileExistsError:
            raise UsageError(f"{folder} exists", "choose another file with --out, or move the directory") from None
        undo.callback(shutil.rmtree, folder)
        head, cases = {"threshold": node_of(1, NOWHERE)}, _cases(request, folder, findings)
        content = SuiteContent(head, cases, "the tests of each row", findings)
        return write_suite(request, content, undo, process_env)


def _cases(request: DatasetRequest, folder: Path, findings: Findings) -> Iterator[MapNode]:
    command = request.command or COMMAND
    seen: dict[str, int] = {}
    for record in records(str(request.source), findings):
        row = _row(record, command, findings)
        if row is None:
            continue
        name, line = row["instance_id"], span_of(record.at).line
        if name in seen:
            message = f"two rows have the instance_id '{name}'; the first is at line {seen[name]}"
            findings.error("duplicate-id", record, message)
            continue
        seen[name] = line
        case = escaped_case(_case(row, f"./{folder.name}/{name}", command, record), findings)
        if case is not None:
            for key, suffix in _PATCHES.items():
                (folder / f"{name}{suffix}").write_text(row[key], encoding="utf-8", errors="replace", newline="")
            yield case


def _row(record: MapNode, command: str, findings: Findings) -> dict[str, Any] | None:
    """The values of a row, with its lists of tests parsed, or None if the row is invalid, which is reported."""
    row = plain(record)
    wrong = [key for key in (*_TEXTS, *_LISTS) if key not in row]
    if wrong:
        findings.error("missing-key", record, f"a row of SWE-bench needs {', '.join(map(repr, wrong))}")
        return None
    for key in _TEXTS:
        form, means = _PATTERNS.get(key, (re.compile(r"(?s).*\S.*"), "text"))
        if not isinstance(row[key], str) or not form.fullmatch(row[key]):
            found = json.dumps(row[key])[:80]
            findings.error("bad-value", record.items[key], f"'{key}' must be {means}, found {found}")
            wrong.append(key)
    for key in _LISTS:
        if isinstance(row[key], str):
            with suppress(ValueError):
                row[key] = json.loads(row[key])
        if not isinstance(row[key], list) or not all(isinstance(one, str) and one for one in row[key]):
            findings.error("bad-value", record.items[key], f"'{key}' must be a list of names, or JSON of one")
            wrong.append(key)
    if not wrong and not row["FAIL_TO_PASS"]:
        findings.error("checks-nothing", record, "'FAIL_TO_PASS' is empty, so an agent that does nothing would pass")
        wrong.append("FAIL_TO_PASS")
    if not wrong and command == COMMAND and any(map(_UNITTEST_NAME.fullmatch, row["FAIL_TO_PASS"])):
        message = f"the tests of {row['repo']} are those of unittest, which pytest does not name so"
        findings.error("no-equivalent", record, message, f"add --test-command, which runs {TESTS} and writes {REPORT}")
        wrong.append("FAIL_TO_PASS")
    return None if wrong else row


def _case(row: Mapping[str, Any], files: str, command: str, record: MapNode) -> MapNode:
    tests = shlex.join(one for one in _PATCHED_FILE.findall(row["test_patch"]) if not one.endswith("conftest.py"))
    fail_to_pass, pass_to_pass = ([_UNITTEST_NAME.sub(r"\2.\1", one) for one in row[key]] for key in _LISTS)
    check = {
        "type": "command",
        "command": command.replace(TESTS, tests).replace(REPORT, _REPORT),
        "parse": "junit",
        "path": _REPORT,
        "timeout_s": _TIMEOUT_S,
        "fail_to_pass": fail_to_pass,
        **({"pass_to_pass": pass_to_pass} if pass_to_pass else {}),
    }
    made = {
        "id": row["instance_id"],
        "input": row["problem_statement"],
        "workspace": {
            "repos": [{"repo": row["repo"], "commit": row["base_commit"]}],
            "hidden": f"{files}{_PATCHES['test_patch']}",
        },
        "solution": f"{files}{_PATCHES['patch']}",
        "assert": [check],
        "metadata": {key: one for key, one in row.items() if key not in (*_TEXTS, *_LISTS) and one not in (None, "")},
    }
    return mapping({key: node_of(one, record.at) for key, one in made.items()}, span_of(record.at))
