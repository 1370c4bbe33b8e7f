"""Declarations of the keys `workspace`, `variants`, `tools`, `solution` and `user`, and of older spellings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace

from agentv.authoring.fields.json_kinds import NAME, TEXT, Schema, mapping_of, object_of, properties_of
from agentv.authoring.fields.schema import AtLeastOne, Unread
from agentv.extensions.agents.authoring.activation import AuthoredActivation, AuthoredActivationQuery
from agentv.model.suite.suite import GradedOutput
from agentv.model.suite.tools import is_schema
from agentv.model.suite.workspace import Home, KeepWorkspaces, Network
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.registry.fields import (
    Alias,
    Between,
    Count,
    Declared,
    Doc,
    FunctionRef,
    Issue,
    LoadedJson,
    Nonempty,
    Seconds,
    Text,
    Texts,
    Verbatim,
)


@dataclass(frozen=True, slots=True)
class AuthoredCommand(Declared):
    """A command of `setup` or of a hook, as a mapping."""

    command: Annotated[Unread, Alias(("script",)), Doc("a list of words, or a shell command")]
    cwd: Annotated[Text | None, Doc("directory in the workspace where it runs")] = None
    env: Annotated[Mapping[str, Text], Doc("environment variables")] = field(default_factory=dict)
    timeout_s: Annotated[Seconds | None, Doc("time limit in seconds (default 600)")] = None
    timeout_ms: Annotated[Annotated[float, Between(1)] | None, Doc("older: time limit in milliseconds")] = None
    reset: Annotated[
        Literal["none", "fast", "strict"] | None, Doc("older: without effect, since each trial has a new workspace")
    ] = None


@dataclass(frozen=True, slots=True)
class AuthoredRepository(Declared):
    """An entry of `repos`."""

    repo: Annotated[Text, Nonempty(), Doc("`org/name` on GitHub, the URL of a repository, or a path")]
    path: Annotated[Text | None, Doc("directory in the workspace; default: the workspace itself")] = None
    commit: Annotated[Text | None, Alias(("base_commit",)), Doc("commit, branch or tag")] = None
    ancestor: Annotated[Count, Doc("number of first parents to go back from `commit`")] = 0
    sparse: Annotated[Texts | None, Doc("directories to check out; default: all")] = None


STAGES = ("before_all", "before_each", "after_each", "after_all")
"""Keys of `hooks`."""


@dataclass(frozen=True, slots=True)
class AuthoredHooks(Declared):
    """The `hooks` of a workspace."""

    before_all: Annotated[Unread, Doc("commands before the first trial")] = None
    before_each: Annotated[Unread, Doc("commands in each new workspace, before the baseline")] = None
    after_each: Annotated[Unread, Doc("commands in each workspace, after grading")] = None
    after_all: Annotated[Unread, Doc("commands after the last trial")] = None
    enabled: Annotated[bool, Doc("false: the hooks do not run")] = True


@dataclass(frozen=True, slots=True)
class AuthoredMount(Declared):
    """A directory of the host that a container sees."""

    source: Annotated[Text, Nonempty(), Doc("path on this machine")]
    target: Annotated[Text, Nonempty(), Doc("absolute path in the container")]
    access: Annotated[Literal["ro", "rw"], Doc("read-only or writable")] = "rw"
    read_only: Annotated[bool, Doc("true: as `access: ro`")] = False


@dataclass(frozen=True, slots=True)
class AuthoredDocker(Declared):
    """The container of `sandbox: docker`."""

    image: Annotated[Text | None, Doc("image to run in")] = None
    context: Annotated[Text | None, Doc("directory that an image is built from")] = None
    dockerfile: Annotated[Text | None, Doc("Dockerfile, relative to `context`")] = None
    workdir: Annotated[Text | None, Doc("absolute path of the workspace in the container")] = None
    mounts: Annotated[tuple[AuthoredMount, ...], Doc("directories of this machine that the container sees")] = ()
    timeout: Annotated[Seconds | None, Doc("older: not applied")] = None
    memory: Annotated[Text | None, Doc("older: not applied")] = None
    cpus: Annotated[Annotated[float, Between(0)] | None, Doc("older: not applied")] = None


@dataclass(frozen=True, slots=True)
class AuthoredWorkspace(Declared):
    """The `workspace` of a suite or of a case."""

    template: Annotated[Unread, Doc("directory to copy; its path, or null for an empty workspace")] = None
    repos: Annotated[tuple[AuthoredRepository, ...], Doc("git repositories to check out")] = ()
    files: Annotated[Unread, Doc("further files: a path, a list of paths, or place: path")] = None
    setup: Annotated[Unread, Doc("commands that prepare the workspace; they run once, and the result is copied")] = None
    hidden: Annotated[
        Unread,
        Doc("files copied in after the agent has ended, before grading: a path, a list, or place: path; or a `.patch`"),
    ] = None
    protected: Annotated[tuple[Text, ...], Doc("globs of files that the agent must not change")] = ()
    ignore: Annotated[tuple[Text, ...], Doc("globs of files that the diff leaves out")] = ()
    hooks: Annotated[Unread, Doc("commands around the trials")] = None
    keep: Annotated[KeepWorkspaces, Doc("which workspaces to keep after the run")] = "failed"
    network: Annotated[Network, Doc("network of the agent, in a sandbox")] = "host"
    home: Annotated[Home, Doc("`fresh`: each trial has a new HOME; `host`: the agent uses yours")] = "fresh"
    env: Annotated[Mapping[str, Text | tuple[Text, ...]], Doc("environment variables of the agent")] = field(
        default_factory=dict
    )
    docker: Annotated[AuthoredDocker | None, Doc("what `sandbox: docker` runs in")] = None
    mounts: Annotated[
        Mapping[str, Text], Doc("absolute path in the sandbox: directory of the workspace that is found there")
    ] = field(default_factory=dict)
    path: Annotated[
        Text | None, Doc("an existing directory to use as it is, with one worker, instead of a new one for each trial")
    ] = None
    isolation: Annotated[
        Literal["per_test", "shared"] | None, Doc("older: without effect, since each trial has a new workspace")
    ] = None
    mode: Annotated[Literal["pooled", "temp", "static"] | None, Doc("older: `static` needs `path`")] = None


@dataclass(frozen=True, slots=True)
class AuthoredToolUse(Declared):
    """A call of a scripted tool in a `solution`."""

    tool: Annotated[Text, Nonempty(), Doc("`server.tool`")]
    args: Annotated[JsonObject, Doc("arguments by name")] = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class AuthoredSolution(Declared):
    """The `solution` of a case, as a mapping."""

    patch: Annotated[Text | None, Nonempty(), Doc("path of a patch in git's format")] = None
    files: Annotated[Unread, Doc("files to copy over the workspace: a path, a list of paths, or place: path")] = None
    commands: Annotated[Unread, Alias(("command",)), Doc("commands that run in the workspace")] = None
    calls: Annotated[tuple[AuthoredToolUse, ...], Doc("calls of scripted tools, in order")] = ()


@dataclass(frozen=True, slots=True)
class AuthoredUser(Declared):
    """The `user` of a case, as a mapping."""

    goal: Annotated[Text, Doc("what the user wants")] = ""
    persona: Annotated[Text, Doc("how the user behaves")] = ""
    knows: Annotated[JsonObject, Doc("facts that the user gives when asked, name → value")] = field(default=EMPTY)
    start: Annotated[Text, Doc("the first message; without it, the user writes that one too")] = ""
    max_turns: Annotated[AtLeastOne, Doc("maximum number of messages of the user")] = 10
    model: Annotated[Unread, Doc("what plays the user: a target by name, or `provider:model`; else the judge")] = None
    function: Annotated[FunctionRef | None, Doc("`file.py:name` that returns the messages instead of a model")] = None
    output: Annotated[
        GradedOutput, Doc("what is graded as the output: the last answer, all answers, or what both sides said")
    ] = "answer"

    def validate(self) -> Iterable[Issue]:
        """Report a user without a goal, and one with both a model and a function."""
        if self.function is not None and self.model is not None:
            yield Issue(("model",), "'function' writes the messages of this user, so 'model' has no effect; keep one")
        if self.function is not None and self.function.path is None:
            yield Issue(("function",), "the function of a user stands in a file: file.py:name")
        if not self.goal.strip() and self.function is None:
            yield Issue((), "'user' needs 'goal': what the user wants", code="missing-key")


@dataclass(frozen=True, slots=True)
class AuthoredVariant(Declared):
    """An entry of `variants`."""

    name: Annotated[Text, Nonempty(), Doc("unique in the suite; shown in results")]
    overlay: Annotated[Unread, Doc("files copied over the workspace: a path, a list of paths, or place: path")] = None
    ref: Annotated[Text | None, Nonempty(), Doc("git ref that the template is taken from")] = None
    env: Annotated[Mapping[str, Text], Doc("environment variables of the agent")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuthoredSetup(Declared):
    """The `setup` of an `environment`."""

    command: Annotated[Unread, Doc("a list of words, or a shell command")]
    cwd: Annotated[Text | None, Doc("directory where it runs")] = None
    timeout_ms: Annotated[Annotated[float, Between(1)] | None, Doc("time limit in milliseconds")] = None


@dataclass(frozen=True, slots=True)
class AuthoredEnvironment(Declared):
    """AgentV's `environment`."""

    workdir: Annotated[Text, Nonempty(), Doc("`host`: directory to copy; `docker`: path in the container")]
    type: Annotated[Literal["host", "docker"], Doc("where the agent runs")] = "host"
    setup: Annotated[Unread, Doc("command that prepares the workspace")] = None
    env: Annotated[Mapping[str, Text], Doc("environment variables of the agent")] = field(default_factory=dict)
    context: Annotated[Text | None, Doc("directory that an image is built from")] = None
    dockerfile: Annotated[Text | None, Doc("Dockerfile, relative to `context`")] = None
    image: Annotated[Text | None, Doc("image to run in")] = None
    mounts: Annotated[tuple[AuthoredMount, ...], Doc("directories of this machine that the container sees")] = ()
    resources: Annotated[Json, Doc("not applied")] = None
    services: Annotated[Json, Doc("not applied")] = None
    secrets: Annotated[Mapping[str, Text], Doc("environment variables whose values are secret")] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class AuthoredRulePaths(Declared):
    """The files of AgentV's `agentv:agent-rules`."""

    skills: Annotated[tuple[Text, ...], Doc("skills to copy into the workspace")] = ()
    hooks: Annotated[tuple[Text, ...], Doc("hooks of agents to copy into the workspace")] = ()
    agents: Annotated[tuple[Text, ...], Doc("agents to copy into the workspace")] = ()
    rules: Annotated[tuple[Text, ...], Doc("rules to copy into the workspace")] = ()


