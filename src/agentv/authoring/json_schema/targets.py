"""The JSON Schema of targets (SPEC section 12), and of any mapping with all its spellings.

Older spellings and older places of keys are marked as deprecated.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.json_kinds import (
    FREE_KEYS,
    NAME,
    OLDER,
    Schema,
    needed,
    object_of,
    properties_of,
    spelled_once,
    spellings_of,
)
from agentv.authoring.fields.names import SETTINGS
from agentv.authoring.fields.schema import AuthoredRetry, AuthoredTarget
from agentv.authoring.fields.spellings import RUN, Spellings
from agentv.authoring.fields.spellings import TARGET as KEYS
from agentv.authoring.targets.target import USE_TARGET
from agentv.registry.table import Registry
from agentv.registry.types import Provider

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


TARGET: Schema = {"$ref": "#/$defs/target"}
BY_ID: Schema = {"$ref": "#/$defs/target-by-id"}


def target_defs(providers: Registry[Provider]) -> dict[str, Schema]:
    """The definitions that every place of a target refers to.

    An unknown provider may be that of a plugin which is not installed here, or is broken: any keys do.
    """
    found = [one for name in providers.names if (one := providers.find(name)) is not None]
    common = spelled_mapping(properties_of(AuthoredTarget), KEYS, "#/$defs/target-keys", _flat())
    rules, by_id = ([rule for provider in found for rule in _rules(provider, key)] for key in ("provider", "id"))
    open_keys = {key: value for key, value in common.items() if key != "additionalProperties"}
    return {
        "target": {"if": {"type": "object"}, "then": {"$ref": "#/$defs/inline-target"}, "else": NAME},
        "target-keys": {
            **open_keys,
            "properties": {
                **common["properties"],
                "provider": {**common["properties"]["provider"], **_names(found, providers.not_yet)},
            },
        },
        "every-target": {"patternProperties": {f"^(?:{'|'.join(common['properties'])})$|^x-": True}},
        "target-by-id": _by_id(found),
        "inline-target": {
            "if": {"required": [USE_TARGET]},
            "then": _alias(common["properties"]),
            "else": {
                "if": BY_ID,
                "then": {"allOf": [_without_id(open_keys), *by_id]},
                "else": {"required": ["provider"], "allOf": [{"$ref": "#/$defs/target-keys"}, *rules]},
            },
        },
        **{f"provider.{provider.name}": _settings(provider) for provider in found},
    }


def _alias(common: Mapping[str, Schema]) -> Schema:
    """Another name of a target (AgentV); what else every target takes has no effect beside it."""
    own: Schema = {**NAME, "description": "the target that this is another name of"}
    properties = {**dict.fromkeys(common, True), "name": common["name"], USE_TARGET: own, "hooks": True}
    return {"properties": properties, "patternProperties": {"^x-": True}, "additionalProperties": False}


def _flat() -> dict[str, Schema]:
    """Keys of `retry` that may stand beside the others."""
    marks = {"description": "older place of a key of 'retry'", **OLDER}
    return {key: {**schema, **marks} for key, schema in properties_of(AuthoredRetry).items() if key in KEYS.older}


def _names(providers: Iterable[Provider], not_yet: Iterable[str]) -> Schema:
    unbuilt = "|".join(_escaped(name).replace("-", "[-_]") for name in sorted(not_yet))
    return {
        "anyOf": [
            {"enum": [provider.name for provider in providers]},
            {"type": "string", "not": {"pattern": f"^(?:{unbuilt})(?::|$)"}},
        ]
    }


def _by_id(providers: Iterable[Provider]) -> Schema:
    """A target whose `id` is its provider, for it has no other (newer AgentV)."""
    names = "|".join(_escaped(provider.name) for provider in providers)
    pattern: Schema = {"type": "string", "pattern": f"^(?:{names})(?::|$)"}
    return {"required": ["id"], "not": {"required": ["provider"]}, "properties": {"id": pattern}}


def _without_id(keys: Schema) -> Schema:
    """The keys of targets where `id` is no spelling of `name`."""
    once = {
        key: {"properties": {name: no for name, no in rule["properties"].items() if name != "id"}}
        for key, rule in keys.get("dependentSchemas", {}).items()
        if key != "id"
    }
    return {**keys, "dependentSchemas": once}


def _rules(provider: Provider, said_by: str) -> Iterable[Schema]:
    """What follows from `provider: NAME`, and what its settings must hold where nothing else fills them."""
    shape, name = shape_of(provider.settings), _escaped(provider.name)
    ours: Schema = {"properties": {said_by: {"pattern": f"^{name}(?::|$)"}}}
    yield {"if": ours, "then": {"$ref": f"#/$defs/provider.{provider.name}"}}
    if shape.required:
        alone: Schema = {"properties": {said_by: {"pattern": f"^{name}$"}}}
        missing = needed(_keys(spellings_of(shape, option)) for option in shape.required)
        yield {"if": {**alone, "not": {"required": ["config"]}}, "then": missing}


def _keys(spellings: list[str]) -> list[str]:
    return [*spellings, *(older for older, key in SETTINGS.items() if key in spellings and older not in spellings)]


def _settings(provider: Provider) -> Schema:
    """The settings of one provider, with the keys of every target. `config:`, if no setting, may hold them too."""
    own = object_of(provider.settings)
    place = f"#/$defs/provider.{provider.name}"
    older = {
        older: older_spelling(key, own["properties"][key])
        for older, key in SETTINGS.items()
        if key in own["properties"] and older not in own["properties"]
    }
    nested = {"config": {"description": "settings, nested as in newer AgentV versions", "$ref": place}}
    left_out = {"required", "allOf", "patternProperties", "additionalProperties"}
    allowed = {key: value for key, value in own.items() if key not in left_out}
    properties = {**nested, **own["properties"], **older}
    closed = {"allOf": [{"$ref": "#/$defs/every-target"}], "unevaluatedProperties": False}
    return {"description": provider.summary, **allowed, "properties": properties, **closed}


def _escaped(name: str) -> str:
    r"""A name in a pattern; JavaScript rejects `\-` outside brackets."""
    return re.escape(name).replace(r"\-", "-")
