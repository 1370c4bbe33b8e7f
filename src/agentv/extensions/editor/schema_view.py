"""Lookups in a JSON Schema by a place in a file: the keys there, their descriptions and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from msgspec import Struct

from agentv.authoring.fields.json_kinds import Schema
from agentv.extensions.editor.cursor import ITEM

_DEPTH = 60
"""Maximum depth of nested schemas and references, for schemas that refer to themselves."""


class Described(Struct, frozen=True):
    """A key or a value with its description."""

    name: str
    text: str
    default: str = ""
    deprecated: bool = False


class SchemaView:
    """A schema that is searched by a place in a file."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self._validator = Draft202012Validator(schema)

    def keys(self, path: tuple[str, ...], data: Any) -> list[Described]:
        """The keys of a mapping, in the order of the schema.

        Args:
            path: path from the outermost mapping to this one.
            data: the file's data along the path, as far as known.
        """
        found: dict[str, Described] = {}
        for schema in self._at(path, data):
            for key, one in schema.get("properties", {}).items():
                if one is not False and (key not in found or not found[key].text):
                    found[key] = self._described(key, one)
        return list(found.values())

    def key(self, path: tuple[str, ...], data: Any, key: str) -> Described | None:
        """One key of a mapping, even a deprecated one; None if it is unknown."""
        data = _with_key(data, path, key)
        listed = next((one for one in self.keys(path, data) if one.name == key), None)
        if listed is not None:
            return listed
        for schema in self._at(path, data):
            for pattern, one in schema.get("patternProperties", {}).items():
                if isinstance(one, dict) and re.search(pattern, key):
                    return self._described(key, one)
        return None

    def values(self, path: tuple[str, ...], data: Any, key: str) -> list[str]:
        """The allowed values of a key; empty if the schema does not list them."""
        found: dict[str, None] = {}
        for schema in self._at((*path, key), _with_key(data, path, key)):
            if not schema.get("deprecated"):
                listed = schema.get("enum", ["true", "false"] if schema.get("type") == "boolean" else [])
                found |= dict.fromkeys(str(one) for one in listed)
        return list(found)

    def summary(self, definition: str) -> str:
        """The description of a definition, or ""."""
        text = self._root.get("$defs", {}).get(definition, {}).get("description", "")
        return str(text)

    def options(self, definition: str) -> list[Described]:
        """The keys of a definition."""
        schema = self._root.get("$defs", {}).get(definition)
        keys = {key: one for part in self._parts(schema, {}, 0) for key, one in part.get("properties", {}).items()}
        return [self._described(key, one) for key, one in keys.items() if isinstance(one, dict)]

    def _at(self, path: tuple[str, ...], data: Any) -> list[Schema]:
        """The schemas that apply at a place."""
        found = list(self._parts(self._root, data, 0))
        for step in path:
            inner = _inside(data, step)
            below = [part for schema in found for part in _steps(schema, step)]
            found = [part for schema in below for part in self._parts(schema, inner, 0)]
            data = inner
        return found

    def _parts(self, schema: Any, data: Any, depth: int) -> Iterator[Schema]:
        """A schema and those that apply together with it: its references, alternatives and conditions."""
        if not isinstance(schema, dict) or depth > _DEPTH:
            return
        yield schema
        if "$ref" in schema:
            yield from self._parts(self._resolved(schema["$ref"]), data, depth + 1)
        for keyword in ("allOf", "anyOf", "oneOf"):
            for one in schema.get(keyword, ()):
                yield from self._parts(one, data, depth + 1)
        if "if" in schema:
            holds = self._validator.evolve(schema=schema["if"]).is_valid(data)
            yield from self._parts(schema.get("then" if holds else "else"), data, depth + 1)

    def _resolved(self, reference: str) -> Any:
        place: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            if step:
                place = place[step]
        return place

    def _described(self, name: str, schema: Any) -> Described:
        text, default, deprecated = "", "", False
        for part in self._parts(schema, None, 0) if isinstance(schema, dict) else ():
            text = text or str(part.get("description", ""))
            default = default or (str(part["default"]) if "default" in part else "")
            deprecated = deprecated or bool(part.get("deprecated"))
            if text:
                break
        return Described(name, text, default, deprecated)


def _steps(schema: Mapping[str, Any], step: str) -> Iterator[Any]:
    """The subschemas of a key, or of a list's items."""
    if step == ITEM:
        yield schema.get("items")
        return
    if step in schema.get("properties", {}):
        yield schema["properties"][step]
    matching = [one for pattern, one in schema.get("patternProperties", {}).items() if re.search(pattern, step)]
    yield from matching
    if not matching and step not in schema.get("properties", {}):
        yield schema.get("additionalProperties")


def _inside(data: Any, step: str) -> Any:
    if step == ITEM:
        return data[0] if isinstance(data, list) and data else None
    return data.get(step) if isinstance(data, dict) else None


def _with_key(data: Any, path: tuple[str, ...], key: str) -> Any:
    """The data with a key of unknown value added at the end of a path."""
    if not path:
        return {**data, key: None} if isinstance(data, dict) else {key: None}
    inner = _with_key(_inside(data, path[0]), path[1:], key)
    return [inner] if path[0] == ITEM else {**data, path[0]: inner} if isinstance(data, dict) else {path[0]: inner}
