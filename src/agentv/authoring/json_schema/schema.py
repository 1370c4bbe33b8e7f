"""The JSON Schema (2020-12) of eval files, targets files and templates, generated from the loader's declarations.

Editors use it for checks and completion. It accepts everything that the loader accepts; `agentv validate` also finds
what a schema cannot express, such as duplicate ids or a case that checks nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from agentv.authoring.cases.triggering import AuthoredQueries, AuthoredQuery, AuthoredTriggering
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.json_kinds import (
    ASSERTIONS,
    NAME,
    PLACEHOLDER_DEF,
    TEXT,
    Schema,
    mapping_of,
    needed,
    object_of,
    properties_of,
)
from agentv.authoring.fields.schema import (
    AuthoredCase,
    AuthoredDefaultTest,
    AuthoredExam,
    AuthoredExamCase,
    AuthoredExamDefaults,
    AuthoredExamJudge,
    AuthoredJudgeMinimums,
    AuthoredOptions,
    AuthoredPrompt,
    AuthoredRun,
    AuthoredSuite,
    AuthoredTemplate,
    AuthoredTurn,
)
from agentv.authoring.fields.spellings import CASE, DEFAULT_TEST, OPTIONS, RUN, SUITE, TEMPLATE, TURN
from agentv.authoring.fields.spellings import TARGET as TARGET_KEYS
from agentv.authoring.json_schema.entries import (
    BY_ID,
    MESSAGE_DEFS,
    MESSAGES,
    OLDER_RUN,
    TARGET,
    assertion_defs,
    older_spelling,
    spelled_mapping,
    target_defs,
)
from agentv.authoring.prompt_library import meta_schema
from agentv.registry.extensions import CASE_KEYS, SCHEMA_DEFS, SUITE_KEYS, loaded, missing, registered
from agentv.registry.types import AssertionType, Provider, Registry

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Vocabulary(Struct, frozen=True):
    """Names that files may use.

    Attributes:
        replaceable: built-in assertion types that a file of the project may replace; they accept any keys.
        custom: name of each custom assertion type of the project → description; None if the project is unknown.
    """

    assertions: Registry[AssertionType]
    providers: Registry[Provider]
    replaceable: Collection[str] = ()
    custom: Mapping[str, str] | None = None


def json_schema(kind: str, words: Vocabulary) -> Schema:
    """The schema for editors of one kind of file.

    Args:
        kind: a key of `KINDS`.
        words: names that files may use.

    Raises:
        TypeError: a declaration cannot be translated.
    """
    found: Schema = older_as_patterns(full_schema(kind, words))
    return found


def full_schema(kind: str, words: Vocabulary) -> Schema:
    """The schema of one kind of file with every key in `properties`, including older ones, and its description.

    Raises:
        TypeError: a declaration cannot be translated.
    """
    title, body, defs = KINDS[kind](words)
    return {"$schema": DIALECT, "title": title, **body, "$defs": defs}


_Document = tuple[str, Schema, dict[str, Schema]]


def _eval_file(words: Vocabulary) -> _Document:
    name = {"$ref": "#/properties/name"}
    body = spelled_mapping(
        properties_of(AuthoredSuite, {**_SUITE_VALUES, **_of_extensions(SUITE_KEYS, AuthoredSuite)}),
        SUITE,
        "#",
        {
            **{key: older_spelling("name", name) for key in ("dataset", "suite")},  # beside `name` they are metadata
            "$schema": {"description": "for editors", "type": "string"},
        },
    )
    defs = {
        "case": {
            **spelled_mapping(
                properties_of(AuthoredCase, {**_CASE_VALUES, **_of_extensions(CASE_KEYS, AuthoredCase)}),
                CASE,
                "#/$defs/case",
            ),
            **needed([CASE.spelled("id")]),
        },
        "turn": {
            **spelled_mapping(properties_of(AuthoredTurn, _TURN_VALUES), TURN, "#/$defs/turn"),
            **needed([TURN.spelled("input")]),
        },
        "options": spelled_mapping(properties_of(AuthoredOptions, _OPTIONS_VALUES), OPTIONS, "#/$defs/options"),
        "included-tests": _INCLUDED_TESTS,
        "default_test": spelled_mapping(
            properties_of(AuthoredDefaultTest, _DEFAULT_TEST_VALUES), DEFAULT_TEST, "#/$defs/default_test"
        ),
        **prompt_defs(),
        **triggering_defs(AuthoredTriggering),
        **{key: one for name in registered(SCHEMA_DEFS) for key, one in loaded(SCHEMA_DEFS, name)().items()},
        **{f"run.{key}": schema for key, schema in OLDER_RUN.items()},
        "run": spelled_mapping(properties_of(AuthoredRun), RUN, "#/$defs/run", _RUN_VALUES),
        **_shared(words),
    }
    return (
        "agentv eval file",
        {**body, **needed([[*SUITE.spelled("tests"), "triggering", "activation"]]), **input_or_prompts()},
        defs,
    )


def _of_extensions(kind: str, cls: type) -> dict[str, Schema]:
    """Schemas of the keys that extensions read; a key whose extension is missing allows no value."""
    unread = {key for key, rule in shape_of(cls).rules.items() if rule.unread}
    lacked: dict[str, Schema] = {key: {"not": {}} for key in unread & {*missing(kind)}}
    return {**lacked, **{key: loaded(kind, key) for key in unread & registered(kind).keys()}}


def _targets_file(words: Vocabulary) -> _Document:
    spelled = TARGET_KEYS.spelled("name")
    named: Schema = {"if": BY_ID, "then": needed([[key for key in spelled if key != "id"]]), "else": needed([spelled])}
    entry = {"allOf": [{"$ref": "#/$defs/inline-target"}, named]}
    listed: Schema = {"type": "array", "items": entry}
    names = dict.fromkeys(("target", "provider", "judge", "grader", "user"), NAME)
    defaults = {"type": "object", "properties": names, "additionalProperties": False}
    keys = {"$schema": NAME, "schema": NAME, "targets": listed, "providers": listed, "defaults": defaults}
    body = {"if": {"type": "array"}, "then": listed, "else": mapping_of(keys)}
    return "agentv targets file", body, {"placeholder": PLACEHOLDER_DEF, **target_defs(words.providers)}


def _template(words: Vocabulary) -> _Document:
    values: dict[str, Schema] = {"assert_": {**ASSERTIONS, "minItems": 1}, "name": TEXT, "description": TEXT}
    properties = properties_of(AuthoredTemplate, values)
    body = {**spelled_mapping(properties, TEMPLATE, "#"), **needed([TEMPLATE.spelled("assert")])}
    return "agentv assertion template", body, _shared(words)


def _exam(words: Vocabulary) -> _Document:
    case = object_of(AuthoredExamCase, _EXAM_CASE_VALUES)
    given = needed([["inputs", "inputs_from"], ["assert", "assertions", "rubric"]])
    defs = {
        **_shared(words),
        "defaults": object_of(AuthoredExamDefaults, _DEFAULTS_VALUES),
        "judge": {**object_of(AuthoredExamJudge, _JUDGE_VALUES), "minProperties": 1},
        "case": {**case, "required": ["name"], **given},
        **triggering_defs(AuthoredQueries),
    }
    body = {**object_of(AuthoredExam, _EXAM_VALUES), "required": ["cases"]}
    return "agentv exam of a prompt: eval.yml", body, defs


KINDS: Mapping[str, Callable[[Vocabulary], _Document]] = {
    "eval": _eval_file,
    "targets": _targets_file,
    "template": _template,
    "meta": lambda _: ("agentv prompt: meta.yaml", meta_schema(), {}),
    "exam": _exam,
}
"""The kinds of files that have a schema."""


def _shared(words: Vocabulary) -> dict[str, Schema]:
    return {
        "placeholder": PLACEHOLDER_DEF,
        **MESSAGE_DEFS,
        **target_defs(words.providers),
        **assertion_defs(words.assertions, words.replaceable, words.custom),
    }


_OBJECT: Schema = {"type": "object"}
_OBJECT_OR_NOTHING: Schema = {"type": ["object", "null"]}
_TAGS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}, _OBJECT]}
_NOTHING: Schema = {"type": "null"}
_OPTIONS: Schema = {"anyOf": [{"$ref": "#/$defs/options"}, _NOTHING]}
_ID: Schema = {"type": ["string", "number", "boolean"], "pattern": r"\S"}

_TEXTS = ("prompt", "raw", "messages", "file", "path")
"""Keys of a prompt that contain or name its text."""

PROMPTS: Schema = {
    "if": {"type": "array"},
    "then": {"minItems": 1, "items": {"$ref": "#/$defs/prompt"}},
    "else": {"$ref": "#/$defs/prompt"},
}

_SUITE_VALUES: Mapping[str, Schema] = {
    "author": {},
    "tags": {"anyOf": [*_TAGS["anyOf"], _NOTHING]},
    "requires": {},
    "targets": {"anyOf": [TARGET, {"type": "array", "items": TARGET}, _NOTHING]},
    "judge": {
        "if": {"type": "object", "anyOf": [{"required": ["min_tpr"]}, {"required": ["min_tnr"]}]},
        "then": {"properties": properties_of(AuthoredJudgeMinimums)},
        "else": TARGET,
    },
    "prompts": PROMPTS,
    "prompt": {"$ref": "#/$defs/prompt"},
    "triggering": {"$ref": "#/$defs/triggering"},
    "input": {"anyOf": [MESSAGES, _NOTHING]},
    "input_files": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}]},
    "assert_": ASSERTIONS,
    "default_test": {
        "if": {"type": "string"},
        "then": {"pattern": r"^\s*file://"},
        "else": {"anyOf": [{"$ref": "#/$defs/default_test"}, _NOTHING]},
    },
    "preprocessors": {"anyOf": [{"$ref": "#/$defs/type.llm-rubric/properties/preprocessors"}, _NOTHING]},
    "run": {"$ref": "#/$defs/run"},
    "env": {"type": "object", "additionalProperties": TEXT},
    "tests": {
        "if": {"type": "string"},
        "then": NAME,
        "else": {
            "type": "array",
            "minItems": 1,
            "items": {
                "if": {"type": "string"},
                "then": NAME,
                "else": {
                    "if": {"type": "object", "required": ["include"]},
                    "then": {"$ref": "#/$defs/included-tests"},
                    "else": {"$ref": "#/$defs/case"},
                },
            },
        },
    },
}
"""Schemas of a suite's keys that are declared without a type."""