@dataclass(frozen=True, slots=True)
class AuthoredAgentRules(AuthoredRulePaths):
    """An entry of `extensions` that is a mapping."""

    id: Annotated[Literal["agentv:agent-rules"], Doc("the only extension that takes options")] = "agentv:agent-rules"
    hook: Annotated[Literal["beforeAll", "beforeEach"], Doc("without effect: the files are there from the start")] = (
        "beforeAll"
    )
    config: Annotated[AuthoredRulePaths | None, Doc("the files")] = None


JSON_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
OFFERED = ("state", "arguments")
"""Arguments that a function can request in addition to its parameters."""


@dataclass(frozen=True, slots=True)
class AuthoredToolFailure(Declared):
    """The `fail` of a scripted tool."""

    error: Annotated[Text, Nonempty(), Doc("message of the error; `timeout`: the call times out")]
    calls: Annotated[tuple[AtLeastOne, ...], Doc("which calls fail, counted from 1; default: all")] = ()


@dataclass(frozen=True, slots=True)
class AuthoredTool(Declared):
    """One tool of a scripted MCP server."""

    short: ClassVar[str | None] = None

    description: Annotated[Text, Doc("shown to the agent's model")] = ""
    params: Annotated[JsonObject, Verbatim(), Doc("parameter → JSON type, or a JSON Schema of all arguments")] = field(
        default=EMPTY
    )
    returns: Annotated[Json, Doc("result of every call")] = None
    function: Annotated[
        FunctionRef | None,
        Doc("`file.py:name`; gets the parameters by name, and `state`, which it may change, if it asks for it"),
    ] = None
    fail: Annotated[AuthoredToolFailure | None, Doc("calls that fail")] = None

    def validate(self) -> Iterable[Issue]:
        """Report a tool with two results, invalid parameters, or a function that cannot be called."""
        if self.function is not None and self.returns is not None:
            yield Issue(("returns",), "'function' gives the result, so 'returns' has no effect; keep one of them")
        if self.function is not None and self.function.path is None:
            yield Issue(("function",), "the function of a tool stands in a file: file.py:name")
        if self.function is not None:
            taken = [name for name in OFFERED if name in self.params and not is_schema(self.params)]
            for name in taken:
                yield Issue(("params", name), f"'{name}' is what the function gets beside its parameters; rename it")
        yield from _schema_issues(self.params)


