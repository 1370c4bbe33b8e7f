"""The JSON Schema of messages, `assert:` lists, targets, and mappings with their older spellings.

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
    PLACEHOLDER,
    TEXT,
    Schema,
    mapping_of,
    needed,
    object_of,
    properties_of,
    spellings_of,
)
from agentv.authoring.fields.schema import AuthoredRetry, AuthoredSettings, AuthoredTarget
from agentv.authoring.fields.spellings import RUN, Spellings
from agentv.authoring.fields.spellings import TARGET as KEYS
from agentv.authoring.source.nearest import ASSERTION_TYPES, SETTINGS
from agentv.authoring.targets.target import USE_TARGET
from agentv.model.values.message import ROLES
from agentv.registry.types import AssertionType, Provider, Registry, summary_of

MESSAGES: Schema = {"$ref": "#/$defs/messages"}

_MESSAGE: Schema = {"$ref": "#/$defs/message"}
_FILLED: Schema = {"pattern": r"\S", "minItems": 1, "minProperties": 1}
"""Any value that is not empty."""

_BLOCKS: dict[str, Schema] = {
    "text": {"description": "the text", "not": {"type": "null"}},
    "file": {"description": "the path of a file; the path is included in the message", **NAME},
    "image": {"description": "the path or URL of a picture", **NAME},
}


_BLOCKS_BY_TYPE: list[Schema] = [
    {**mapping_of({"type": {"const": kind}, "value": value}), "required": ["type", "value"]}
    for kind, value in _BLOCKS.items()
]

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
        **mapping_of(
            {
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
            }
        ),
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
        "then": {"anyOf": [*_BLOCKS_BY_TYPE, {"properties": {"type": PLACEHOLDER}, "required": ["type"]}]},
        "else": {"type": "string"},
    },
}


_SETTINGS: Schema = {"$ref": "#/$defs/settings"}
_TYPE_NAMES: Schema = {"$ref": "#/$defs/type-names"}
_REFERENCE_TO_OPTIONS: Schema = {**OLDER, "$ref": "#/$defs/assertion-options"}
_OTHER_NAME: Schema = {"$ref": "#/$defs/other-name"}
_MAPPING: Schema = {"type": "object"}
_UNKNOWN = "no assertion type has this name"
_INCLUDE_NAME: Schema = {"description": "the name or path of a template", **NAME}
_TYPE_KEY = "the name of an assertion type"


def assertion_defs(
    types: Registry[AssertionType], replaceable: Collection[str], custom: Mapping[str, str] | None = None
) -> dict[str, Schema]:
    """The definitions to which every `assert:` list refers.

    Args:
        types: built-in types, and those of plugins.
        replaceable: types that a file of the project may replace, and that therefore accept any keys.
        custom: name of each custom type of the project → description; other names are rejected. None if the project is
            unknown: then only misspelt known names are rejected.
    """
    kinds = [one for name in types.names if (one := types.find(name)) is not None]
    strict = [kind for kind in kinds if kind.name not in {*replaceable, *(custom or ())}]
    settings = properties_of(AuthoredSettings)
    known = [*types.names, *ASSERTION_TYPES]
    described = {kind.name: summary_of(kind.options) for kind in kinds} | dict(custom or {})
    names = [*types.names, *(custom or ())]
    rules = [
        {
            "if": {"properties": {"type": {"$ref": f"#/$defs/spelled.{kind.name}"}}},
            "then": {"$ref": f"#/$defs/type.{kind.name}"},
        }
        for kind in strict
    ]
    named: Schema = {"anyOf": [{"enum": list(dict.fromkeys(names)), "errorMessage": _UNKNOWN}, _OTHER_NAME]}
    return {
        "assertions": {"type": "array", "items": {"$ref": "#/$defs/assertion"}},
        "assertion": _BY_FORM,
        "sentence": {**_SENTENCE, "not": {"pattern": spelled([*known, *types.not_yet])}},
        "include": _INCLUDE,
        "settings": {"properties": settings},
        "everywhere": {
            "properties": {"type": True, **settings, "options": _REFERENCE_TO_OPTIONS},
            "patternProperties": FREE_KEYS,
        },
        "assertion-options": {
            "description": "an older place of 'transform'",
            **OLDER,
            **mapping_of({"transform": settings["transform"]}),
        },
        "type-names": {
            "properties": {**{name: {"description": text} for name, text in described.items()}, **_OTHER_FORMS}
        },
        "typed": {"properties": {"type": {"description": _TYPE_KEY, **named}}, "allOf": [*rules, _SETTINGS]},
        "one-key": _one_key(strict, types, settings, custom),
        **{f"spelled.{kind.name}": {"type": "string", "pattern": _spelling(kind)} for kind in strict},
        "other-name": {"type": "string", "pattern": _accepted(types, custom), "patternErrorMessage": _UNKNOWN},
        "beside-a-type": {"pattern": _own_keys(settings), "patternErrorMessage": _UNKNOWN},
        **{f"type.{kind.name}": _options(kind, settings) for kind in kinds},
    }


_BY_FORM: Schema = {
    "if": {"type": "string"},
    "then": {"$ref": "#/$defs/sentence"},
    "else": {
        "type": "object",
        "if": {**_MAPPING, "required": ["include"]},
        "then": {"$ref": "#/$defs/include"},
        "else": {
            "if": {**_MAPPING, "required": ["type"]},
            "then": {"$ref": "#/$defs/typed"},
            "else": {"$ref": "#/$defs/one-key"},
        },
    },
}
_SENTENCE: Schema = {"description": "a sentence; a judge model decides whether it is true", **NAME}
_INCLUDE = mapping_of({"include": _INCLUDE_NAME})
_OTHER_FORMS: Mapping[str, Schema] = {"type": {"description": _TYPE_KEY}, "include": _INCLUDE_NAME}
"""First keys of an entry's other forms, for completion in an empty entry."""


