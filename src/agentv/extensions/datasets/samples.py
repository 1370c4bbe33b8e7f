"""The common form of other tools' samples, and conversion of their messages (SPEC section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from agentv.authoring.convert.records import Findings, text
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    is_empty,
    mapping,
    node_of,
    plain,
    written,
)
from agentv.model.values.message import ROLES

DEEPEVAL = "deepeval"
OPENAI_EVALS = "openai-evals"
INSPECT = "inspect"
TAU_BENCH = "tau-bench"

TITLES = {
    DEEPEVAL: "goldens of deepeval",
    OPENAI_EVALS: "samples of OpenAI evals",
    INSPECT: "samples of Inspect",
    TAU_BENCH: "tasks of tau-bench",
}
"""Format → what a file of it contains, for messages."""


Entry: TypeAlias = dict[str, Any]
"""One entry of `assert`, as plain data."""


class DatasetSample(Struct, frozen=True):
    """One sample.

    Attributes:
        input: text, or a list of messages in agentv's form; None if a simulated user writes the first message.
        references: right answers; an answer must match one of them.
        at: where the sample starts.
        variables: `vars` of the case.
        name: becomes the id if the sample has none; several samples may share it.
        choices: answers to choose from, which the input does not show.
        user: the simulated user who talks with the target; None if only the input is sent.
        checks: assertions that the sample itself implies.
        solution: tool calls that make the case pass, if they are known.
    """

    input: Node | None
    references: tuple[str, ...]
    at: Place
    id: str | None = None
    name: str | None = None
    description: str | None = None
    variables: Mapping[str, Node] = field(default_factory=dict)
    metadata: Mapping[str, Node] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    user: Node | None = None
    checks: tuple[Entry, ...] = ()
    solution: Node | None = None


def text_of(node: Node | None) -> str | None:
    """The text of a scalar, as written; None for null, blank text, lists, mappings and no node."""
    if not isinstance(node, Scalar) or is_empty(node):
        return None
    return node.value if isinstance(node.value, str) else written(node.value)


_KEPT = frozenset({"role", "content", "name", "tool_calls"})
_WITHOUT_MEANING = frozenset({"id", "source", "model", "internal", "metadata", "tool_call_id", "function"})
"""Keys that identify or describe a message and are not part of its text."""


def input_of(node: Node | None, record: MapNode, findings: Findings) -> Node | None:
    """The input of a sample, text or messages, or None if it is invalid, which is reported."""
    if node is None or is_empty(node):
        findings.error("missing-input", record, "this sample has no 'input'")
        return None
    if isinstance(node, Scalar):
        return text(text_of(node) or "", node)
    if isinstance(node, MapNode):
        findings.unfit(node, "'input' must be text or a list of messages", "bad-message")
        return None
    return messages_of(node, findings)


def messages_of(node: Node, findings: Findings) -> ListNode | None:
    """The messages of a list, or None if one is invalid, which is reported."""
    if not isinstance(node, ListNode):
        findings.unfit(node, "a conversation must be a list of messages", "bad-message")
        return None
    messages = [_message(item, findings) for item in node.items]
    found: list[Node] = [one for one in messages if one is not None]
    return ListNode(found, node.at) if len(found) == len(messages) else None


def _message(node: Node, findings: Findings) -> MapNode | None:
    if not isinstance(node, MapNode):
        findings.unfit(node, "a message must be an object with 'role'", "bad-message")
        return None
    role = text_of(node.get("role"))
    if role not in ROLES:
        found = f"the role '{role}'" if role else "a message without a role"
        findings.error("bad-message", node, f"{found} has no equivalent", f"roles are {', '.join(ROLES)}")
        return None
    for key in node.items.keys() - _KEPT - _WITHOUT_MEANING:
        if not is_empty(node.items[key]):
            findings.omitted(node, f"'{key}' of a message is omitted")
    calls = _tool_calls(node.get("tool_calls"), findings)
    content = _content(node.get("content"), node, findings, may_be_empty=role != "user")
    if calls is None or content is None:
        return None
    made: dict[str, Node] = {"role": text(role, node), "content": content}
    name = text_of(node.get("name"))
    if name is not None:
        made["name"] = text(name, node)
    if calls:
        made["tool_calls"] = ListNode(calls, node.at)
    return mapping(made, node.at)


def _content(node: Node | None, message: MapNode, findings: Findings, *, may_be_empty: bool) -> Node | None:
    if node is None or is_empty(node):
        if may_be_empty:
            return text("", message)
        findings.error("missing-value", message, "a user message has no 'content'")
        return None
    if isinstance(node, Scalar):
        return text(text_of(node) or "", node)
    if isinstance(node, MapNode):
        findings.unfit(node, "'content' must be text or a list of parts", "bad-message")
        return None
    blocks = [_block(item, findings) for item in node.items]
    found = [one for one in blocks if one is not None]
    return ListNode(list(found), node.at) if len(found) == len(blocks) else None


def _block(node: Node, findings: Findings) -> Node | None:
    """Convert a part of content: text, or a picture by its URL."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _typed("text", node, node)
    items: Mapping[str, Node] = node.items if isinstance(node, MapNode) else {}
    kind = text_of(items.get("type"))
    if kind in ("text", "input_text") and isinstance(items.get("text"), Scalar):
        return _typed("text", items["text"], node)
    picture = items.get("image_url", items.get("image"))
    if isinstance(picture, MapNode):
        picture = picture.get("url")
    address = text_of(picture)
    message = f"content of type '{kind}' has no equivalent" if kind else "bad content"
    hint = None
    if kind in ("image", "image_url", "input_image") and picture is not None and address is not None:
        if address.startswith(("http://", "https://", "data:")):
            return _typed("image", picture, node)
        message = f"the picture '{address[:60]}' is a file, which is not converted"
        hint = "use an address that starts with https: or data:"
    findings.error("no-equivalent", node, message, hint)
    return None


def _typed(kind: str, value: Node, at: Node) -> MapNode:
    return mapping({"type": text(kind, at), "value": value}, at.at)


def _tool_calls(node: Node | None, findings: Findings) -> list[Node] | None:
    """Tool calls as `{name, arguments, id}`, or None if one is invalid, which is reported."""
    if node is None or is_empty(node):
        return []
    made: list[Node] = []
    for item in node.items if isinstance(node, ListNode) else [node]:
        call = plain(item)
        inner = call.get("function") if isinstance(call, dict) else None
        function = inner if isinstance(inner, dict) else call
        name = inner if isinstance(inner, str) else function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or not name:
            findings.error("bad-message", item, "a tool call has no name")
            return None
        one = {"id": call.get("id"), "name": name, "arguments": function.get("arguments")}
        made.append(node_of({key: value for key, value in one.items() if value is not None}, item.at))
    return made
