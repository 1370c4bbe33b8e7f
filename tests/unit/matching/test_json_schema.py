import pytest

from agentv.matching.json_schema import Schema, files_of

D7 = "http://json-schema.org/draft-07/schema#"

MANY = {f"key{number}": {"type": "integer"} for number in range(600)}

VALUES = [
    ({"multipleOf": 0.01}, 19.99, True),
    ({"multipleOf": 0.01}, 19.995, False),
    ({"multipleOf": 0.1}, 0.3, True),
    ({"multipleOf": 0.01}, 1e308, True),
    ({"multipleOf": 1e-08}, 12391239123, True),
    ({"$schema": D7, "dependencies": {"a": ["b"]}}, {"a": 1}, False),
    ({"$schema": D7, "dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}, True),
    ({"$schema": D7, "items": [{"type": "string"}], "additionalItems": False}, ["a", 1], False),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}, 3, False),
    ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, 1.0, False),
    ({"type": "integer"}, 1.0, True),
    ({"$schema": "https://json-schema.org/draft/2019-09/schema", "dependentRequired": {"a": ["b"]}}, {"a": 1}, False),
    ({"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{"type": "string"}]}, [1], False),
    (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "#/$defs/a",
            "$defs": {"a": {"format": "date"}},
        },
        "31/12/2024",
        False,
    ),
    ({"$schema": D7, "properties": {"c": {"$ref": "#"}, "d": {"format": "date"}}}, {"c": {"d": "x"}}, False),
    ({"$schema": D7, "$ref": "#/definitions/a", "definitions": {"a": {"pattern": "^\\d+$"}}}, "12\n", False),
    ({"format": "email"}, "nobody", False),
    ({"format": "email"}, 3, True),
    ({"pattern": "^\\d+$"}, "١٢", False),
    ({"patternProperties": {"^\\d+$": {}}, "additionalProperties": False}, {"١": 1}, False),
    ({"patternProperties": {"^\\d+$": {}}, "unevaluatedProperties": False}, {"١": 1}, False),
    ({"patternProperties": {"^\\d+$": {}}, "unevaluatedProperties": False}, {"1": 1}, True),
    ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1}, True),
    ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1, "b": 2}, False),
    ({"allOf": [{"properties": MANY}], "unevaluatedProperties": False}, dict.fromkeys(MANY, 1), True),
    ({"$schema": "http://json-schema.org/draft-06/schema#", "propertyNames": {"pattern": "^\\w+$"}}, {"é": 3.0}, False),
    (
        {
            "$schema": "http://json-schema.org/draft-04/schema",
            "id": "http://x/y.json",
            "$ref": "#/definitions/q",
            "definitions": {"q": {"type": "string"}},
        },
        3,
        False,
    ),
    ({"$schema": D7, "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}}, {"a": 1}, False),
    ({"uniqueItems": True}, [1, True], True),
    ({"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x", "type": "string"}}}, 1, False),
    (
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "properties": {"a": {"$recursiveRef": "#"}},
            "additionalProperties": False,
        },
        {"a": {"b": 1}},
        False,
    ),
]

ISSUES = [
    ({"$schema": "https://example.com/mine"}, False, "declares 'https://example.com/mine', which is no known draft"),
    ({"$schema": D7, "type": "strnig"}, False, "not a valid JSON Schema (draft-07)"),
    ({"items": [{}]}, False, "not a valid JSON Schema (2020-12)"),
    ({"$schema": 3}, False, "not a valid JSON Schema (2020-12)"),
    ({"dependencies": {"a": ["b"]}}, True, "2020-12 ignores it"),
    ({"$schema": D7, "prefixItems": []}, True, "'prefixItems' is a keyword of 2020-12; draft-07 ignores it"),
    ({"$schema": D7, "$ref": "#", "minLength": 3}, True, "beside '$ref', draft-07 ignores 'minLength'"),
    ({"format": "e-mail"}, True, "'e-mail' is not known, and is not checked"),
    ({"pattern": r"\A"}, False, "means nothing in JavaScript's syntax"),
    ({"$ref": "http://x.y/z.json"}, False, "refers to nothing in this schema, and to no file"),
    ({"$ref": "#/$defs/none"}, False, "refers to nothing in this schema"),
    ({"propertys": {}}, True, "JSON Schema has no keyword 'propertys'"),
]


@pytest.mark.parametrize(("schema", "value", "valid"), VALUES)
def test_values(schema, value, valid):
    assert (Schema(schema).errors(value) == ()) is valid
    assert [issue.message for issue in Schema(schema).validate("value") if not issue.warning] == []


@pytest.mark.parametrize(("schema", "warning", "message"), ISSUES)
def test_what_is_wrong_with_a_schema(schema, warning, message):
    (issue,) = Schema(schema).validate("value")
    assert issue.warning is warning
    assert message in issue.message


FILES = {
    "/s/item.json": {
        "$schema": D7,
        "$id": "https://e.com/zzz/item.json",
        "dependencies": {"a": ["b"]},
        "properties": {"p": {"$ref": "../common/price.yaml#/definitions/p"}},
    },
    "/common/price.yaml": {"definitions": {"p": {"multipleOf": 0.01}}},
}


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$ref": "item.json"}},
        {"$id": "https://e.com/q/order.json", "items": {"$ref": "item.json"}},
        {"$schema": D7, "items": {"$ref": "./item.json#"}},
        {"$schema": D7, "$ref": "#/definitions/all", "definitions": {"all": {"items": {"$ref": "item.json"}}}},
    ],
)
def test_files_that_a_schema_refers_to(schema):
    base = "file:///s/order.json"
    found = Schema(schema, base=base, files=files_of(schema, base, FILES.get))
    assert list(found.validate("value")) == []
    assert found.errors([{"a": 1}]) == ("$[0]: 'b' is a dependency of 'a'",)
    assert found.errors([{"p": 0.005}]) == ("$[0].p: 0.005 is not a multiple of 0.01",)
    assert found.errors([{"p": 19.99}]) == ()
