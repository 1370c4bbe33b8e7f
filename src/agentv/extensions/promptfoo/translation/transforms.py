"""promptfoo's transforms, which are JavaScript or functions of files, as ours."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from agentv.authoring.source.nodes import Node, Scalar
from agentv.extensions.promptfoo.translation.providers.provider_tables import JAVASCRIPT, PYTHON
from agentv.extensions.promptfoo.translation.source import FILE, Source, text_node

CODE = "javascript:"
"""What JavaScript begins with where an expression of ours could stand too."""

_STEPS = r"((?:\??\.[A-Za-z_]\w*|\[\d+\])+)"
_MEMBER = re.compile(rf"(?:output|JSON\.parse\(output\)){_STEPS};?")
_REPLY = re.compile(rf"json({_STEPS[1:-1]})?;?")


def transform_of(node: Node, source: Source) -> Node | None:
    """A transform by our rules; None where it has no equivalent, which is reported."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        source.tell(node, "this transform is not text", "write an expression, or file.py:function")
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
    source.tell(node, f"the transform '{text}' has no equivalent", "write a function in Python or JavaScript")
    return None


def response_path(node: Node, source: Source) -> dict[str, Node]:
    """What makes the answer of the reply of a server: a path into it, an expression, or a function."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        source.tell(node, "this 'transformResponse' is not text", "write 'output' with a path such as $.a.b")
        return {"transformResponse": node}
    text = node.value.strip()
    if text.startswith(FILE):
        made = _function(text.removeprefix(FILE), node, source)
        return {"transformResponse": node} if made is None else {"transform": made}
    found = _REPLY.fullmatch(text)
    if found is not None:
        return {"output": text_node(f"${(found[1] or '').replace('?', '')}", node.at)}
    return {"transform": text_node(f"{CODE}{text}", node.at)}


def response_transform(node: Node, source: Source) -> dict[str, Node]:
    """The transform of all answers of a provider."""
    source.tell(node, "'transform' of a provider has no equivalent", "move it to 'options.transform' of the tests")
    return {"transform": node}
