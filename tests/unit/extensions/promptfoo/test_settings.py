"""Assertions on tool calls, by the settings of the providers."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentv.errors import ExitStatus
from agentv.sdk import evaluate
from doubles.translations import translated

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "weather", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}


def converted(
    kind: str, configs: list[dict[str, Any]], tmp_path: Path, **keys: Any
) -> tuple[dict[str, Any], list[str]]:
    source = tmp_path / "promptfooconfig.yaml"
    providers = [{"id": "openai:chat:gpt-5", "label": f"m{n}", "config": one} for n, one in enumerate(configs)]
    tests = [{"assert": [{"type": kind, **keys}]}]
    source.write_text(json.dumps({"prompts": ["{{ x }}"], "providers": providers, "tests": tests}))
    document, found = translated(source)
    return document, [one.message for one in found if one.severity != "hint"]


def grade(assertion: dict[str, Any], output: Any, tmp_path: Path) -> ExitStatus:
    """Grade an answer given as JSON, as from a target with `tool_calls_as_output`."""
    provider = f"def call_api(prompt, options, context):\n    return {{'output': {output!r}}}\n"
    (tmp_path / "provider.py").write_text(provider)
    target = {"provider": "python", "function": "provider.py:call_api"}
    suite = {"target": target, "threshold": 1, "tests": [{"id": "a", "input": "hello", "assert": [assertion]}]}
    (tmp_path / "graded.eval.yaml").write_text(yaml.safe_dump(suite))
    return evaluate(str(tmp_path / "graded.eval.yaml")).status


def call(name: str = "weather", arguments: str = '{"city": "Rome"}') -> dict[str, str]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("calls", "status"),
    [
        ([{"function": call()}], ExitStatus.PASSED),
        ({"content": "so", "tool_calls": [{"function": call()}]}, ExitStatus.PASSED),
        ([{"function": call()}, {"function": call(arguments="{}")}], ExitStatus.FAILED),
        ([{"function": call("wind")}], ExitStatus.FAILED),
        ([{"function": call(arguments="{city")}], ExitStatus.FAILED),
        ([], ExitStatus.FAILED),
        ("It is warm.", ExitStatus.FAILED),
    ],
)
def test_calls_of_tools_are_checked_by_their_schemas(calls: Any, status: ExitStatus, tmp_path: Path) -> None:
    document, told = converted("is-valid-openai-tools-call", [{"tools": [TOOL]}], tmp_path)
    assert told == []
    assert document["targets"][0]["tool_calls_as_output"] is True
    assert grade(document["tests"][0]["assert"][0], calls, tmp_path) == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [(call(), ExitStatus.PASSED), (call(arguments='{"city": 1}'), ExitStatus.FAILED), ("no", ExitStatus.FAILED)],
)
def test_a_call_of_a_function_is_checked_by_its_schema(answer: Any, status: ExitStatus, tmp_path: Path) -> None:
    document, told = converted("is-valid-openai-function-call", [{"functions": [FUNCTION]}], tmp_path)
    assert told == []
    assert document["targets"][0]["extra"] == {"functions": [FUNCTION]}
    assert grade(document["tests"][0]["assert"][0], answer, tmp_path) == status


@pytest.mark.parametrize(
    ("kind", "configs"),
    [
        ("is-valid-openai-tools-call", [{}]),
        ("is-valid-openai-tools-call", [{"functions": [FUNCTION]}]),
        ("is-valid-openai-tools-call", [{"tools": [TOOL]}, {"tools": [TOOL, TOOL]}]),
        ("is-valid-openai-tools-call", [{"tools": [TOOL, {"type": "mcp", "server_url": "x"}]}]),
        ("is-valid-openai-function-call", [{"tools": [TOOL]}]),
        ("is-valid-function-call", [{"tools": [TOOL]}]),
        ("not-is-valid-openai-tools-call", [{"tools": [TOOL]}]),
    ],
)
def test_what_cannot_be_checked_is_reported(kind: str, configs: list[dict[str, Any]], tmp_path: Path) -> None:
    _, told = converted(kind, configs, tmp_path)
    assert told == [f"'{kind.removeprefix('not-')}' has no equivalent"]
