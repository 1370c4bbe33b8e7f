"""However a valid file is changed, it stays valid or gets a diagnostic with a position inside it."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doubles.loading import outcome, repository
from doubles.thorough import examples

RIGHT: dict[str, Any] = {
    "name": "right",
    "target": {"name": "inline", "provider": "mock", "response": "Hello Ann", "env": {"KEY": "value"}},
    "judge": 'mock:{"score": 1}',
    "threshold": 0.5,
    "tags": ["smoke"],
    "metadata": {"team": "evals"},
    "run": {"workers": 2, "repeat": 1, "aggregate": "mean", "timeout_s": 5},
    "env": {"CITY": "Rome"},
    "prompts": [
        "{{ input }}",
        {"id": "chat", "label": "Chat", "prompt": [{"role": "user", "content": "Say {{ input }} to {{ name }}"}]},
        "file://prompts/*",
    ],
    "input": [{"role": "system", "content": "Be kind."}],
    "input_files": ["guide.md"],
    "default_test": {"vars": {"name": "Ann"}, "metadata": {"a": 1}, "assert": [{"icontains": "hello"}]},
    "assert": [{"include": "polite"}, {"not-contains": "bye"}],
    "tests": [
        {
            "id": "first",
            "description": "greets",
            "criteria": "Greets {{ name }}",
            "input": "Hello {{ name }} of {{ env.CITY }}",
            "expected_output": {"role": "assistant", "content": "Hello"},
            "vars": {"name": "Ann", "tags": ["a", "b"]},
            "expand": True,
            "metadata": {"level": 1},
            "threshold": 0.4,
            "repeat": 1,
            "timeout_s": 3,
            "tags": {"area": "greeting"},
            "rubrics": ["Is polite", {"id": "short", "outcome": "Is short", "weight": 2}],
            "assert": [
                "Is polite",
                {"type": "contains", "value": "Hello", "weight": 2, "required": True, "min_score": 0.5},
                {"contains_any": ["Hello", "Hi"]},
                {"type": "regex", "value": "^Hel+o", "flags": "i", "transform": "output | upper"},
                {"word-count": {"min": 1, "max": 9}},
                {"type": "is-json", "value": {"type": "object", "properties": {"a": {"type": "string"}}}, "weight": 0},
                {"type": "assert-set", "threshold": 0.5, "assert": [{"contains": "Ann"}, {"not-equals": "Bob"}]},
                {"type": "field-accuracy", "fields": [{"path": "a", "match": "exact"}], "weight": 0},
                {"type": "script", "command": ["true"], "config": {"a": 1}},
                {"type": "llm-rubric", "value": "Is kind", "prompt": "Judge {{ output }} by {{ rubrics }}"},
                {"type": "min-words", "minimum": 1},
                {"latency": 5000},
            ],
        },
        {
            "id": "second",
            "input": [
                {"role": "user", "content": [{"type": "text", "value": "Hi"}, {"type": "file", "value": "guide.md"}]},
                {"role": "assistant", "content": "", "tool_calls": [{"name": "search", "arguments": {"q": "x"}}]},
            ],
            "skip_defaults": True,
            "execution": {"target": "mock:Hi"},
            "assert": [{"type": "contains", "value": "Hi"}],
        },
        "more.yaml",
    ],
}
FILES = {
    "guide.md": "Be brief.\n",
    "prompts/both.txt": "One {{ input }}\n---\nTwo {{ input }}\n",
    "prompts/chat.json": '[{"role": "user", "content": "{{ input }}"}]',
    "more.yaml": "- {id: third, input: Hello, vars: {name: Bob}}\n",
    ".agentv/templates/polite.yaml": "assert:\n  - icontains: '{{ name[0] }}'\n",
    ".agentv/assertions/min_words.py": "def assertion(ctx, *, minimum: int = 3):\n    return True\n",
}
KEYS = ["assert", "type", "value", "id", "input", "tests", "include", "name", "contains", "role", "nonsense", "", "<<"]
SCALARS = [None, True, 0, -1, 1.5, 10**400, float("inf"), "", " ", "x", "./guide.md", "no\x1bthing", "a.b:c", "é" * 50]
BRACES = ["{{ name }}", "{{ nobody }}", "{{", "{% if", "}}", "${{ NOBODY }}"]
NESTED = [[], {}, [None], ["x", 1], {"type": "contains"}, {"x": 1}, [[]]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(tmp_path_factory.mktemp("mutations"), FILES)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a document."""
    inner = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [place for key, value in inner for place in [(*path, key), *places(value, (*path, key))]]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    document = copy.deepcopy(RIGHT)
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(document)))
        home = document
        for step in path:
            home = home[step]
        mutate = draw(st.sampled_from(["delete", "replace", "rename", "double"]))
        if mutate == "delete":
            del home[last]
        elif mutate == "replace":
            home[last] = copy.deepcopy(draw(st.sampled_from([*SCALARS, *BRACES, *NESTED])))
        elif mutate == "rename" and isinstance(home, dict):
            home[draw(st.sampled_from(KEYS))] = home.pop(last)
        elif mutate == "double" and isinstance(home, list):
            home.append(copy.deepcopy(home[last]))
        if not document:
            return {"tests": []}
    return document


@settings(
    max_examples=examples(100, 40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(document=mutated())
def test_a_mutated_file_is_right_or_told_where_it_is_wrong(project: Path, document: dict[str, Any]) -> None:
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    (project / "suite.eval.yaml").write_text(text, encoding="utf-8")
    told_within(project)


@settings(max_examples=examples(100, 40))
@given(data=st.data())
def test_a_file_with_bytes_replaced_is_right_or_told_where_it_is_wrong(project: Path, data: st.DataObject) -> None:
    original = yaml.safe_dump(RIGHT, allow_unicode=True, sort_keys=False).encode()
    start = data.draw(st.integers(0, len(original)))
    length = data.draw(st.integers(0, 40))
    piece = data.draw(
        st.one_of(st.binary(max_size=20), st.text("{}[]:-#&*!|>'\"%@`\n\t ax1.~<?,", max_size=12).map(str.encode))
    )
    (project / "suite.eval.yaml").write_bytes(original[:start] + piece + original[start + length :])
    told_within(project)


def told_within(project: Path) -> None:
    suites, found = outcome(project / "suite.eval.yaml")
    errors = [one for one in found if one.severity == "error"]
    assert bool(suites) != bool(errors)
    _, validated = outcome(project / "suite.eval.yaml", for_run=False)
    for one in (*found, *validated):
        assert one.span is not None
        lines = (
            Path(one.span.file)
            .read_bytes()
            .decode(errors="replace")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
            .split("\n")
        )
        assert 1 <= one.span.line <= one.span.end_line <= len(lines), one
        assert 1 <= one.span.column <= len(lines[one.span.line - 1]) + 1, one
        assert one.message == one.message.strip()
        assert "\n" not in one.message
