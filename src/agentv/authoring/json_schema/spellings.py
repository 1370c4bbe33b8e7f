"""The JSON Schema of a mapping with all its spellings: the older ones and older places are marked as deprecated."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentv.authoring.fields.agentv.spellings import RUN, Spellings
from agentv.authoring.fields.json_kinds import FREE_KEYS, OLDER, Schema, spelled_once

OLDER_RUN: Mapping[str, Schema] = {
    "trials": {"$ref": "#/$defs/run/properties/repeat"},
    "timeout_ms": {"type": "number", "exclusiveMinimum": 0},
    "fail_on_error": {"type": ["boolean", "integer"], "minimum": 1},
}
"""Older keys of `run:` whose values mean something else → what they may hold."""

_RUN = {
    **{f"run.{key}": f"#/$defs/run/properties/{key}" for key in sorted(RUN.canonical)},
    **{f"run.{key}": f"#/$defs/run.{key}" for key in OLDER_RUN},
}
"""Keys of `run:` as other mappings name them → where their schema stands. `cache: false` is read, and no more of it."""


def spelled_mapping(
    properties: Mapping[str, Schema], spellings: Spellings, place: str, more: Mapping[str, Schema] | None = None
) -> Schema:
    """The schema of a mapping whose keys a table of spellings lists.

    Args:
        properties: canonical key → its schema.
        spellings: the table.
        place: location of the schema, for references to its own keys.
        more: further keys, and older ones whose values differ.

    """
    older = {key: _reference(canonical, key, place, spellings) for key, canonical in spellings.older.items()}
    known = {*properties, *older, *(more or {})}
    nested = {key: _nested(inner, place, known, spellings.not_yet) for key, inner in spellings.nested.items()}
    return {
        "type": "object",
        "properties": {**properties, **older, **(more or {}), **nested},
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
        **spelled_once(spellings.spelled(key) for key in properties),
    }


def older_spelling(canonical: str, schema: Schema) -> Schema:
    """The schema of an older spelling."""
    return {**schema, "description": f"older spelling of '{canonical}'", **OLDER}


def _reference(canonical: str, key: str, place: str, spellings: Spellings) -> Schema:
    reference = {"$ref": _RUN.get(canonical) or f"{place}/properties/{canonical}"}
    return reference if key in spellings.equal else older_spelling(canonical, reference)


def _nested(inner: Mapping[str, str], place: str, known: set[str], postponed: Collection[str]) -> Schema:
    """A block such as `execution:`, whose keys mean keys of the mapping around it or of its `run:`."""
    properties = {}
    for key, canonical in inner.items():
        if canonical in known:
            properties[key] = {"$ref": f"{place}/properties/{canonical}"}
        elif canonical in _RUN:
            properties[key] = {"$ref": _RUN[canonical]}
        elif canonical.removeprefix("run.") not in RUN.not_yet and canonical not in postponed:
            raise TypeError(f"'{key}' means '{canonical}', which is not declared")
    return {
        "description": "an older place of these keys",
        **OLDER,
        "type": ["object", "null"],
        "properties": properties,
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
    }
