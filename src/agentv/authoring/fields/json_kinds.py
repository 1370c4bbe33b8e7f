"""JSON Schema (2020-12) for the declarations that `decode` reads, for editors.

Every kind that `decode` knows must be translated here; a kind without a translation raises TypeError. Rules in
`validate()` that concern several options are not in the schema; only `agentv validate` checks them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from agentv.authoring.fields.code_kinds import PromptCommand
from agentv.authoring.fields.decode import OptionsSchema, hints_of, shape_of, unwrapped
from agentv.model.suite.assertion import AssertionEntry, Transform
from agentv.model.values.values import Json
from agentv.registry import fields as declared

Schema: TypeAlias = dict[str, Any]

PLACEHOLDER: Schema = {"$ref": "#/$defs/placeholder"}
"""Alternative to every value that is not text, as a lone `{{ name }}` keeps the type of its value."""

PLACEHOLDER_DEF: Schema = {"description": "a placeholder: {{ name }}", "type": "string", "pattern": r"\{[{%]"}

ASSERTIONS: Schema = {"$ref": "#/$defs/assertions"}
FREE_KEYS: Schema = {"^x-": True}
OLDER: Schema = {"deprecated": True}
"""Annotation of older spellings."""

TEXT: Schema = {"type": ["string", "number", "boolean"]}
"""Text, for which numbers and booleans are accepted as written."""

NAME: Schema = {"type": "string", "pattern": r"\S"}
"""Text that must not be blank."""

LINES: Schema = {"type": "string", "pattern": r"^\s*file://\s*\S"}
"""Alternative to a list of texts: a file with one text per line."""

_WORD: Schema = {"type": "string"}
_COMMAND: Schema = {"anyOf": [NAME, {"type": "array", "items": TEXT, "minItems": 1}]}
_FUNCTION: Schema = {"type": "string", "pattern": r":[A-Za-z_][A-Za-z0-9_.]*\s*$"}

PLAIN: Mapping[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: _WORD,
    NoneType: {"type": "null"},
    Json: {},
    declared.Document: NAME,
    declared.LoadedJson: {},
    declared.LoadedSchema: {},
    declared.FunctionRef: _FUNCTION,
    declared.PythonSource: NAME,
    declared.JavaScriptSource: NAME,
    declared.Command: _COMMAND,
    declared.FileGlobs: _COMMAND,
    Transform: NAME,
}
MARKED: Mapping[type, Schema] = {
    declared.AsWritten: TEXT,
    declared.ExistingFile: _WORD,
    declared.ExistingDirectory: _WORD,
    declared.ExistingPath: _WORD,
    declared.NameOrDirectory: _WORD,
}
_VERBATIM = (declared.Verbatim, declared.CallTimeTemplate)
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})


def schema_for(annotation: Any, *, rendered: bool = True) -> Schema:
    """The schema of the values of an annotated type.

    Args:
        annotation: annotation of a field, one of those that `registry.fields` supports.
        rendered: whether placeholders are filled in before the value is read.

    Raises:
        TypeError: the type has no translation.
    """
    markers, _ = unwrapped(annotation)
    rendered = rendered and not any(isinstance(marker, _VERBATIM) for marker in markers)
    schema = _bare(annotation, rendered=rendered)
    return schema if not rendered or _takes_text(schema) else _any_of([schema, PLACEHOLDER])


def properties_of(cls: type, unread: Mapping[str, Schema] | None = None) -> dict[str, Schema]:
    """The schema of every spelling of every option of an options class. Older spellings are deprecated.

    Args:
        cls: the options class.
        unread: field → schema, for exactly those fields that are kept as nodes.

    Raises:
        TypeError: a field has no translation, or `unread` names another field.
    """
    unread = unread or {}
    hints = hints_of(cls)
    left = {rule.name for rule in shape_of(cls).rules.values() if rule.unread}
    if left != unread.keys():
        raise TypeError(f"{cls.__name__}: what {sorted(left ^ unread.keys())} may be is said in one place only")
    defaults = declared.options_of(cls)
    found: dict[str, Schema] = {}
    for key, rule in shape_of(cls).rules.items():
        body = unread[rule.name] if rule.name in unread else schema_for(hints[rule.name])
        doc = doc_of(hints[rule.name])
        if rule.older:
            found[key] = {"description": f"older spelling of '{rule.name.rstrip('_')}'", **OLDER, **body}
        else:
            found[key] = {**({"description": doc} if doc else {}), **_default(defaults[rule.name]), **body}
    return found


def mapping_of(properties: Mapping[str, Schema]) -> Schema:
    """The schema of a mapping with these keys, and `x-` keys, which are allowed everywhere."""
    return {
        "type": "object",
        "properties": dict(properties),
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
    }


def object_of(cls: type, unread: Mapping[str, Schema] | None = None) -> Schema:
    """The schema of a mapping with the options of a class; `unread` as for `properties_of`."""
    shape = shape_of(cls)
    return {
        **mapping_of(properties_of(cls, unread)),
        **needed(spellings_of(shape, name) for name in shape.required),
    }


def spellings_of(shape: OptionsSchema, name: str) -> list[str]:
    """Every spelling of an option's key, the canonical one first."""
    return [key for key, rule in shape.rules.items() if rule.name == name]


