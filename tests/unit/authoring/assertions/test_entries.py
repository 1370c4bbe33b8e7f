"""The entries of an `assert:` list (SPEC section 7). Their five forms are in `tests/cases`."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.authoring.cases.data_files.jsonl import parsed_line
from agentv.authoring.source.nodes import node_of
from agentv.model.values.values import Span
from doubles.loading import parsed, reading_of, repository

CUSTOM = {
    ".agentv/assertions/min_words.py": "def assertion(ctx, *, minimum: int = 3):\n    return True\n",
    ".agentv/assertions/anything.py": "def assertion(ctx, **options):\n    return True\n",
    ".agentv/assertions/two.py": "def assertion(ctx, *, value: str, other: int = 1):\n    return True\n",
    ".agentv/assertions/looks.ts": "export default 1;\n",
}


def read(text: str, folder: Path, **more):
    """Return the entries of a list and the codes and messages of its diagnostics."""
    reading = reading_of(repository(folder, CUSTOM), **more)
    entries = reading.entries(parsed(text, str(folder / "suite.eval.yaml")), reading).value
    return entries, [(one.code, one.message) for one in reading.report.diagnostics]


def entry(text: str, folder: Path, **more):
    """Return the only entry of a valid list."""
    found, told = read(f"- {text}", folder, **more)
    assert told == []
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("{min-words: 5}", {"minimum": 5}),
        ("{type: min_words, minimum: 5}", {"minimum": 5}),
        ("{type: min-words, config: {minimum: 5}}", {"minimum": 5}),
        ("{min-words: {minimum: 5}}", {"minimum": 5}),
        ("{min-words: , weight: 2}", {}),
        ("{two: x}", {"value": "x"}),
        ("{type: two, value: x, config: {other: 2}, x-free: 1}", {"value": "x", "other": 2}),
        ("{type: anything, a: [1], b: {c: 1}}", {"a": [1], "b": {"c": 1}}),
        ("{anything: 5}", {"value": 5}),
    ],
)
def test_the_parameters_of_a_custom_type(tmp_path, text, parameters):
    assert entry(text, tmp_path).assertion.parameters == parameters


def test_sentences_are_judged_together_at_the_first_ones_place(tmp_path):
    found, told = read("[{contains: a}, Is kind, {contains: b}, Is short]", tmp_path)
    assert told == []
    assert [one.type for one in found] == ["contains", "llm-rubric", "contains"]
    rubric = found[1]
    assert (rubric.assertion.value, rubric.settings.weight) == (("Is kind", "Is short"), 2.0)
    assert rubric.span.column == 17


def test_equal_assertions_are_one_object_and_what_is_doubtful_is_reported_for_each(tmp_path):
    reading = reading_of(tmp_path)
    texts = "- {type: contains, value: a}\n- {type: not-contains, value: a}\n- {contains: b}\n"
    first, second, other = reading.entries(parsed(texts), reading).value
    assert first.assertion is second.assertion
    assert (first.settings, first.span) != (second.settings, second.span)
    assert other.assertion != first.assertion
    reading.entries(parsed("- {type: regex, value: .*}\n- {type: not-regex, value: .*}"), reading)
    assert [found.code for found in reading.report.diagnostics if found.span.line < 3].count("always-passes") == 2


@pytest.mark.parametrize("second", [{"type": "icontains", "value": ""}, {"regex": "(b|b)+c"}])
def test_what_a_line_says_once_of_two_assertions_is_said_of_the_next_line(tmp_path, second):
    reading = reading_of(tmp_path)
    for number, entries in enumerate([[{"type": "contains", "value": ""}, {"regex": "(a|a)+c"}, second], [second]], 1):
        node = parsed_line(json.dumps(entries).encode(), number, "/cases.jsonl", reading.report)
        reading.entries(node, reading)
    assert {found.span.line for found in reading.report.diagnostics} == {1, 2}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_is_a_template_or_is_told_to_be_missing(tmp_path, name):
    reading = reading_of(tmp_path)
    at = Span(str(tmp_path / "suite.eval.yaml"), 1, 1, 1, 2)
    assert reading.entries(node_of([{"include": name}], at), reading).value == ()
    assert reading.report.failed
