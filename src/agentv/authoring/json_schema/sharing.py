"""Sharing of equal parts of a JSON Schema: what stands in several places becomes one definition.

Without it, most of the schema would be the settings of providers and of judged assertions, each repeated some 20 times.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from agentv.authoring.fields.json_kinds import Schema

_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
"""Keywords whose values are mappings of schemas."""

_KEYED = ("properties", "patternProperties")
_LISTED = frozenset({"anyOf", "allOf", "oneOf"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "propertyNames"})
_KEYS = 3
"""Properties that are worth a definition for the mappings that have all of them."""

_LEAST = 64
"""Characters of a part that is worth a definition; the reference to it needs about half of that."""


def shared(schema: Schema, families: Iterable[str]) -> Schema:
    """The same schema, with one definition for each part that stands in it several times.

    Its own definitions keep their names, and properties that something refers to their places.

    Args:
        schema: with its `$defs`.
        families: what the names of definitions of mappings begin with that have many properties in common.
    """
    referred = set(_references(schema))
    for family in families:
        schema = {**schema, "$defs": _grouped(schema["$defs"], family, referred)}
    sharing = _Sharing(schema)
    whole = sharing.body(schema)
    return {**whole, "$defs": {**whole["$defs"], **sharing.definitions}}


class _Sharing:
    """Definitions of the parts that a schema repeats."""

    def __init__(self, schema: Schema) -> None:
        self.definitions: dict[str, Schema] = {}
        self._counts: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._count(schema)

    def body(self, schema: Schema) -> Schema:
        """A schema whose parts are references where they are repeated."""
        return {keyword: self._value(keyword, value) for keyword, value in schema.items()}

    def _count(self, schema: Schema) -> None:
        """Count the parts; what is inside a repeated one counts once, since it is going to stand in one place."""
        for keyword, value in schema.items():
            for part in _parts(keyword, value):
                text = _text(part)
                self._counts[text] += keyword != "$defs"
                if self._counts[text] <= 1:
                    self._count(part)

    def _value(self, keyword: str, value: Any) -> Any:
        if keyword == "$defs":
            return {name: self.body(part) for name, part in value.items()}
        if keyword in _NAMED:
            return {name: self._part(name, part) for name, part in value.items()}
        if keyword in _LISTED:
            return [self._part(keyword, part) for part in value]
        return self._part(keyword, value) if keyword in _SINGLE else value

    def _part(self, hint: str, part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        text = _text(part)
        if self._counts[text] < 2 or len(text) < _LEAST:
            return self.body(part)
        if text not in self._names:
            self._names[text] = name = self._free_name(hint)
            self.definitions[name] = {}  # takes its place before what it refers to
            self.definitions[name] = self.body(part)
        return {"$ref": f"#/$defs/{self._names[text]}"}

    def _free_name(self, hint: str) -> str:
        """`shared.KEY`, or `shared.KEY.2` where several keys of that name hold different things."""
        base = f"shared.{hint if hint.replace('_', '').isalnum() else 'keys'}"
        taken = sum(name == base or name.startswith(f"{base}.") for name in self.definitions)
        return f"{base}.{taken + 1}" if taken else base


def _grouped(definitions: Mapping[str, Schema], family: str, referred: Collection[str]) -> dict[str, Schema]:
    """The definitions, with what the same members of a family have in common moved to definitions of its own.

    They are closed by `unevaluatedProperties`, which sees what the definitions that they refer to allow.
    """
    owners: dict[tuple[str, str, str], list[str]] = {}
    for name, schema in definitions.items():
        if name.startswith(family):
            for keyword, key, part in _keys(schema):
                if f"#/$defs/{name}/{keyword}/{key}" not in referred:
                    owners.setdefault((keyword, key, _text(part)), []).append(name)
    groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for (keyword, key, _), names in owners.items():
        if len(names) > 1:
            groups.setdefault(tuple(names), []).append((keyword, key))
    found = dict(definitions)
    worth = [(names, keys) for names, keys in groups.items() if len(keys) >= _KEYS]
    for number, (members, keys) in enumerate(worth, 1):
        group = f"shared-by-{family}{number}"
        found[group] = _only(definitions[members[0]], keys)
        for name in members:
            rest = _only(
                found[name], [(keyword, key) for keyword, key, _ in _keys(found[name]) if (keyword, key) not in keys]
            )
            allowed = [*found[name].get("allOf", []), {"$ref": f"#/$defs/{group}"}]
            found[name] = {**{k: v for k, v in found[name].items() if k not in _KEYED}, **rest, "allOf": allowed}
    return found


def _keys(schema: Schema) -> Iterator[tuple[str, str, Any]]:
    for keyword in _KEYED:
        for key, part in schema.get(keyword, {}).items():
            yield keyword, key, part


def _only(schema: Schema, keys: Iterable[tuple[str, str]]) -> Schema:
    """The properties and patterns of a mapping that are listed."""
    found: Schema = {}
    for keyword, key in keys:
        found.setdefault(keyword, {})[key] = schema[keyword][key]
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _parts(keyword: str, value: Any) -> list[Schema]:
    """The schemas directly inside a keyword's value."""
    if keyword in _NAMED and isinstance(value, Mapping):
        inner = list(value.values())
    elif keyword in _LISTED:
        inner = value
    else:
        inner = [value] if keyword in _SINGLE else []
    return [part for part in inner if isinstance(part, dict)]


def _text(part: Schema) -> str:
    return json.dumps(part, sort_keys=True)