@dataclass(frozen=True, slots=True)
class AuthoredServer(Declared):
    """A scripted MCP server with options in addition to its tools."""

    tools: Annotated[Unread, Doc("name → tool; or a Python module, whose functions are the tools")]
    state: Annotated[LoadedJson | None, Doc("what the functions find in `state` at first: an object, or its path")] = (
        None
    )
    transport: Annotated[
        Literal["stdio", "http"] | None, Doc("how agents connect: `stdio`, which needs no network, or loopback `http`")
    ] = None


def _schema_issues(params: Mapping[str, Json]) -> Iterable[Issue]:
    """Yield what is wrong with the parameters of a tool."""
    if not params:
        return
    if not is_schema(params):
        for name, one in params.items():
            if isinstance(one, str) and one not in JSON_TYPES:
                message = f"'{one}' is no JSON type; expected one of {', '.join(JSON_TYPES)}, or a JSON Schema"
                yield Issue(("params", name), message)
            elif not isinstance(one, str | Mapping):
                yield Issue(("params", name), "a parameter is a JSON type, such as string, or a JSON Schema")
    from agentv.matching.json_schema import Schema

    schemas = {"": params} if is_schema(params) else params
    for name, schema in schemas.items():
        if not isinstance(schema, Mapping):
            continue
        for issue in Schema(dict(schema)).validate("params"):
            yield replace(issue, path=("params", *((name,) if name else ()), *issue.path[1:]))


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
    """Return the schema definitions that these keys refer to."""
    hooks: Schema = {"anyOf": [{"$ref": "#/$defs/hooks"}, _NOTHING]}
    setup: Schema = {"anyOf": [{"$ref": "#/$defs/environment-setup"}, _NOTHING]}
    tools: Schema = {"anyOf": [NAME, {"$ref": "#/$defs/tools"}]}
    queries: Schema = {"anyOf": [NAME, {"type": "array", "items": object_of(AuthoredActivationQuery)}]}
    files = {"template": {"type": ["string", "null"]}, "files": _COPIED, "hidden": _COPIED}
    command = mapping_of(properties_of(AuthoredCommand, {"command": _WORDS}))  # AgentV allows one with only `reset`
    return {
        "command": {**command, "minProperties": 1},
        "hooks": object_of(AuthoredHooks, dict.fromkeys(STAGES, _COMMANDS)),
        "workspace": object_of(AuthoredWorkspace, {**files, "setup": _COMMANDS, "hooks": hooks}),
        "solution": {**object_of(AuthoredSolution, {"files": _COPIED, "commands": _COMMANDS}), "minProperties": 1},
        "variant": object_of(AuthoredVariant, {"overlay": _COPIED}),
        "environment-setup": object_of(AuthoredSetup, {"command": _WORDS}),
        "environment": object_of(AuthoredEnvironment, {"setup": setup}),
        "user": object_of(AuthoredUser, {"model": {"$ref": "#/$defs/target"}}),
        "activation": object_of(AuthoredActivation, {"skills": NAME, "queries": queries}),
        "agent-rules": object_of(AuthoredAgentRules),
        "tool": object_of(AuthoredTool),
        "tools": {"type": "object", "additionalProperties": {"$ref": "#/$defs/tool"}, "minProperties": 1},
        "tool-server": {
            "if": {"required": ["tools"]},
            "then": object_of(AuthoredServer, {"tools": tools}),
            "else": tools,
        },
    }
