from pathlib import Path
from typing import Any

import pytest

from agentv.sdk import evaluate
from doubles.translations import translated_text


@pytest.mark.parametrize(
    "text",
    [
        "prompts: [x]\nproviders: [file://a.yaml]\ntests: [{assert: [{type: equals, value: x}]}]\n",
        "prompts: [x]\nproviders: [echo]\ntests: [{assert: [file://a.yaml]}]\n",
        "prompts: [x]\nproviders: [echo]\nscenarios: [file://a.yaml]\n",
    ],
)
def test_a_file_that_names_itself_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- file://b.yaml\n")
    (tmp_path / "b.yaml").write_text("- file://a.yaml\n")
    _, told = translated_text(text, tmp_path)
    assert any("names itself" in one for one in told)


def test_references_that_double_at_each_step_end(tmp_path: Path) -> None:
    steps = "".join(f"  a{n}: {{b: {{$ref: '#/x/a{n + 1}'}}, c: {{$ref: '#/x/a{n + 1}'}}}}\n" for n in range(29))
    text = f"prompts: [x]\nproviders: [echo]\nx:\n{steps}  a29: {{}}\ntests: [{{metadata: {{$ref: '#/x/a0'}}}}]\n"
    _, told = translated_text(text, tmp_path)
    assert told[0] == "the references stand for more than 10,000 others"


ALL = "[{label: one, raw: 'A {{ x }}'}, {label: 'two:b', raw: 'B {{ x }}'}]"


def converted(providers: str, tmp_path: Path) -> tuple[dict[str, Any], list[str]]:
    tests = "[{vars: {x: 1}, assert: [{type: contains, value: A}]}]"
    return translated_text(f"prompts: {ALL}\nproviders: {providers}\ntests: {tests}\n", tmp_path)


@pytest.mark.parametrize(
    ("providers", "labels"),
    [
        ("[{id: echo, prompts: [one, two]}]", ["one", "two:b"]),
        ("[{id: echo, prompts: ['*']}, {id: echo, label: b}]", ["one", "two:b"]),
        ("[{id: echo, prompts: [one]}, {id: echo, label: b, prompts: ['on*']}]", ["one"]),
        ("[{echo: {prompts: [two]}}]", ["two:b"]),
    ],
)
def test_prompts_that_all_providers_get_are_those_of_the_suite(providers, labels, tmp_path):
    document, told = converted(providers, tmp_path)
    assert told == []
    assert [one["label"] for one in document["prompts"]] == labels


@pytest.mark.parametrize("providers", ["[{id: echo, prompts: [nothing]}]", "[{id: echo, prompts: []}]"])
def test_prompts_of_one_provider_alone_are_an_error(providers: str, tmp_path: Path) -> None:
    _, told = converted(providers, tmp_path)
    assert "'prompts' of a provider has no equivalent" in told


def test_prompts_that_some_providers_get_become_cases(tmp_path: Path) -> None:
    document, told = converted("[{id: echo, prompts: [one]}, {id: echo, label: b}]", tmp_path)
    assert told == []
    assert "prompts" not in document
    made = [(case["id"], case["input"], case.get("target")) for case in document["tests"]]
    assert made == [
        ("test-1-one", "A {{ x }}", None),
        ("test-1-two-b-b", "B {{ x }}", {"name": "b", "provider": "echo", "thoughts": "keep"}),
    ]
    asked = [(one.trial.target.name, one.output) for one in evaluate(str(tmp_path / "promptfooconfig.yaml")).results]
    assert sorted(asked, key=str) == [("b", "A 1"), ("b", "B 1"), ("echo", "A 1")]


def test_prompts_of_a_test_become_cases(tmp_path: Path) -> None:
    text = f"prompts: {ALL}\nproviders: [echo]\ntests:\n"
    text += "  - {vars: {x: 1}, prompts: [one], assert: [{type: contains, value: A}]}\n"
    text += "  - {vars: {x: 2}, assert: [{type: contains, value: 2}]}\n"
    document, told = translated_text(text, tmp_path)
    assert told == []
    shown = [(case["id"], case["input"]) for case in document["tests"]]
    assert shown == [("test-1-one", "A {{ x }}"), ("test-2-one", "A {{ x }}"), ("test-2-two-b", "B {{ x }}")]


@pytest.mark.parametrize(
    "tests",
    [
        "[{prompts: [one], vars: {x: 1}, assert: [{type: select-best, value: good}]}]",
        "[{prompts: [three], vars: {x: 1}, assert: [{type: contains, value: A}]}]",
        "[{prompts: [one], provider: echo, vars: {x: 1}, assert: [{type: contains, value: A}]}]",
    ],
)
def test_prompts_of_a_test_that_cannot_be_written_as_cases_are_reported(tests: str, tmp_path: Path) -> None:
    _, told = translated_text(f"prompts: {ALL}\nproviders: [echo]\ntests: {tests}\n", tmp_path)
    assert "'prompts' of a test has no equivalent" in told


def test_settings_of_a_prompt_become_those_of_a_target(tmp_path: Path) -> None:
    prompts = "[{label: one, raw: A}, {label: two, raw: B, config: {temperature: 1, max_tokens: 5}}]"
    text = f"prompts: {prompts}\nproviders: [{{id: 'openai:gpt-5', config: {{temperature: 0}}}}]\n"
    document, told = translated_text(text + "tests: [{assert: [{type: contains, value: A}]}]\n", tmp_path)
    assert told == []
    first = {"provider": "openai:gpt-5", "temperature": 0, "thoughts": "keep"}
    own = {**first, "name": "openai:gpt-5 two", "temperature": 1, "max_tokens": 5}
    assert document["targets"] == [first, own]
    made = [(case["input"], case["target"]) for case in document["tests"]]
    assert made == [("A", first), ("B", own)]


def test_settings_of_a_prompt_that_a_provider_does_not_take_are_reported(tmp_path: Path) -> None:
    text = "prompts: [{label: one, raw: A, config: {temperature: 1}}]\nproviders: [echo]\n"
    _, told = translated_text(text + "tests: [{assert: [{type: contains, value: A}]}]\n", tmp_path)
    assert told == ["'config' of a prompt has no equivalent"]
