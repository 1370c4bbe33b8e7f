"""Converts transforms, and calls functions that return tests or compute variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from agentv.authoring.cases.generators import BAD_GENERATOR, in_javascript
from agentv.authoring.source.nodes import MapNode, Node, Scalar, node_of, plain
from agentv.authoring.source.python_values import as_authored
from agentv.extensions.promptfoo.source import FILE, Source, text_node, value_at
from agentv.extensions.promptfoo.tables import JAVASCRIPT, PYTHON
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.ports import CodeCall
from agentv.user_code.blocking import ADAPTERS, call_blocking
from agentv.user_code.guard import ForeignError

CODE = "javascript:"
"""Prefix of JavaScript, without which agentv reads an expression of its own."""

_STEPS = r"((?:\??\.[A-Za-z_]\w*|\[\d+\])+)"
_MEMBER = re.compile(rf"(?:output|JSON\.parse\(output\)){_STEPS};?")
_REPLY = re.compile(rf"json({_STEPS[1:-1]})?;?")


def transform_of(node: Node, source: Source) -> Node | None:
    """The converted transform, or None if it has no equivalent, which is reported."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        source.error(node, "this transform is not text", "write an expression, or file.py:function")
        return None
    text = node.value.strip()
    if text.startswith(FILE):
        return _function(text.removeprefix(FILE), node, source)
    member = _MEMBER.fullmatch(text)
    if member is not None:
        return text_node(f"${member[1].replace('?', '')}", node.at)
    return text_node(f"{CODE}{text}" if "\n" not in text else f"{CODE}\n{text}\n", node.at)


def _function(text: str, node: Scalar, source: Source) -> Node | None:
    path, _, name = text.partition(":")
    suffix = PurePosixPath(path).suffix
    if suffix in PYTHON:
        return text_node(f"{path}:{name or 'get_transform'}", node.at)
    if suffix in JAVASCRIPT:
        return text_node(f"{path}:{name}" if name else path, node.at)
    source.error(node, f"the transform '{text}' has no equivalent", "write a function in Python or JavaScript")
    return None


def response_path(node: Node, source: Source) -> dict[str, Node]:
    """The key of a target that extracts the answer from a server's reply: a path, an expression or a function."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        source.error(node, "this 'transformResponse' is not text", "write 'output' with a path such as $.a.b")
        return {"transformResponse": node}
    text = node.value.strip()
    if text.startswith(FILE):
        made = _function(text.removeprefix(FILE), node, source)
        return {"transformResponse": node} if made is None else {"transform": made}
    found = _REPLY.fullmatch(text)
    if found is not None:
        return {"output": text_node(f"${(found[1] or '').replace('?', '')}", node.at)}
    return {"transform": text_node(f"{CODE}{text}", node.at)}


def names_code(text: str) -> bool:
    """Whether a text names a Python or JavaScript file, whose functions can be called."""
    path = text.strip().removeprefix(FILE).partition(":")[0]
    return PurePosixPath(path).suffix in (*PYTHON, *JAVASCRIPT)


def returned_tests(node: Node, source: Source) -> Node | None:
    """Call the function that a test generator names: `file://tests.py:name`, or `{path: …, config: …}`.

    Returns:
        A list of tests; None if the function failed or cannot be called, which is reported.
    """
    file = node.get("path") if isinstance(node, MapNode) else node
    config = value_at(node, "config")
    if not isinstance(file, Scalar):
        return None
    path, _, function = file.text.strip().removeprefix(FILE).partition(":")
    if PurePosixPath(path).suffix in PYTHON and not function:
        function = "generate_tests"
    if not source.admits(path, file):
        return None
    if not source.calls:
        source.uncalled.append(file)
        message = f"'{path}' is not called here: its tests are checked when they run"
        source.report.remark("unchecked-cases", file, message)
        return None
    place, given = str(source.directory / path), [] if config is None else [plain(config)]
    call = _call_python if PurePosixPath(path).suffix in PYTHON else _call_javascript
    try:
        found = node_of(as_authored(call(place, function, given, source), path, BAD_GENERATOR), file.at)
    except ForeignError as error:
        source.report.error(error.failure.code, file, error.failure.message)
        return None
    message = f"the tests that '{file.text}' returned are written into the eval file"
    source.remark(node, message, "convert again when the code changes")
    return found


def computed_variable(key: str, file: Scalar, given: Mapping[str, Any], source: Source) -> Node | None:
    """The value of a variable that a file's function computes, or None after reporting an error.

    The value is empty text if `source` calls no functions.

    Args:
        key: name of the variable.
        file: names the file.
        given: the variables of the test.
        source: has the prompts; the function is called once for each.
    """
    path = file.text.strip().removeprefix(FILE)
    if not source.admits(path, file):
        return None
    if not source.prompt_texts:
        hint = "write it in the 'vars' of each test"
        source.error(file, f"a computed variable of 'defaultTest', '{key}', has no equivalent", hint)
        return None
    if not source.calls:
        source.report.remark("unchecked-cases", file, f"'{path}' is not called here: '{key}' is computed when it runs")
        return text_node("", file.at)
    place, is_python = str(source.directory / path), PurePosixPath(path).suffix in PYTHON
    try:
        found = [
            _call_python(place, "get_var", [key, prompt, given], source)
            if is_python
            else _call_javascript(place, "", [key, prompt, given], source)
            for prompt in source.prompt_texts
        ]
    except ForeignError as error:
        source.report.error(error.failure.code, file, error.failure.message)
        return None
    outputs = [one.get("output") if isinstance(one, Mapping) and not one.get("error") else None for one in found]
    if not outputs[0] or any(one != outputs[0] for one in outputs):
        why = "returns no 'output'" if not all(outputs) else "computes a different value for each prompt"
        source.report.error(BAD_GENERATOR, file, f"{path} {why}")
        return None
    value = outputs[0].strip() if is_python and isinstance(outputs[0], str) else outputs[0]
    return node_of(value, file.at)


def _call_python(path: str, function: str, given: list[Any], source: Source) -> Any:
    call = CodeCall(
        "authoring",
        f"{ADAPTERS}:by_position",
        {"arguments": given},
        code=BAD_GENERATOR,
        what=f"{PurePosixPath(path).name}:{function}",
        function=function,
        file=path,
        env=dict(source.reading.scope.env) or None,
    )
    return call_blocking(call, CODE_TIMEOUT_S)


def _call_javascript(path: str, function: str, given: list[Any], source: Source) -> Any:
    return in_javascript(path, function, given, source.reading.scope.env, PurePosixPath(path).name)
