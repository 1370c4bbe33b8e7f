"""Where the cases of a suite are. The ways to say it are in `tests/cases`."""

import pytest

from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError
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


def test_placeholders_of_a_file_of_cases_are_its_own(tmp_path):
    files = {"a.yaml": "- {id: a, input: '{{ v }}', vars: {v: x}}\n- {id: b, input: y}\n"}
    first, second = suite_of(tmp_path, f"{HEAD}tests: a.yaml\n", files).cases
    assert (first.input[0].text, second.input[0].text) == ("x", "y")


def test_double_ids_of_a_suite_made_in_python_are_found_without_places():
    case = {"id": "a", "input": "x", "assert": [{"contains": "x"}]}
    with pytest.raises(LoadError) as caught:
        load(LoadRequest((), documents=({"target": "echo", "tests": [case, case]},)), registries())
    assert [one.message for one in caught.value.diagnostics] == ["two cases have the id 'a'"]
