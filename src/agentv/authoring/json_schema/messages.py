"""The JSON Schema of `input`, `expected_output` and the messages in them (SPEC section 5)."""

from __future__ import annotations

from agentv.authoring.fields.json_kinds import FREE_KEYS, NAME, PLACEHOLDER, TEXT, Schema
from agentv.model.values.message import ROLES

MESSAGES: Schema = {"$ref": "#/$defs/messages"}

_MESSAGE: Schema = {"$ref": "#/$defs/message"}
_FILLED: Schema = {"pattern": r"\S", "minItems": 1, "minProperties": 1}
"""Holds something, whatever it is."""

_BLOCKS: dict[str, Schema] = {
    "text": {"description": "the text", "not": {"type": "null"}},
    "file": {"description": "the path of a file; the path is included in the message", **NAME},
    "image": {"description": "the path or URL of a picture", **NAME},
}


def _block(kind: str) -> Schema:
    return {
        "properties": {"type": {"const": kind}, "value": _BLOCKS[kind]},
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        "required": ["type", "value"],
    }


MESSAGE_DEFS: dict[str, Schema] = {
    "messages": {
        "description": "a text, an object, a message, or a list of messages",
        "if": {"type": "array"},
        "then": {"minItems": 1, "items": {"if": {"type": "string"}, "then": PLACEHOLDER, "else": _MESSAGE}},
        "else": {
            "if": {"type": "object"},
            "then": {"minProperties": 1, "if": {"required": ["role"]}, "then": _MESSAGE},
            "else": {**TEXT, "pattern": r"\S"},
        },
    },
    "message": {
        "type": "object",
        "properties": {
            "role": {"anyOf": [{"enum": list(ROLES)}, PLACEHOLDER]},
            "content": {
                "description": "a text, an object, or a list of blocks",
                "if": {"type": "array"},
                "then": {"items": {"$ref": "#/$defs/block"}},
            },
            "name": {"description": "of the speaker", **TEXT},
            "tool_calls": {
                "description": "the tool calls of an assistant message",
                "anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "null"}, PLACEHOLDER],
            },
        },
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        "required": ["role"],
        "allOf": [
            {
                "if": {"required": ["tool_calls"]},
                "else": {"required": ["content"], "properties": {"content": {"not": {"type": "null"}}}},
            },
            {"if": {"properties": {"role": {"const": "user"}}}, "then": {"properties": {"content": _FILLED}}},
        ],
    },
    "block": {
        "if": {"type": "object"},
        "then": {"anyOf": [*map(_block, _BLOCKS), {"properties": {"type": PLACEHOLDER}, "required": ["type"]}]},
        "else": {"type": "string"},
    },
}