def needed(groups: Iterable[Sequence[str]]) -> Schema:
    """The schema keywords that require one key of each group."""
    listed = list(groups)
    alone = [group[0] for group in listed if len(group) == 1]
    choices = [{"anyOf": [{"required": [key]} for key in group]} for group in listed if len(group) > 1]
    return {**({"required": alone} if alone else {}), **({"allOf": choices} if choices else {})}


def doc_of(annotation: Any) -> str:
    """The declared description of an option."""
    return next((one.text for one in unwrapped(annotation)[0] if isinstance(one, declared.Doc)), "")


def _bare(annotation: Any, *, rendered: bool) -> Schema:
    markers, base = unwrapped(annotation)
    schema = dict(_base(base, markers, rendered=rendered))
    for marker in markers:
        if isinstance(marker, declared.Between):
            schema |= {"minimum": marker.low} if marker.low is not None else {}
            schema |= {"maximum": marker.high} if marker.high is not None else {}
        elif isinstance(marker, declared.Nonempty):
            schema = _nonempty(schema)
        elif isinstance(marker, declared.ValueAlias):
            older = "|".join(map(re.escape, marker.values))  # a pattern, so that editors do not suggest the values
            schema = {"anyOf": [schema, {"type": "string", "pattern": f"^(?:{older})$", **OLDER}]}
    return schema


def _base(base: Any, markers: Sequence[Any], *, rendered: bool) -> Schema:
    named = next((MARKED[type(marker)] for marker in markers if type(marker) in MARKED), PLAIN.get(base))
    if base is declared.PromptCode:
        named = {"anyOf": [NAME, object_of(PromptCommand)]}
    if named is not None:
        return named
    origin, arguments = get_origin(base), get_args(base)
    if origin in (Union, UnionType):
        return _any_of([_bare(member, rendered=rendered) for member in arguments])
    if origin is Literal and all(isinstance(choice, str) for choice in arguments):
        return {"enum": list(arguments)}
    if origin is tuple:
        return ASSERTIONS if arguments[0] is AssertionEntry else _array(schema_for(arguments[0], rendered=rendered))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = schema_for(arguments[1], rendered=rendered)
        return {"type": "object", **({"additionalProperties": inner} if inner else {})}
    if isinstance(base, type) and declared.is_declared(base):
        return object_of(base)
    raise TypeError(f"no JSON Schema is known for an option declared as {base!r}")


def _array(items: Schema) -> Schema:
    array: Schema = {"type": "array", "items": items}
    return {"anyOf": [array, LINES]} if items.get("type") == TEXT["type"] else array


def _any_of(members: Sequence[Schema]) -> Schema:
    """The union of several schemas. Plain types are merged into one schema, which editors display better."""
    if any(not member for member in members):
        return {}
    joined: Schema = {}
    types: list[str] = []
    for member in members:
        own = _types(member)
        rest = {key: value for key, value in member.items() if key != "type"}
        if not own or not set(own) <= _SCALARS or set(own) & set(types) or rest.keys() & joined.keys():
            return {"anyOf": [inner for member in members for inner in member.get("anyOf", [member])]}
        types += own
        joined |= rest
    return {"type": types if len(types) > 1 else types[0], **joined}


def _types(schema: Schema) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _nonempty(schema: Schema) -> Schema:
    """The schema without null and other empty values."""
    if schema == LINES:
        return schema
    keywords: Mapping[str, Schema] = {
        "string": {"pattern": r"\S"},
        "array": {"minItems": 1},
        "object": {"minProperties": 1},
    }
    if "anyOf" in schema:
        return {**schema, "anyOf": [_nonempty(member) for member in schema["anyOf"] if _types(member) != ["null"]]}
    types = [one for one in _types(schema) if one != "null"]
    filled = {key: value for one in types for key, value in keywords.get(one, {}).items()}
    return {**schema, **({"type": types if len(types) > 1 else types[0]} if types else {}), **filled}


def _takes_text(schema: Schema) -> bool:
    """Whether a schema already accepts any text with a placeholder."""
    if "anyOf" in schema:
        return any(_takes_text(member) for member in schema["anyOf"])
    return not schema or schema == ASSERTIONS or ("string" in _types(schema) and schema not in (_FUNCTION, LINES))


def _default(value: object) -> Schema:
    plain = isinstance(value, bool | int | float) or (isinstance(value, str) and value != "")
    return {"default": value} if plain else {}