def _one_key(
    strict: Iterable[AssertionType],
    types: Registry[AssertionType],
    settings: Iterable[str],
    custom: Mapping[str, str] | None,
) -> Schema:
    """The schema of one-key entries, `contains: text`, which have no other keys but those of every assertion."""
    own = _own_keys(settings)
    beside: Schema = {"$ref": "#/$defs/beside-a-type"}
    alone = [
        {
            "if": {"not": {"propertyNames": {"not": {"$ref": name}}}},
            "then": {"propertyNames": {"anyOf": [{"$ref": name}, beside]}},
        }
        for name in (f"#/$defs/spelled.{kind.name}" for kind in strict)
    ]
    known = spelled([*types.names, *ASSERTION_TYPES, *(custom or ())])
    return {
        "if": {"propertyNames": {"pattern": own}},
        "then": {**_TYPE_NAMES, "not": {}, "errorMessage": "an assertion needs a type"},
        "else": {
            "if": {"not": {"propertyNames": {"not": {"pattern": known}}}},
            "then": {
                **_SETTINGS,
                "patternProperties": {_spelling(kind): _lone_value(kind) for kind in strict},
                "allOf": alone,
            },
            "else": {"allOf": [_TYPE_NAMES, _SETTINGS], "propertyNames": {"anyOf": [beside, _OTHER_NAME]}},
        },
    }


def _own_keys(settings: Iterable[str]) -> str:
    return f"^(?:{'|'.join(settings)})$|^x-"


def _accepted(types: Registry[AssertionType], custom: Mapping[str, str] | None) -> str:
    """A pattern of the type names; if the project is unknown, also of other names that may be custom types."""
    known = [*types.names, *ASSERTION_TYPES]
    if custom is not None:
        return spelled([*known, *custom])
    return f"{spelled(known)}|^(?!{misspelt(known)}|{spelled(types.not_yet)})"


def _lone_value(kind: AssertionType) -> Schema:
    """The schema of a one-key entry's value: that of one option, a mapping of options, or null if none is required."""
    shape = shape_of(kind.options)
    options: Schema = {"$ref": f"#/$defs/type.{kind.name}"}
    short = kind.options.short
    value: Schema = {"$ref": f"{options['$ref']}/properties/{short.rstrip('_')}"} if short else {"type": "null"}
    if getattr(kind.options, "options_first", False):
        return {"anyOf": [options, value]}
    if not shape.takes_json:
        value = {"if": {"type": "object"}, "then": options, "else": value}
    return value if shape.required or not short else {"anyOf": [{"type": "null"}, value]}


