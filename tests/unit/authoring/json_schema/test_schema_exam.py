"""The schema of `triggering:` agrees with what is read."""

import json

import pytest
from jsonschema import Draft202012Validator

from agentv.app.authored.reference import schema_text

CHECK = Draft202012Validator(json.loads(schema_text("exam")))
CASES = [{"name": "a", "inputs": {"x": "y"}, "rubric": "Is kind"}]


def is_right(value):
    return CHECK.is_valid({"triggering": value, "cases": CASES})


@pytest.mark.parametrize(
    "value",
    [
        "queries.json",
        [{"query": "x", "should_trigger": True, "x-why": "near"}],
        {"should_trigger": ["x", 3], "should_not_trigger": None, "runs": 3, "threshold": 0.4, "catalogue": False},
        {"queries": "queries.json", "runs": None, "x-note": 1},
        {"queries": [{"query": "x", "should_trigger": False}], "should_not_trigger": ["y"]},
    ],
)
def test_what_is_read_is_right(value):
    assert is_right(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        {},
        ["x"],
        [{"query": "x", "should_trigger": True, "runs": 3}],
        [{"query": "", "should_trigger": True}],
        [{"query": "x", "should_trigger": "yes"}],
        {"should_trigger": "x"},
        {"should_triger": ["x"]},
        {"should_trigger": ["x"], "runs": 0},
        {"should_trigger": ["x"], "threshold": 2},
        {"should_trigger": ["x"], "threshold": "{{ share }}"},
    ],
)
def test_what_is_refused_is_wrong(value):
    assert not is_right(value)
