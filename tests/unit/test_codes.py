"""The table of codes matches the source."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agentv.codes import CODES, FILES, RUNS
from agentv.reports.annotations import CUT_ANSWER
from agentv.reports.run.failures import CASE_FAILED

SOURCE = Path(__file__).parents[2] / "src" / "agentv"

PLACES = {
    "error": 0,  # Report.error
    "warning": 0,
    "hint": 0,
    "remark": 0,
    "errored": 0,  # Grade.errored
    "Failure": 0,
    "CallFailure": 0,
    "failed": 0,
    "_failed": 0,
    "JudgeFailure": 0,
    "RenderError": 0,
    "_RefusedError": 0,
    "Diagnostic": 0,
    "GateRefusal": 0,
    "_diagnostic": 0,
    "foreign_code": 0,
    "Raised": 0,
    "CodeCall": 3,
    "Unavailable": 0,
    "Problem": 0,
    "Issue": 2,
    "attempt": 2,
}
"""Function called with a code → position of the code."""


def constants_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the module-level constants: BAD_RESULT = "bad-result"."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    yield target.id, node.value.value


def given(node: ast.Call) -> Iterator[ast.expr]:
    """Yield the expressions that give a call's code."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    place = PLACES.get(name)
    if place is not None and len(node.args) > place:
        yield node.args[place]
    if place is not None:
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "code")


def codes_of(tree: ast.Module) -> Iterator[tuple[ast.expr | None, int]]:
    """Yield the expressions that are codes, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ((code, node.lineno) for code in given(node))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "code":
            yield node.value, node.lineno


@cache
def used() -> dict[str, str]:
    """Return every code in the source → where it is."""
    constants: dict[str, str] = {}
    places: list[tuple[str, bool, str]] = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "codes.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = dict(constants_of(tree))
        constants |= own
        for code, line in codes_of(tree):
            place = f"{path.relative_to(SOURCE)}:{line}"
            if isinstance(code, ast.Name) and code.id in own:
                places.append((own[code.id], False, place))
            elif isinstance(code, ast.Name):
                places.append((code.id, True, place))
            elif isinstance(code, ast.Constant) and isinstance(code.value, str):
                places.append((code.value, False, place))
    found: dict[str, str] = {}
    for code, is_name, place in places:
        value = constants.get(code) if is_name else code
        if value is not None:
            found.setdefault(value, place)
    return found


def test_every_code_in_the_source_has_a_meaning() -> None:
    outcomes = {CASE_FAILED, CUT_ANSWER}  # titles of GitHub annotations, not of mistakes in files
    assert {code: place for code, place in used().items() if code not in CODES and code not in outcomes} == {}


def test_every_code_with_a_meaning_is_used() -> None:
    assert CODES.keys() - used().keys() == set()


@pytest.mark.parametrize("table", [FILES, RUNS])
def test_the_tables_are_in_order_and_whole_sentences(table: dict[str, str]) -> None:
    assert list(table) == sorted(table)
    assert [meaning for meaning in table.values() if not re.fullmatch(r"[A-Z`].*\.", meaning)] == []
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code) for code in table)


def test_no_code_stands_in_both_tables() -> None:
    assert FILES.keys() & RUNS.keys() == set()
