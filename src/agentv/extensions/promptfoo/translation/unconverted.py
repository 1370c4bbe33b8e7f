"""`unconverted:` of a converted eval file: what is left to do. The file is refused as long as it is there."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.authoring.source.nodes import ListNode, Node, Place
from agentv.errors import Diagnostic
from agentv.extensions.promptfoo.translation.source import NO_EQUIVALENT, text_node

KEY = "unconverted"


def unconverted(found: Iterable[Diagnostic], at: Place) -> dict[str, Node]:
    """The key with a line for each thing that could change a verdict; nothing where there is none.

    Args:
        found: what was reported.
        at: the place of the key.
    """
    left = [one for one in found if one.code == NO_EQUIVALENT and one.severity != "hint"]
    lines: list[Node] = [text_node(_line(one), at) for one in left]
    return {KEY: ListNode(lines, at)} if lines else {}


def _line(found: Diagnostic) -> str:
    where = f"line {found.span.line}: " if found.span is not None else ""
    return f"{where}{found.message}{f' ({found.hint})' if found.hint else ''}"
