"""The context of an assertion as a mapping with promptfoo's names."""

import pytest

from agentv.model.run.context import AssertionContext
from agentv.model.values.message import Message
from agentv.model.values.response import STRUCTURED
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage

CONTEXT = AssertionContext(
    (Message("user", "ask"),),
    "said",
    metadata={"of": "case", "m": 1},
    vars={"x": 1},
    config={"k": 2},
    token_usage=TokenUsage(2, 3, 5, 1),
    cost_usd=0.5,
    duration_ms=7.0,
    response_metadata={"of": "target", "r": 3},
    case_id="a",
    target="mine",
    context=(RetrievedText("a text"),),
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("prompt", "ask"),
        ("vars", {"x": 1}),
        ("config", {"k": 2}),
        ("test", {"vars": {"x": 1}, "metadata": {"of": "case", "m": 1}, "description": "a"}),
        ("metadata", {"of": "case", "m": 1, "r": 3}),
        ("provider", {"id": "mine", "label": "mine"}),
        ("output", "said"),
        ("context", ["a text"]),
        ("cost_usd", 0.5),
    ],
)
def test_its_keys_are_promptfoos_and_those_of_the_wire_object(key, value):
    assert CONTEXT[key] == CONTEXT.get(key) == value
    assert key in CONTEXT
    assert key in list(CONTEXT)
    assert dict(CONTEXT)[key] == value


def test_the_response_is_there_as_the_provider_gave_it():
    assert CONTEXT["providerResponse"] == {
        "output": "said",
        "tokenUsage": {"total": 5, "prompt": 2, "completion": 3, "cached": 1},
        "cost": 0.5,
        "latencyMs": 7.0,
        "finishReason": None,
        "metadata": {"of": "target", "r": 3},
        "context": ["a text"],
    }
    assert AssertionContext((), "a")["providerResponse"]["tokenUsage"] is None


def test_what_is_not_there_is_missing():
    assert "nothing" not in CONTEXT
    assert CONTEXT.get("nothing") is None
    assert CONTEXT.get("nothing", 7) == 7
    with pytest.raises(KeyError):
        CONTEXT["nothing"]


def test_attributes_stay_what_they_are():
    assert CONTEXT.metadata == {"of": "case", "m": 1}
    assert CONTEXT.vars == {"x": 1}


@pytest.mark.parametrize(
    ("known", "value"),
    [
        ({}, '{"a": 1}'),
        ({"response_metadata": {STRUCTURED: True}}, {"a": 1}),
        ({"response_metadata": {STRUCTURED: True}, "answered": "before"}, '{"a": 1}'),
        ({"value": [1]}, [1]),
        ({"value": False}, False),
    ],
)
def test_code_grades_the_value_where_the_answer_is_one(known, value):
    assert AssertionContext((), '{"a": 1}', **known).graded_value == value
