"""Tests that must fail: hidden tests with a failure at their end. Where they pass, something decides in their place.

Code under test can patch the test runner, end its process with status 0, or rewrite its report. None of this can tell
such a test from the real one, since it runs the same code first.
"""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

_JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
_MODULE = re.compile(r"^\s*(?:import\b(?!\s*\()|export\b)", re.MULTILINE)
_TEST = "test"

_SILENT = (
    'Object.entries(process.getBuiltinModule?.("node:assert") ?? {}).some(([name, check]) => '
    '["equal", "deepEqual", "strictEqual", "deepStrictEqual", "ok"].includes(name) && '
    "(() => { try { check(0, 1); return true; } catch { return false; } })())"
)
"""Whether an assertion of node that must fail does not: code under test can replace it, as nothing protects it."""


def failing(path: str, text: str, mark: str) -> str | None:
    """The text of a file of tests in which each test fails at its end; None if it is no file of tests.

    Args:
        path: of the file.
        text: its content.
        mark: name of a file that is made in its directory, or the working directory, when it is loaded.
    """
    place = PurePosixPath(path)
    if place.suffix == ".py" and place.name != "conftest.py":
        return _python(text, mark)
    if place.suffix in _JAVASCRIPT and (".test." in place.name or ".spec." in place.name or _TEST in place.stem):
        return _javascript(text, mark)
    return None


def failing_names(text: str) -> frozenset[str]:
    """The names of the tests in a Python file."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(one.name for one in _tests(module))


def _python(text: str, mark: str) -> str | None:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    tests = _tests(module)
    for test in tests:
        failure = ast.parse("raise AssertionError('this test must fail')").body
        test.body = [ast.Try(body=test.body, handlers=[], orelse=[], finalbody=failure)]
    loaded = f"__import__('pathlib').Path(__file__).absolute().with_name({mark!r}).touch()"
    first = next((place for place, one in enumerate(module.body) if not _comes_first(one)), len(module.body))
    module.body[first:first] = ast.parse(loaded).body
    return ast.unparse(ast.fix_missing_locations(module)) + "\n" if tests else None


def _comes_first(statement: ast.stmt) -> bool:
    """Whether nothing may stand before a statement: a docstring, or an import from the future."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tests(module: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    scopes: list[ast.Module | ast.ClassDef] = [module]
    found = []
    for scope in scopes:
        for one in scope.body:
            if isinstance(one, ast.ClassDef):
                scopes.append(one)
            elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith(_TEST):
                found.append(one)
    return found


def _javascript(text: str, mark: str) -> str:
    """The failure is in a hook that runs after the tests; where none is known, the file fails when it is loaded."""
    if _MODULE.search(text):
        loaded = f"import \"data:text/javascript,import fs from 'node:fs'; fs.writeFileSync('{mark}', '')\";"
    else:
        loaded = f'require("node:fs").writeFileSync("{mark}", "");'
    hooks = ("afterAll", "after", "test.after", "it.after")
    known = "".join(f'typeof {name.partition(".")[0]} === "function" && {name} ? {name} : ' for name in hooks)
    fail = f'() => {{ if (!({_SILENT})) throw new Error("this test must fail"); }}'
    return f"{loaded}{text}\n;({known}(fail => fail()))({fail});\n"