_INCLUDED_TESTS: Schema = {
    "description": "the cases of another file",
    **mapping_of({"include": NAME, "type": {"const": "tests"}}),
    "required": ["include"],
}

_CASE_VALUES: Mapping[str, Schema] = {
    "criteria": {"type": [*TEXT["type"], "null"]},
    "input": MESSAGES,
    "input_files": _SUITE_VALUES["input_files"],
    "options": _OPTIONS,
    "expected_output": {"anyOf": [MESSAGES, _NOTHING, {"type": "array", "maxItems": 0}]},
    "vars": _OBJECT_OR_NOTHING,
    "assert_": ASSERTIONS,
    "rubrics": {"$ref": "#/$defs/type.llm-rubric/properties/value"},
    "tags": _TAGS,
    "target": TARGET,
    "judge": TARGET,
    "turns": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/turn"}},
    "depends_on": {"anyOf": [_ID, {"type": "array", "items": _ID}]},
}

_TURN_KEYS = ("input", "criteria", "expected_output", "assert_")
_TURN_VALUES: Mapping[str, Schema] = {key: _CASE_VALUES[key] for key in _TURN_KEYS}

_DEFAULT_TEST_VALUES: dict[str, Schema] = {
    "vars": _OBJECT_OR_NOTHING,
    "metadata": _OBJECT_OR_NOTHING,
    "assert_": ASSERTIONS,
    "options": _OPTIONS,
}

