"""Declarations of what may stand in `tools` (AGENTS.md section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from msgspec.structs import replace

from agentv.authoring.fields.schema import AtLeastOne, Unread
from agentv.model.suite.tools import is_schema
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.registry.fields import Declared, Doc, FunctionRef, Issue, LoadedJson, Nonempty, Text, Verbatim

JSON_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
OFFERED = ("state", "arguments")
"""What a function gets beside its parameters."""


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
        """Reports two results, parameters that are no JSON Schema, and functions that cannot be called."""
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
    """A scripted MCP server with more than its tools."""

    tools: Annotated[Unread, Doc("name → tool; or a Python module, whose functions are the tools")]
    state: Annotated[LoadedJson | None, Doc("what the functions find in `state` at first: an object, or its path")] = (
        None
    )
    transport: Annotated[
        Literal["stdio", "http"] | None, Doc("how agents connect: `stdio`, which needs no network, or loopback `http`")
    ] = None


def _schema_issues(params: Mapping[str, Json]) -> Iterable[Issue]:
    """What is wrong with the parameters of a tool."""
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

    schemas = (
        {"": params} if is_schema(params) else {name: one for name, one in params.items() if isinstance(one, Mapping)}
    )
    for name, schema in schemas.items():
        for issue in Schema(dict(schema)).validate("params"):
            yield replace(issue, path=("params", *((name,) if name else ()), *issue.path[1:]))
