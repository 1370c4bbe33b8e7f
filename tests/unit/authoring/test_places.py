"""Where `{{ name }}` is rendered, and where it is plain text (SPEC section 6).

Bodies and headers of `http` are in `tests/unit/targets/test_http.py`, judge prompts in `tests/unit/judge`.
"""

import json
from typing import Any

import pytest

from agentv.model.suite.suite import Case, Suite
from agentv.model.values.message import prompt_text
from doubles.loading import suite_of

ALL = "{{ v }} {{ vars.v }} {{ env.E }} ${{ E }}"
SEEN = "x x e e"
HEAD = {"target": "echo", "judge": "mock:yes", "env": {"E": "e"}}
CASE = {"id": "a", "vars": {"v": "x"}, "input": "hi", "assert": [{"contains": "x"}]}
FILES = {
    "data.md": ALL,
    "prompt.txt": ALL,
    "chat.json": json.dumps([{"role": "user", "content": ALL}]),
    "grade.py": f"# {ALL}\ndef grade(output):\n    return True\n",
    "rubric.md": f"{ALL} {{{{ output }}}}",
    ".agentv/templates/shared.yaml": json.dumps({"assert": [{"contains": ALL}]}),
    ".agentv/assertions/own.py": "def own(ctx, *, words='', deep=None):\n    return True\n",
}


def suite(folder, case: dict[str, Any], **head: Any) -> Suite:
    return suite_of(folder, json.dumps({**HEAD, **head, "tests": [{**CASE, **case}]}), FILES)


def text(case: Case) -> str:
    return prompt_text(case.input)


def value(case: Case) -> Any:
    return case.assertions[0].assertion.value


INPUTS = {
    "text": ALL,
    "content of an object": {"question": ALL},
    "message": {"role": "user", "content": ALL},
    "messages": [{"role": "user", "content": ALL}],
    "block": [{"role": "user", "content": [{"type": "text", "value": ALL}]}],
}


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
def test_input_and_expected_output(tmp_path, given):
    (case,) = suite(tmp_path, {"input": given, "expected_output": given}).cases
    assert SEEN in text(case)
    assert "{{" not in text(case)
    assert SEEN in case.expected_output[0].text


def test_a_text_out_of_a_variable_is_not_rendered_again(tmp_path):
    hostile = "{{ env.E }}{% if x %}${{ E }}"
    case = {"vars": {"v": hostile}, "input": "{{ v }}", "criteria": "{{ v }}", "assert": [{"contains": "{{ v }}"}]}
    (found,) = suite(tmp_path, case, prompts=["Say {{ v }} {{ input }}"]).cases
    assert text(found) == f"Say {hostile} {hostile}"
    assert found.criteria == value(found) == hostile


def test_the_values_of_variables_are_not_rendered(tmp_path):
    (case,) = suite(tmp_path, {"vars": {"v": ALL}}, default_test={"vars": {"w": ALL}}).cases
    assert case.vars == {"v": ALL, "w": ALL}


def test_the_values_of_the_environment_are_not_rendered(tmp_path):
    assert suite(tmp_path, {}, env={"E": ALL}).env["E"] == ALL


@pytest.mark.parametrize("place", ["block", "input_files", "prompt"])
def test_the_content_of_an_attached_file_is_data(tmp_path, place):
    messages = [{"role": "user", "content": [{"type": "file", "value": "data.md"}]}]
    case, head = {
        "block": ({"input": messages}, {}),
        "input_files": ({}, {"input_files": ["data.md"]}),
        "prompt": ({}, {"prompts": [messages]}),
    }[place]
    (found,) = suite(tmp_path, case, **head).cases
    assert ALL in text(found)


def test_the_code_of_a_file_is_data(tmp_path):
    (case,) = suite(tmp_path, {"assert": [{"python": "grade.py:grade"}]}).cases
    assert (tmp_path / "grade.py").read_text() == FILES["grade.py"]
    assert case.assertions[0].assertion.value.function.path == str(tmp_path / "grade.py")
