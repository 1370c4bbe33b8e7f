"""The context of an assertion as a mapping, by promptfoo's names."""

from __future__ import annotations

import pickle
from copy import copy, deepcopy
from dataclasses import replace

import pytest

from agentv.model.run.context import AssertionContext, for_user_code
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


def test_a_copy_for_user_code_shares_nothing_that_it_may_change():
    shared = replace(CONTEXT, vars={"list": [{"a": 1}], "pair": (1, [2])}, env={"E": "1"}, value=["v"])
    before = repr(shared)
    payload = deepcopy(shared.payload)
    made = for_user_code(shared)
    assert made == shared
    assert made.payload == payload
    assert made["vars"] == shared["vars"]
    assert made.vars["pair"] == (1, [2])
    made.vars["list"][0]["a"] = 2
    made.vars["pair"][1].append(3)
    made.metadata["m"] = made.config["k"] = made.env["E"] = made.trace["messages"] = made.payload["output"] = "other"
    made["vars"]["x"] = made.value[:] = "o"
    assert repr(shared) == before
    assert shared.payload == payload
    assert made.vars["list"] == [{"a": 2}], "the copy is one and the same"


def test_a_copy_for_user_code_copies_what_is_read_and_no_more():
    made = for_user_code(CONTEXT, {"mine": [1]})
    assert not {"vars", "metadata", "config"} & vars(made).keys()
    assert (made.output, made.config) == ("said", {"mine": [1]})
    assert not {"vars", "metadata"} & vars(made).keys()
    again = for_user_code(made)
    again.config["mine"].append(2)
    assert (made.config, again.vars) == ({"mine": [1]}, {"x": 1})
    assert replace(made, output="other") == replace(CONTEXT, output="other", config={"mine": [1]})
    assert copy(made).vars == pickle.loads(pickle.dumps(made)).vars == {"x": 1}
    assert AssertionContext((), None).vars == {}