def _options(kind: AssertionType, settings: Collection[str]) -> Schema:
    """The schema of a type's options and the keys that every assertion accepts."""
    options = object_of(kind.options)
    taken = options["properties"].keys() & settings
    if taken:
        raise TypeError(f"'{kind.name}' has options that every assertion takes: {sorted(taken)}")
    closed = {} if kind.options.extra_option is not None else {"unevaluatedProperties": False}
    own = {key: value for key, value in options.items() if key not in {"patternProperties", "additionalProperties"}}
    allowed = [*own.pop("allOf", []), {"$ref": "#/$defs/everywhere"}]
    return {"description": summary_of(kind.options), **own, "allOf": allowed, **closed}


def _spelling(kind: AssertionType) -> str:
    return spelled([kind.name, *(older for older, name in ASSERTION_TYPES.items() if name == kind.name)])


_SHORTEST = 5
"""Minimum length of a name whose misspellings are rejected: shorter ones are similar to too many words."""

_EXACT = 8
"""Maximum length of a name whose misspellings get exact patterns."""

_PART = 2
"""Length of the parts of longer names."""


def spelled(names: Iterable[str]) -> str:
    """A pattern of type names, with `_` or `-`, and with or without `not-`."""
    return f"^(?:not[-_])*(?:{'|'.join(map(_either_dash, sorted(names)))})$"


def misspelt(names: Iterable[str]) -> str:
    """A pattern of names with one misspelling: an extra, missing or wrong letter, or two swapped letters.

    The names themselves may match too.
    """
    slips = "|".join(
        _slip(name) if len(name) <= _EXACT else _part(name) for name in sorted(names) if len(name) >= _SHORTEST
    )
    return f"^(?:not[-_])*(?:{slips})$"


def _slip(name: str) -> str:
    """A pattern of a name with one misspelling, at its first letter or in the rest."""
    first, rest = _either_dash(name[:1]), name[1:]
    if not rest:
        return f".?|.{first}|{first}."
    changed = f"(?:.?|.{first}){_either_dash(rest)}"
    swapped = f"{_either_dash(rest[0])}{first}{_either_dash(rest[1:])}"
    return f"{first}(?:{_slip(rest)})|{changed}|{swapped}"


def _part(name: str) -> str:
    """A pattern of a long name with a misspelling in one part; shorter than that of `_slip`, and rarely wrong."""
    parts = [(name[:at], name[at : at + _PART], name[at + _PART :]) for at in range(0, len(name), _PART)]
    return "|".join(
        f"{_either_dash(before)}.{{{len(part) - 1},{len(part) + 1}}}{_either_dash(after)}"
        for before, part, after in parts
    )


def _either_dash(text: str) -> str:
    return re.sub(r"-", "[-_]", re.escape(text).replace(r"\-", "-"))


OLDER_RUN: Mapping[str, Schema] = {
    "trials": {"$ref": "#/$defs/run/properties/repeat"},
    "timeout_ms": {"type": "number", "exclusiveMinimum": 0},
    "fail_on_error": {"type": ["boolean", "integer"], "minimum": 1},
}
"""Older key of `run:` whose value has another meaning → schema of the value."""

_RUN = {
    **{f"run.{key}": f"#/$defs/run/properties/{key}" for key in sorted(RUN.canonical)},
    **{f"run.{key}": f"#/$defs/run.{key}" for key in OLDER_RUN},
}
"""Key of `run:` with its prefix, as tables of spellings name it → reference to its schema."""


def spelled_mapping(
    properties: Mapping[str, Schema], spellings: Spellings, place: str, more: Mapping[str, Schema] | None = None
) -> Schema:
    """The schema of a mapping with the keys of a table of spellings.

    Args:
        properties: canonical key → schema.
        spellings: the table.
        place: location of the schema, for references to its own keys.
        more: further keys, and older ones whose values differ.
    """
    older = {key: _reference(canonical, key, place, spellings) for key, canonical in spellings.older.items()}
    known = {*properties, *older, *(more or {})}
    nested = {key: _nested(inner, place, known, spellings.not_yet) for key, inner in spellings.nested.items()}
    return mapping_of({**properties, **older, **(more or {}), **nested})


def older_spelling(canonical: str, schema: Schema) -> Schema:
    """The schema of an older spelling."""
    return {**schema, "description": f"older spelling of '{canonical}'", **OLDER}


def _reference(canonical: str, key: str, place: str, spellings: Spellings) -> Schema:
    reference = {"$ref": _RUN.get(canonical) or f"{place}/properties/{canonical}"}
    return reference if key in spellings.equal else older_spelling(canonical, reference)


