"""JSON Schemas as Anthropic's structured outputs take them."""

from __future__ import annotations

from agentv.targets.anthropic.schemas import accepted


def test_what_the_api_takes_stays_as_it_is():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x", "y"]},
            "b": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
        "$defs": {"c": {"const": 1}},
    }
    assert accepted(schema) == schema


def test_what_it_refuses_is_told_in_words():
    assert accepted({"type": "number", "description": "points", "minimum": 0, "maximum": 1}) == {
        "type": "number",
        "description": "points (minimum: 0, maximum: 1)",
    }
    assert accepted({"type": "array", "minItems": 1, "maxItems": 3}) == {
        "type": "array",
        "minItems": 1,
        "description": "maxItems: 3",
    }
    assert accepted({"type": "array", "minItems": 2}) == {"type": "array", "description": "minItems: 2"}


def test_a_property_of_such_a_name_is_no_keyword():
    schema = {"type": "object", "properties": {"minimum": {"type": "string", "maxLength": 3}}}
    assert accepted(schema)["properties"] == {"minimum": {"type": "string", "description": "maxLength: 3"}}


def test_several_types_become_alternatives():
    found = accepted({"type": ["string", "null"], "maxLength": 9, "description": "why"})
    assert found == {
        "description": "why",
        "anyOf": [{"type": "string", "description": "maxLength: 9"}, {"type": "null"}],
    }


def test_alternatives_are_looked_into():
    found = accepted({"oneOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    assert found == {"anyOf": [{"type": "integer", "description": "minimum: 1"}, {"type": "null"}]}
