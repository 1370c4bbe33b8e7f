"""What a Python file defines, found without running it."""

import pytest

from agentv.authoring.fields.python_source import definitions, read_definitions
from agentv.authoring.source.report import Report


def defined(source: str):
    report = Report()
    return read_definitions("cases.py", source, "bad-generator", report), report.diagnostics


@pytest.mark.parametrize(
    ("parameters", "required"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a, b=1", ("a",)),
        ("a, /, b, *, c, d=1", ("a", "b", "c")),
        ("*args, **kwargs", ()),
        ("a=1, *, b=None", ()),
    ],
)
def test_what_a_function_requires(parameters, required):
    found, _ = defined(f"def cases({parameters}): ...")
    assert found.functions == {"cases": required}


@pytest.mark.parametrize(
    ("source", "place"), [("def cases(:\n", (1, 11)), ("\0", (1, 1)), ("(" * 5000, (1, 200)), ("x = '", (1, 5))]
)
def test_what_is_no_python_is_told_at_its_place(source, place):
    found, told = defined(source)
    assert found is None
    assert [(one.code, one.span.line) for one in told] == [("bad-generator", place[0])]


@pytest.mark.parametrize("source", [
    "async def f(): ...", "f = lambda: 1", "f: object = print", "a, (f, *b) = x", "import f.g", "import g as f",
    "for f in (): pass", "with x as f: pass", "(f := 1)", "def g():\n    global f\n    f = 1", "match x:\n    case [f]: pass",
    "try:\n    from g import f\nexcept ImportError:\n    f = None",
])  # fmt: skip
def test_a_name_that_a_file_binds_is_seen(source):
    assert "f" in definitions("f.py", source).names
