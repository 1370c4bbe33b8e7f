"""Content blocks of OpenAI's and Anthropic's APIs, in messages of promptfoo's prompts, as ours."""

from __future__ import annotations

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.extensions.promptfoo.translation.pictures import shown_picture
from agentv.extensions.promptfoo.translation.source import Source, mapping, text_node

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
    name = kind.text if isinstance(kind, Scalar) else "text" if node.items.keys() == {"text"} else ""
    value = node.get("text") if name in _TEXTS else _picture(name, node, source)
    if value is None:
        if "value" not in node.items:
            source.tell(node, f"a '{name}' block of a message has no equivalent", "agentv has text, image and file")
        return node
    at = kind.at if kind is not None else node.at
    return mapping(node, {"type": text_node("text" if name in _TEXTS else "image", at), "value": value})


def _picture(kind: str, node: MapNode, source: Source) -> Node | None:
    """The address of a picture, the picture itself as a data URL, or the placeholder of the variable that names it."""
    if kind in _IMAGES:
        said = node.get("image_url")
        address = said.get("url") if isinstance(said, MapNode) else said
        shown = shown_picture(address, source.pictures)
        return address if shown is None or address is None else text_node(shown, address.at)
    return _of_bytes(node, source) if kind in ("", "image") else None


def _of_bytes(node: MapNode, source: Source) -> Node | None:
    """Anthropic's `{type: image, source: …}`, and Amazon's `{image: {format: …, source: {bytes: …}}}`."""
    inner = node.get("image")
    given = inner.get("source") if isinstance(inner, MapNode) else node.get("source")
    if not isinstance(given, MapNode):
        return None
    data, media = given.get("data") or given.get("bytes"), given.get("media_type")
    shown = shown_picture(data, source.pictures)
    if shown is not None and data is not None:
        return text_node(shown, data.at)
    if isinstance(data, Scalar) and isinstance(media, Scalar):
        return text_node(f"data:{media.text};base64,{data.text}", data.at)
    return given.get("url")
