"""promptfoo's prompts: what every case is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from glob import has_magic

from agentv.authoring.convert.promptfoo.source import FILE, Source, chat, mapping, text_node
from agentv.authoring.source.files import is_file
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.authoring.source.patterns import climbs, literal_part
from agentv.lazy_dataclass import dataclass

_SEPARATOR = re.compile(r"^---\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is asked.

    Attributes:
        asked: the one prompt that there is; None where there are several, or none.
        head: keys of the suite that say what is asked, where there are several.
    """

    asked: Node | None = None
    head: Mapping[str, Node] = field(default_factory=dict)


def prompts_of(node: Node | None, source: Source, root: MapNode) -> Prompts:
    """What `prompts` says."""
    found = list(_prompts(node, source)) if node is not None else []
    if len(found) == 1:
        return Prompts(_content(found[0], source))
    if not found:
        source.tell(node or root, "there are no prompts", "add 'input' to every case")
        return Prompts()
    return Prompts(head={"prompts": ListNode([_content(one, source) for one in found], root.at)})


def _prompts(node: Node, source: Source) -> Iterator[Node]:
    """Each prompt as a text, or as it was written where it is none."""
    if isinstance(node, ListNode):
        for item in node.items:
            yield from _prompts(item, source)
    elif isinstance(node, MapNode):
        yield from _labelled(node, source)
    elif _names_file(node, source):
        yield from _in_files(node, source)
    else:
        yield node


def _labelled(node: MapNode, source: Source) -> Iterator[Node]:
    text = node.get("raw") or node.get("prompt") or node.get("id")
    if not isinstance(text, Scalar):  # {path: label}
        for path in node.items:
            yield from _prompts(text_node(path, node.keys[path]), source)
        return
    for key in node.items.keys() - {"raw", "prompt", "id", "label"}:
        source.tell(node.keys[key], f"'{key}' of a prompt has no equivalent")
    yield from _prompts(text, source)


def _names_file(node: Scalar, source: Source) -> bool:
    text = node.text.strip()
    if text.startswith(FILE) or ("\n" not in text and is_file(str(source.directory / text))):
        return True
    if not has_magic(text) or "{{" in text or " " in text:
        return False
    if source.leaves(text):
        return bool(literal_part(text)) or climbs(text)  # `/help?` is asked, `../*.txt` is refused
    return bool(source.matched(node))


def _in_files(node: Scalar, source: Source) -> Iterator[Node]:
    text = node.text.strip()
    if source.is_code(text if text.startswith(FILE) else FILE + text):
        source.tell(node, f"the generated prompt '{text}' has no equivalent", "write its text, with placeholders")
        yield mapping(node, {"unconverted": node})
        return
    paths = source.matched(node)
    for path in [text] if paths == [] else paths or []:
        content = source.content(text_node(path, node.at))
        if content is None:
            yield mapping(node, {"unconverted": node})
            continue
        parts = _SEPARATOR.split(content.text) if path.endswith(".txt") else [content.text]
        for part in parts:
            yield text_node(part.strip("\n"), content.at)


def _content(node: Node, source: Source) -> Node:
    """A prompt as an input: a text, or messages where it is written as JSON."""
    if not isinstance(node, Scalar):
        return node
    return source.template(chat(node.text, node.at) or text_node(node.text, node.at))
