"""Where a suite's cases are found. `tests/cases` covers the ways to specify it."""

import pytest

from doubles.loading import suite_of

CASES = {
    "a.yaml": "- {id: a, input: x}\n",
    "b.jsonl": '{"id": "b", "input": "x"}\n',
    "notes.md": "- {id: no, input: x}\n",
    "more/c.yml": "- {id: c, input: x}\n",
    "d.csv": "n\nx\n",
    "e.json": '[{"id": "e", "input": "x"}]',
    "gen.py": "def cases():\n    yield {'id': 'g', 'input': 'x'}\n",
    "each/one/case.yaml": "input: x\n",
}
HEAD = "target: echo\nassert: [{contains: x}]\n"


def ids(folder, tests: str, files=CASES) -> list[str]:
    return [case.id for case in suite_of(folder, f"{HEAD}input: x\ntests: {tests}\n", files).cases]


@pytest.mark.parametrize(
    ("tests", "found"),
    [
        ("a.yaml", ["a"]),
        ("./b.jsonl", ["b"]),
        ("file://a.yaml", ["a"]),
        ("'*'", ["a", "b", "row-1"]),
        ("'*.json'", ["e"]),
        ("'*.y*ml'", ["a"]),
        ("'**/*'", ["a", "b", "row-1", "one", "c"]),
        ("d.csv", ["row-1"]),
        ("e.json", ["e"]),
        ("gen.py:cases", ["g"]),
        ("file://gen.py:cases", ["g"]),
        ("each/one", ["one"]),
        ("each/*/case.yaml", ["one"]),
        ("/more/*.yml", ["c"]),
        ("[b.jsonl, {id: i, input: x}, a.yaml]", ["b", "i", "a"]),
        ("[{id: i, input: x}, {id: j, input: x}]", ["i", "j"]),
    ],
)
def test_where_they_are(tmp_path, tests, found):
    assert ids(tmp_path, tests) == found


def test_a_name_with_brackets_is_a_name_if_there_is_such_a_file(tmp_path):
    assert ids(
        tmp_path, "'a[1].yaml'", {"a[1].yaml": "- {id: literal, input: x}\n", "a1.yaml": "- {id: no, input: x}\n"}
    ) == ["literal"]
