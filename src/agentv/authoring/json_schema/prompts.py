"""The JSON Schema of `prompts:` (SPEC section 3)."""

from __future__ import annotations

from agentv.authoring.fields.json_kinds import FREE_KEYS, NAME, Schema, needed, properties_of
from agentv.authoring.fields.schema import AuthoredPrompt
from agentv.authoring.json_schema.messages import MESSAGES
from agentv.authoring.source.spellings import CASE, SUITE

_TEXTS = ("prompt", "raw", "messages", "file", "path")
"""Keys of a prompt that say what it asks."""

PROMPTS: Schema = {
    "if": {"type": "array"},
    "then": {"minItems": 1, "items": {"$ref": "#/$defs/prompt"}},
    "else": {"$ref": "#/$defs/prompt"},
}


def prompt_defs() -> dict[str, Schema]:
    """One prompt: a text or a path, a list of messages, or an object."""
    schema: Schema = {"if": {"type": "array"}, "then": MESSAGES, "else": NAME}
    named: Schema = {
        "type": "object",
        "properties": properties_of(AuthoredPrompt, {"prompt": schema}),
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        "anyOf": [
            *({"required": [key], "properties": {one: False for one in _TEXTS if one != key}} for key in _TEXTS),
            {"required": ["id"], "properties": dict.fromkeys(_TEXTS, False)},  # the id is where the prompt is
        ],
    }
    return {"prompt": {"if": {"type": "object"}, "then": named, "else": schema}}


def input_or_prompts() -> Schema:
    """The keywords that ask every case for its input, unless the suite has prompts."""
    case: Schema = {"type": "object", "not": {"required": ["include"]}}
    schema: Schema = {"items": {"if": case, "then": needed([[*CASE.spelled("input"), "turns"]])}}
    return {
        "if": {"required": ["prompts"]},
        "else": {"patternProperties": {f"^(?:{'|'.join(SUITE.spelled('tests'))})$": schema}},
    }
