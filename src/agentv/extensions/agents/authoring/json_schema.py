"""The JSON Schema of `workspace`, `sandbox`, `variants`, and of AgentV's words for them (AGENTS.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.authoring.fields.json_kinds import FREE_KEYS, NAME, TEXT, Schema, object_of, properties_of
from agentv.extensions.agents.authoring.activation import AuthoredActivation, AuthoredActivationQuery
from agentv.extensions.agents.authoring.schema import (
    AuthoredAgentRules,
    AuthoredCommand,
    AuthoredEnvironment,
    AuthoredHooks,
    AuthoredServer,
    AuthoredSetup,
    AuthoredSolution,
    AuthoredTool,
    AuthoredUser,
    AuthoredVariant,
    AuthoredWorkspace,
)

_NOTHING: Schema = {"type": "null"}
_WORDS: Schema = {"anyOf": [NAME, {"type": "array", "items": TEXT, "minItems": 1}]}
_COMMAND: Schema = {"anyOf": [*_WORDS["anyOf"], {"$ref": "#/$defs/command"}]}
_COMMANDS: Schema = {"anyOf": [NAME, {"type": "array", "items": _COMMAND}, {"$ref": "#/$defs/command"}, _NOTHING]}
_COPIED: Schema = {
    "anyOf": [
        NAME,
        {"type": "array", "items": {"anyOf": [NAME, {"type": "object", "additionalProperties": NAME}]}},
        {"type": "object", "additionalProperties": NAME},
        _NOTHING,
    ]
}

_SANDBOX: Schema = {"anyOf": [{"enum": ["none", "bwrap", "docker"]}, {"$ref": "#/$defs/placeholder"}]}

WORKSPACE: Schema = {"anyOf": [NAME, {"$ref": "#/$defs/workspace"}, _NOTHING]}
SANDBOX: Schema = {"anyOf": [*_SANDBOX["anyOf"], {"type": "array", "items": _SANDBOX}, _NOTHING]}
ENVIRONMENT: Schema = {"anyOf": [NAME, {"$ref": "#/$defs/environment"}, _NOTHING]}
TOOLS: Schema = {"anyOf": [{"type": "object", "additionalProperties": {"$ref": "#/$defs/tool-server"}}, _NOTHING]}
SOLUTION: Schema = {"anyOf": [NAME, {"type": "array", "items": NAME}, {"$ref": "#/$defs/solution"}, _NOTHING]}
USER: Schema = {"anyOf": [NAME, {"$ref": "#/$defs/user"}, _NOTHING]}
VARIANTS: Schema = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/variant"}}, _NOTHING]}
ACTIVATION: Schema = {"$ref": "#/$defs/activation"}
EXTENSIONS: Schema = {
    "anyOf": [{"type": "array", "items": {"anyOf": [NAME, {"$ref": "#/$defs/agent-rules"}]}}, _NOTHING]
}


def workspace_defs() -> dict[str, Schema]:
    """The definitions that these keys refer to."""
    stages = ("before_all", "before_each", "after_each", "after_all")
    return {
        "command": {**_mapping(AuthoredCommand, {"command": _WORDS}), "minProperties": 1},
        "hooks": _mapping(AuthoredHooks, dict.fromkeys(stages, _COMMANDS)),
        "workspace": _mapping(
            AuthoredWorkspace,
            {
                "template": {"type": ["string", "null"]},
                "files": _COPIED,
                "hidden": _COPIED,
                "setup": _COMMANDS,
                "hooks": {"anyOf": [{"$ref": "#/$defs/hooks"}, _NOTHING]},
            },
        ),
        "solution": {
            **_mapping(AuthoredSolution, {"files": _COPIED, "commands": _COMMANDS}),
            "minProperties": 1,
        },
        "variant": {**_mapping(AuthoredVariant, {"overlay": _COPIED}), "required": ["name"]},
        "environment-setup": {**_mapping(AuthoredSetup, {"command": _WORDS}), "required": ["command"]},
        "environment": {
            **_mapping(AuthoredEnvironment, {"setup": {"anyOf": [{"$ref": "#/$defs/environment-setup"}, _NOTHING]}}),
            "required": ["workdir"],
        },
        "user": _mapping(AuthoredUser, {"model": {"$ref": "#/$defs/target"}}),
        "activation": {
            **_mapping(
                AuthoredActivation,
                {
                    "skills": NAME,
                    "queries": {"anyOf": [NAME, {"type": "array", "items": object_of(AuthoredActivationQuery)}]},
                },
            ),
            "required": ["skills", "queries"],
        },
        "agent-rules": object_of(AuthoredAgentRules),
        "tool": object_of(AuthoredTool),
        "tools": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tool"}, "minProperties": 1},
        "tool-server": {
            "if": {"required": ["tools"]},
            "then": {
                **_mapping(AuthoredServer, {"tools": {"anyOf": [NAME, {"$ref": "#/$defs/tools"}]}}),
                "required": ["tools"],
            },
            "else": {"anyOf": [NAME, {"$ref": "#/$defs/tools"}]},
        },
    }


def _mapping(cls: type, unread: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties_of(cls, unread),
        "patternProperties": FREE_KEYS,
        "additionalProperties": False,
    }
