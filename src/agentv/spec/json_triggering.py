"""`triggering:` of an exam as JSON Schema: what `triggering` reads, said to an editor."""

from __future__ import annotations

from agentv.spec.json_kinds import FREE_KEYS, NAME, Schema, object_of, properties_of
from agentv.spec.trigger_queries import AuthoredQuery, AuthoredTriggering

_QUERY: Schema = {"type": ["string", "number", "boolean"], "pattern": r"\S"}
_TEXTS: Schema = {"anyOf": [{"type": "array", "items": _QUERY}, {"type": "null"}]}


def triggering_schema() -> Schema:
    """A mapping, a list of queries, or the path of a file that holds one."""
    listed: Schema = {"type": "array", "items": object_of(AuthoredQuery), "minItems": 1}
    unread = {"should_trigger": _TEXTS, "should_not_trigger": _TEXTS, "queries": {"anyOf": [NAME, listed]}}
    some = [{"required": [key]} for key in unread]
    mapping: Schema = {
        "type": "object",
        "properties": properties_of(AuthoredTriggering, unread),
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        "anyOf": some,
    }
    return {"anyOf": [NAME, listed, mapping]}
