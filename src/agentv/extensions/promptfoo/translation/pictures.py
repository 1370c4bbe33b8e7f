"""Variables that hold pictures, where prompts show them in blocks of their own and nowhere else.

promptfoo puts the bytes of the file into the block, agentv reads the file that the block names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.source import FILE

_SUFFIXES = frozenset([".jpg", ".jpeg", ".png", ".gif", ".webp"])
_WHOLE = re.compile(r"(?:data:image/[\w.+-]+;base64,)?\{\{\s*(\w+)\s*\}\}")
_PLACEHOLDER = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


def picture_variables(root: MapNode) -> frozenset[str]:
    """The variables that are picture files wherever the configuration's own tests set them."""
    tests, default = root.get("tests"), root.get("defaultTest")
    given = [default, *(tests.items if isinstance(tests, ListNode) else [])]
    if any(isinstance(one, Scalar) for one in given) or "scenarios" in root.items:
        return frozenset()  # tests of other files may set them to anything
    variables = [one.get("vars") for one in given if isinstance(one, MapNode)]
    found = [(name, _is_picture(item)) for one in variables if isinstance(one, MapNode) for name, item in _items(one)]
    return frozenset({name for name, it in found if it} - {name for name, it in found if not it} - _read(given))


def shown_picture(node: Node | None, pictures: frozenset[str]) -> str | None:
    """The placeholder of the picture that is all of a text; None where it is something else."""
    found = _WHOLE.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
    return f"{{{{ {found[1]} }}}}" if found is not None and found[1] in pictures else None


def only_in_blocks(pictures: frozenset[str], prompts: Iterable[Node]) -> frozenset[str]:
    """Those of the variables that no prompt shows as text."""
    return pictures - {name for prompt in prompts for name in _shown_as_text(prompt)}


def _items(node: MapNode) -> Iterator[tuple[str, Node]]:
    yield from node.items.items()


def _is_picture(node: Node) -> bool:
    path = node.text.strip() if isinstance(node, Scalar) else ""
    return path.startswith(FILE) and PurePosixPath(path).suffix.lower() in _SUFFIXES


def _read(tests: Iterable[Node | None]) -> set[str]:
    """The names that assertions and options of tests read."""
    others = [one.get(key) for one in tests if isinstance(one, MapNode) for key in ("assert", "options")]
    return {name for one in others if one is not None for name in _shown_as_text(one)}


def _shown_as_text(node: Node) -> Iterator[str]:
    if isinstance(node, ListNode):
        for item in node.items:
            yield from _shown_as_text(item)
    elif isinstance(node, MapNode):
        kind = node.get("type")
        if not (isinstance(kind, Scalar) and kind.text == "image"):
            for item in node.items.values():
                yield from _shown_as_text(item)
    elif isinstance(node.value, str):
        for part in _PLACEHOLDER.findall(node.value):
            yield from _NAME.findall(part)
        if "vars" in node.value:  # code reads any of them
            yield from _NAME.findall(node.value)
