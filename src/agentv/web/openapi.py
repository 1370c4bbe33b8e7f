"""The description of the API, made from the declarations of its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from agentv.version import __version__
from agentv.web.answers import ErrorAnswer
from agentv.web.endpoints import VARIABLE, Stream

_REFERENCE = "#/components/schemas/{name}"
_ATTRIBUTE = re.compile(r"^ {4,8}(\w+(?:, \w+)*): (.+(?:\n {8,12}\S.*)*)", re.MULTILINE)


class Described(Protocol):
    """What is said of an endpoint, of one project or of a team's server. A body of `bytes` is no JSON."""

    @property
    def path(self) -> str: ...  # noqa: D102  # as `Endpoint` says
    @property
    def method(self) -> str: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def answer(self) -> Any: ...  # noqa: D102
    @property
    def query(self) -> type[msgspec.Struct]: ...  # noqa: D102
    @property
    def body(self) -> Any: ...  # noqa: D102


def description(title: str, endpoints: Sequence[Described], streams: Sequence[Stream]) -> dict[str, Any]:
    """The document of OpenAPI 3.1."""
    types = [*_types(endpoints, streams), ErrorAnswer]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    known = {str(one): schema for one, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, known)
    for stream in streams:
        paths.setdefault(stream.path, {})["get"] = _streamed(stream, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _types(endpoints: Iterable[Described], streams: Iterable[Stream]) -> list[Any]:
    found = [one.answer for one in endpoints] + [one.body for one in endpoints if one.body not in (None, bytes)]
    return found + [data for stream in streams for data in stream.events.values()]


def _operation(endpoint: Described, known: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": known[str(endpoint.answer)]}}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint.path, endpoint.query),
        "responses": {"200": {"description": "The answer.", "content": content}, **_problems(known)},
    }
    if endpoint.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": {}}
            if endpoint.body is bytes
            else {"application/json": {"schema": known[str(endpoint.body)]}},
        }
    return found


def _streamed(stream: Stream, known: dict[str, Any]) -> dict[str, Any]:
    events = "; ".join(
        f"`{name}`: JSON of {known[str(data)]['$ref'].rpartition('/')[2]}" for name, data in stream.events.items()
    )
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "summary": stream.summary,
        "parameters": _parameters(stream.path, stream.query),
        "responses": {"200": {"description": f"Server-sent events. {events}.", "content": content}, **_problems(known)},
    }


def _problems(known: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": known[str(ErrorAnswer)]}}
    return {"default": {"description": "What went wrong.", "content": content}}


def _parameters(path: str, query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in VARIABLE.findall(path)
    ]
    schema = msgspec.json.schema(query)["$defs"][query.__name__]
    meanings = _meanings(query)
    for field in msgspec.structs.fields(query):
        name = field.encode_name
        one = {"name": name, "in": "query", "required": field.required, "schema": schema["properties"][name]}
        named.append({**one, "description": meanings[field.name]} if field.name in meanings else one)
    return named


def _meanings(of: type[msgspec.Struct]) -> dict[str, str]:
    """What the docstring of a type says of its attributes."""
    found = _ATTRIBUTE.findall(of.__doc__ or "")
    return {name: " ".join(text.split()) for names, text in found for name in names.split(", ")}
