"""Tests that functions return: they take the place of the function, so that their assertions are converted too."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from agentv.authoring.source.nodes import MapNode, Node, Scalar, node_of, plain
from agentv.extensions.promptfoo.translation.calls import CodeCall, CodeError
from agentv.extensions.promptfoo.translation.providers.provider_tables import JAVASCRIPT, PYTHON
from agentv.extensions.promptfoo.translation.source import FILE, Source

_AGAIN = "convert again when the code changes"


def names_code(text: str) -> bool:
    """Whether a text names a file whose functions can be called."""
    path = text.strip().removeprefix(FILE).partition(":")[0]
    return PurePosixPath(path).suffix in (*PYTHON, *JAVASCRIPT)


def returned_tests(node: Node, source: Source) -> Node | None:
    """The tests that a function returns: `file://tests.py:name`, or `{path: …, config: …}`.

    Returns:
        A list of tests; None where there is none, which is reported.
    """
    said = node.get("path") if isinstance(node, MapNode) else node
    config = node.get("config") if isinstance(node, MapNode) else None
    if not isinstance(said, Scalar):
        return None
    given = () if config is None else (plain(config),)
    found = _returned(said, "generate_tests", given, source)
    if found is None:
        return None
    source.note(node, f"the tests that '{said.text}' returned are written into the eval file", _AGAIN)
    return node_of(found, said.at)


def _returned(said: Scalar, name: str, given: tuple[Any, ...], source: Source) -> Any:
    path, _, function = said.text.strip().removeprefix(FILE).partition(":")
    is_python = PurePosixPath(path).suffix in PYTHON
    function = function or (name if is_python else "")
    if source.call_code is None or (is_python and not function):
        source.tell(said, f"'{said.text}' cannot be called", "name a function: file.py:name; or write what it returns")
        return None
    if not source.admits(path, said):
        return None
    try:
        return source.call_code(CodeCall(source.directory / path, function, given, source.directory))
    except CodeError as error:
        hint = "make it run on its own, then convert again; or write what it returns"
        source.tell(said, f"'{said.text}' failed: {error}", hint)
        return None