def _nested(inner: Mapping[str, str], place: str, known: set[str], postponed: Collection[str]) -> Schema:
    """The schema of a block such as `execution:`, with older places of keys of the outer mapping or its `run:`."""
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
        **mapping_of(properties),
        "type": ["object", "null"],
    }


TARGET: Schema = {"$ref": "#/$defs/target"}
BY_ID: Schema = {"$ref": "#/$defs/target-by-id"}


def target_defs(providers: Registry[Provider]) -> dict[str, Schema]:
    """The definitions to which every schema of a target refers.

    An unknown provider accepts any keys: it may come from a plugin that is broken or not installed here.
    """
    found = [one for name in providers.names if (one := providers.find(name)) is not None]
    marks = {"description": "older place of a key of 'retry'", **OLDER}
    common = spelled_mapping(
        properties_of(AuthoredTarget),
        KEYS,
        "#/$defs/target-keys",
        {key: {**schema, **marks} for key, schema in properties_of(AuthoredRetry).items() if key in KEYS.older},
    )
    rules, by_id = ([rule for provider in found for rule in _rules(provider, key)] for key in ("provider", "id"))
    open_keys = {key: value for key, value in common.items() if key != "additionalProperties"}
    unsupported = "|".join(_escaped(name).replace("-", "[-_]") for name in sorted(providers.not_yet))
    # newer AgentV: a target whose `id` names its provider has no `provider`
    by_name: Schema = {"type": "string", "pattern": f"^(?:{'|'.join(_escaped(one.name) for one in found)})(?::|$)"}
    return {
        "target": {"if": {"type": "object"}, "then": {"$ref": "#/$defs/inline-target"}, "else": NAME},
        "target-keys": {
            **open_keys,
            "properties": {
                **common["properties"],
                "provider": {
                    **common["properties"]["provider"],
                    "anyOf": [
                        {"enum": [provider.name for provider in found]},
                        {"type": "string", "not": {"pattern": f"^(?:{unsupported})(?::|$)"}},
                    ],
                },
            },
        },
        "every-target": {"patternProperties": {f"^(?:{'|'.join(common['properties'])})$|^x-": True}},
        "target-by-id": {"required": ["id"], "not": {"required": ["provider"]}, "properties": {"id": by_name}},
        "inline-target": {
            "if": {"required": [USE_TARGET]},
            "then": _alias(common["properties"]),
            "else": {
                "if": BY_ID,
                "then": {"allOf": [open_keys, *by_id]},
                "else": {"required": ["provider"], "allOf": [{"$ref": "#/$defs/target-keys"}, *rules]},
            },
        },
        **{f"provider.{provider.name}": _settings(provider) for provider in found},
    }


_ANYTHING: Schema = {}


def _alias(common: Mapping[str, Schema]) -> Schema:
    """The schema of an alias (AgentV's `use_target`); the other keys of a target have no effect in it."""
    own: Schema = {**NAME, "description": "the target that this is another name of"}
    return mapping_of({**dict.fromkeys(common, _ANYTHING), "name": common["name"], USE_TARGET: own, "hooks": _ANYTHING})


def _rules(provider: Provider, key: str) -> Iterable[Schema]:
    """The rules for targets of a provider: its settings, and which ones are required if nothing else sets them."""
    shape, name = shape_of(provider.settings), _escaped(provider.name)
    ours: Schema = {"properties": {key: {"pattern": f"^{name}(?::|$)"}}}
    yield {"if": ours, "then": {"$ref": f"#/$defs/provider.{provider.name}"}}
    if shape.required:
        alone: Schema = {"properties": {key: {"pattern": f"^{name}$"}}}
        missing = needed(_keys(spellings_of(shape, option)) for option in shape.required)
        yield {"if": {**alone, "not": {"required": ["config"]}}, "then": missing}


def _keys(spellings: list[str]) -> list[str]:
    return [*spellings, *(older for older, key in SETTINGS.items() if key in spellings and older not in spellings)]


def _settings(provider: Provider) -> Schema:
    """The schema of a provider's settings and the keys of every target. `config:` may contain the settings too."""
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
    return {"description": summary_of(provider.settings), **allowed, "properties": properties, **closed}


def _escaped(name: str) -> str:
    r"""The name escaped for a pattern; JavaScript rejects `\-` outside brackets."""
    return re.escape(name).replace(r"\-", "-")
