"""What a Python file defines, found without running it."""

from __future__ import annotations

import pytest

from agentv.authoring.fields.python_files import definitions


@pytest.mark.parametrize(
    "source",
    [
        "def f(): ...",
        "async def f(): ...",
        "class f: ...",
        "f = lambda: 1",
        "f: object = print",
        "a, (f, *b) = x",
        "import f.g",
        "import g as f",
        "from g import f",
        "if x:\n    def f(): ...",
        "try:\n    from g import f\nexcept ImportError:\n    f = None",
        "for f in (): pass",
        "with x as f: pass",
        "(f := 1)",
        "def g():\n    global f\n    f = 1",
        "match x:\n    case [f]: pass",
    ],
)
def test_a_name_that_a_file_binds_is_seen(source):
    assert "f" in definitions(source).names