_OPTIONS_VALUES: Mapping[str, Schema] = {"judge": TARGET}

_RUN_REPLACEMENTS: Mapping[str, str] = {"trials": "repeat", "timeout_ms": "timeout_s", "fail_on_error": "max_errors: 1"}
"""Older key of `run:` whose value has another meaning → what to write instead."""

_RUN_VALUES: Mapping[str, Schema] = {
    key: older_spelling(written, {"$ref": f"#/$defs/run.{key}"}) for key, written in _RUN_REPLACEMENTS.items()
}


def older_as_patterns(schema: Any) -> Any:
    """The schema with deprecated properties moved to `patternProperties`, with one pattern for all equal ones."""
    if isinstance(schema, list):
        return [older_as_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found: Schema = {key: one if key in _PLAIN else older_as_patterns(one) for key, one in schema.items()}
    properties = found.get("properties", {})
    pairs = properties.items() if isinstance(properties, dict) else ()
    older = {key: one for key, one in pairs if isinstance(one, dict) and one.get("deprecated") is True}
    if older:
        found["properties"] = {key: one for key, one in properties.items() if key not in older}
        keys: dict[str, list[str]] = {}
        for key, one in older.items():
            keys.setdefault(json.dumps(one, sort_keys=True), []).append(key)
        found["patternProperties"] = {
            **{f"^(?:{'|'.join(map(re.escape, alike))})$": older[alike[0]] for alike in keys.values()},
            **found.get("patternProperties", {}),
        }
    return found


_PLAIN = frozenset({"enum", "const", "default", "required"})
"""Keywords whose values are not schemas."""


def prompt_defs() -> dict[str, Schema]:
    """The definition of a prompt: a text or path, a list of messages, or an object."""
    schema: Schema = {"if": {"type": "array"}, "then": MESSAGES, "else": NAME}
    named: Schema = {
        **mapping_of(properties_of(AuthoredPrompt, {"prompt": schema})),
        "anyOf": [
            *({"required": [key], "properties": {one: False for one in _TEXTS if one != key}} for key in _TEXTS),
            {"required": ["id"], "properties": dict.fromkeys(_TEXTS, False)},  # the id is the prompt's path
        ],
    }
    return {"prompt": {"if": {"type": "object"}, "then": named, "else": schema}}


def input_or_prompts() -> Schema:
    """Keywords that require an input in every case, unless the suite has prompts."""
    case: Schema = {"type": "object", "not": {"required": ["include"]}}
    schema: Schema = {"items": {"if": case, "then": needed([[*CASE.spelled("input"), "turns", "user"]])}}
    return {
        "if": {"anyOf": [{"required": ["prompts"]}, {"required": ["prompt"]}]},
        "else": {"patternProperties": {f"^(?:{'|'.join(SUITE.spelled('tests'))})$": schema}},
    }


_RUBRIC = "#/$defs/type.llm-rubric/properties/"
_JUDGE: Schema = {"if": {"type": "string"}, "then": NAME, "else": {"$ref": "#/$defs/judge"}}
_INPUT: Schema = {"type": ["string", "number", "boolean", "array", "object"]}
_QUERIES: Schema = {"type": ["array", "null"], "items": {**TEXT, "pattern": r"\S"}}
_PAIRS: Schema = {"type": "array", "items": {"$ref": "#/$defs/query"}}

_JUDGE_VALUES: Mapping[str, Schema] = {
    "model": TARGET,
    **{key: {"$ref": f"{_RUBRIC}{key}"} for key in ("pass_threshold", "scale", "votes", "temperature")},
}
_DEFAULTS_VALUES: Mapping[str, Schema] = {"model": TARGET, "judge": _JUDGE}
_EXAM_CASE_VALUES: Mapping[str, Schema] = {
    "name": {**TEXT, "pattern": r"\S"},
    "inputs": {"type": "object", "additionalProperties": _INPUT},
    "inputs_from": NAME,
    "assert_": {**ASSERTIONS, "minItems": 1},
    "rubric": NAME,
    "expected_output": {"anyOf": [MESSAGES, {"type": "null"}]},
    "judge": _JUDGE,
    "model": TARGET,
    "tags": _TAGS,
}
_TRIGGERING_VALUES: Mapping[str, Schema] = {
    "should_trigger": _QUERIES,
    "should_not_trigger": _QUERIES,
    "queries": {"if": {"type": "string"}, "then": NAME, "else": {"$ref": "#/$defs/queries"}},
}
_EXAM_VALUES: Mapping[str, Schema] = {
    "defaults": {"anyOf": [{"$ref": "#/$defs/defaults"}, {"type": "null"}]},
    "triggering": {
        "if": {"type": "string"},
        "then": NAME,
        "else": {"if": {"type": "array"}, "then": {"$ref": "#/$defs/queries"}, "else": {"$ref": "#/$defs/triggering"}},
    },
    "cases": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/case"}},
}


def triggering_defs(cls: type) -> dict[str, Schema]:
    """The definitions of `triggering:`. `cls`: declares its keys, in an exam or in a suite."""
    return {
        "triggering": {
            **object_of(cls, _TRIGGERING_VALUES),
            "anyOf": [{"required": [key]} for key in _TRIGGERING_VALUES],
        },
        "queries": {**_PAIRS, "minItems": 1},
        "query": object_of(AuthoredQuery),
    }
