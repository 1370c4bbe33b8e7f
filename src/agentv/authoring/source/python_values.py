"""Suites defined in Python files: conversion to plain data, and to nodes that know the path of each part."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, node_of
from agentv.model.values.response import Failure
from agentv.model.values.values import Span
from agentv.user_code.guard import ForeignError, foreign_code

SUITE = "suite"
BAD_SUITE = "bad-eval-file"

DEEPEST = 100
"""Maximum levels of nesting, as in YAML, because the functions that walk nodes are recursive."""


AS_AUTHORED = "agentv.authoring.source.python_values:as_authored"
"""Import path of `as_authored`, for workers."""


def as_authored(value: Any, what: str, code: str) -> Any:
    """Convert an object from user code, such as one of the SDK, to plain data: mappings, lists, text, numbers.

    Args:
        value: the object.
        what: owner of the object, as the start of a message.
        code: code of the failure.

    Raises:
        ForeignError: a value has another type, or a conversion raised.
    """

    def refused(what_it_is: str) -> ForeignError:
        return ForeignError(Failure(code, f"{what} returns a {what_it_is}"))

    def made(value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise refused(f"value that is nested more than {DEEPEST} levels deep, or contains itself")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    raise refused(f"mapping with the key {key!r}; keys must be text")
            return {key: made(item, depth + 1) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return [made(item, depth + 1) for item in value]
        authored = getattr(value, "authored", None)
        if callable(authored) and not isinstance(value, type):
            return made(authored(), depth + 1)
        raise refused(f"value of the type '{type(value).__name__}', which an eval file cannot contain")

    with foreign_code(code, what):
        return made(value, 0)


def authored_suite(_function: None, payload: Mapping[str, str]) -> Any:
    """In a worker: the suite of a Python eval file as plain data, or an awaitable of it if `suite` is `async`.

    Raises:
        ForeignError: the file's `suite` is not a suite, or contains values that an eval file cannot contain.
    """
    from agentv.user_code.functions import load_module

    path = payload["file"]
    found = getattr(load_module(path, None), SUITE, None)
    is_suite = isinstance(found, Mapping) or callable(getattr(found, "authored", None))
    made = found() if callable(found) and not is_suite else found
    return _later(path, made) if inspect.isawaitable(made) else _document(path, made)


async def _later(path: str, made: Awaitable[Any]) -> Any:
    return _document(path, await made)


def _document(path: str, value: Any) -> Any:
    name = Path(path).name
    made = as_authored(value, name, BAD_SUITE)
    if isinstance(made, dict):
        return made
    message = f"'{SUITE}' of {name} must be a Suite or a mapping, not {type(value).__name__}"
    raise ForeignError(Failure(BAD_SUITE, message))


def traced(value: Any, file: str) -> tuple[Node, Mapping[Span | None, str]]:
    """Plain data as nodes, and a map from the position of each node to its path, such as `assert[0].type`.

    The positions are not lines of the file; they only identify the node that a diagnostic is about.
    """
    paths: dict[Span | None, str] = {}

    def place(path: str) -> Span:
        at = Span(file, -len(paths) - 1, 1, -len(paths) - 1, 2)
        paths[at] = path
        return at

    return _traced(value, "", place), paths


def _traced(value: Any, path: str, place: Any) -> Node:
    if isinstance(value, Mapping):
        at = place(path)
        paths_of_keys = {key: f"{path}.{key}" if path else key for key in value}
        items = {key: _traced(item, paths_of_keys[key], place) for key, item in value.items()}
        keys: dict[str, Place] = {key: place(key_path) for key, key_path in paths_of_keys.items()}
        return MapNode(items, keys, at)
    if isinstance(value, list):
        at = place(path)
        return ListNode([_traced(item, f"{path}[{number}]", place) for number, item in enumerate(value)], at)
    found = node_of(value, place(path))
    assert isinstance(found, Scalar)  # noqa: S101  # neither a mapping nor a list
    return found
