"""The JSON Schema of `input`, `expected_output` and the messages in them (SPEC section 5)."""

from __future__ import annotations

from agentv.model.message import ROLES
from agentv.spec.json_kinds import FREE_KEYS, TEXT, Schema

MESSAGES: Schema = {"$ref": "#/$defs/messages"}

_MESSAGE: Schema = {"$ref": "#/$defs/message"}
_STRUCTURED: Schema = {"type": "object", "minProperties": 1}
_BLOCKS = {
    "text": {"description": "the text"},
    "file": {"description": "the path of a file, which is shown under its path", "type": "string"},
    "image": {"description": "the path or the URL of a picture", "type": "string"},
}


def _block(kind: str, value: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {"type": {"const": kind}, "value": value},
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        "required": ["type", "value"],
    }


MESSAGE_DEFS: dict[str, Schema] = {
    "messages": {
        "description": "a text, an object, a message, or a list of messages",
        "if": {"type": "array"},
        "then": {"minItems": 1, "items": _MESSAGE},
        "else": {
            "if": {"type": "object"},
            "then": {"if": {"required": ["role"]}, "then": _MESSAGE, "else": _STRUCTURED},
            "else": {**TEXT, "pattern": r"\S"},
        },
    },
    "message": {
        "type": "object",
        "properties": {
            "role": {"enum": list(ROLES)},
            "content": {
                "description": "a text, an object, or a list of blocks",
                "if": {"type": "array"},
                "then": {"items": {"$ref": "#/$defs/block"}},
            },
            "name": {"description": "of who speaks"},
            "tool_calls": {"description": "the calls that an assistant's message makes"},
        },
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        "required": ["role"],
    },
    "block": {
        "if": {"type": "object"},
        "then": {"anyOf": [_block(kind, value) for kind, value in _BLOCKS.items()]},
        "else": {"type": "string"},
    },
}
