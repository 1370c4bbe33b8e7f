"""Content blocks of OpenAI's and Anthropic's APIs, in messages of promptfoo's prompts, as ours."""

from __future__ import annotations

from agentv.authoring.convert.promptfoo.source import Source, mapping, text_node
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar

_TEXTS = frozenset({"text", "input_text"})
_IMAGES = frozenset({"image_url", "input_image"})


def messages_in(node: Node, source: Source) -> Node:
    """The messages with the blocks of their contents as ours. What has no equivalent stays, and is reported."""
    if isinstance(node, ListNode):
        return ListNode([messages_in(item, source) for item in node.items], node.at)
    content = node.get("content") if isinstance(node, MapNode) else None
    if not isinstance(node, MapNode) or not isinstance(content, ListNode):
        return node
    blocks: list[Node] = [_block(item, source) for item in content.items]
    return mapping(node, {**node.items, "content": ListNode(blocks, content.at)})


def _block(node: Node, source: Source) -> Node:
    if not isinstance(node, MapNode):
        return node
    kind = node.get("type")
    name = kind.text if isinstance(kind, Scalar) else ""
    value = node.get("text") if name in _TEXTS else _picture(name, node)
    if value is None:
        if "value" not in node.items:
            source.tell(node, f"a '{name}' block of a message has no equivalent", "agentv has text, image and file")
        return node
    at = kind.at if kind is not None else node.at
    return mapping(node, {"type": text_node("text" if name in _TEXTS else "image", at), "value": value})


def _picture(kind: str, node: MapNode) -> Node | None:
    """The address of a picture, or the picture itself as a data URL."""
    if kind in _IMAGES:
        said = node.get("image_url")
        return said.get("url") if isinstance(said, MapNode) else said
    source = node.get("source") if kind == "image" else None
    if not isinstance(source, MapNode):
        return None
    data, media = source.get("data"), source.get("media_type")
    if isinstance(data, Scalar) and isinstance(media, Scalar):
        return text_node(f"data:{media.text};base64,{data.text}", data.at)
    return source.get("url")
