from __future__ import annotations

import pytest

from agentv.extensions.mutate.operators.catalogue import OPERATORS, mutants_of
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords
from agentv.extensions.mutate.operators.patch import Hunk, lines_of
from agentv.extensions.mutate.operators.work import NamedWork, Work, WorkFile


def added(text):
    return Hunk(0, 0, tuple(("+", line) for line in lines_of(text)))


def made(operator, *changed, tests=(), words=(), **named):
    words = NamedWords(frozenset(words), frozenset(), frozenset())
    work = Work(tuple(changed), tuple(tests), NamedWork(**named), words)
    answer = Answer("case", "Done.", work=work)
    return [mutant for _, mutant in mutants_of(answer, [OPERATORS[operator]])]


CHANGED = WorkFile("src/app.py", "a = 1\nb = 2\nc = 3\n", (Hunk(1, 1, (("-", "b = 1\n"), ("+", "b = 2\n"))),))


def test_a_file_that_was_added_or_deleted_is_missing_or_back():
    new, gone = made(
        "revert-hunk",
        WorkFile("new.txt", "x\n", (added("x\n"),), is_new=True),
        WorkFile("gone.txt", None, (Hunk(0, 0, (("-", "y\n"),)),)),
    )
    assert (new.files, gone.files) == ({"new.txt": None}, {"gone.txt": "y\n"})


@pytest.mark.parametrize(
    ("file", "named", "counts"),
    [
        (CHANGED, {}, False),
        (CHANGED, {"runs": True}, True),
        (CHANGED, {"words": ["b"]}, True),
        (CHANGED, {"read": ("src/app.py",)}, False),
        (WorkFile("src/app.py", "x\n", (added("x\n"),), is_new=True), {"read": ("src/*",)}, True),
        (WorkFile("notes.md", "x\n", (added("x\n"),), is_new=True), {"runs": True}, False),
        (WorkFile("src/app.py", "# x\n\n", (added("# x\n\n"),)), {"runs": True}, False),
        (WorkFile("tests/test_app.py", "x = 1\n", (added("x = 1\n"),)), {"runs": True}, False),
    ],
)
def test_hunks_count_where_the_checks_name_them(file, named, counts):
    assert [mutant.counts for mutant in made("revert-hunk", file, **named)] == [counts]


TESTS = "import x\n\n\ndef test_a():\n    pass\n\n\n@mark\ndef test_b():\n    pass\n"


def test_a_test_is_deleted_or_its_file():
    one = WorkFile("test_one.py", "def test_a():\n    pass\n")
    found = made("delete-test", tests=[WorkFile("test_x.py", TESTS), one, WorkFile("x.test.ts", "it('a')")])
    assert [mutant.files for mutant in found] == [
        {"test_x.py": "import x\n\n\ndef test_a():\n    pass\n\n\n"},
        {"test_one.py": None},
        {"x.test.ts": None},
    ]
    assert {mutant.counts for mutant in found} == {False}
    for named in ({"kept": ("*.py",)}, {"runs_tests": True}):
        assert made("delete-test", tests=[one], **named)[0].counts


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", 'def f():\n    """Doc."""\n    x = 1\n', 'def f():\n    """Doc."""\n    print("DEBUG")\n    x = 1\n'),
        ("a.py", "import x\n", None),
        ("a.py", "x = (\n", None),
        ("a.py", "if x: y = 1\n", 'print("DEBUG")\nif x: y = 1\n'),
        ("a.ts", "f() {\n  return 1;\n}\n", 'f() {\n  console.log("DEBUG");\n  return 1;\n}\n'),
        ("a.js", "if (x)\n  return 1;\n", None),
        ("a.sh", "#!/bin/sh\nls\n", '#!/bin/sh\necho "DEBUG"\nls\n'),
        ("a.md", "text\n", None),
    ],
)
def test_a_debug_line_stands_before_a_statement(path, text, expected):
    found = made("leave-debug-line", WorkFile(path, text, (added(text),)))
    assert [mutant.files for mutant in found] == ([] if expected is None else [{path: expected}])
    assert not any(mutant.counts for mutant in found)
    named = made("leave-debug-line", WorkFile(path, text, (added(text),)), names_debugging=True)
    assert all(mutant.counts for mutant in named)
