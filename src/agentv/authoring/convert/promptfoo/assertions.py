"""promptfoo's assertions as ours. What has no equivalent stays as it was written, so that it is refused."""

from __future__ import annotations

import csv
import re

from agentv.authoring.cases.csv_expected import LIST_TYPES
from agentv.authoring.convert.promptfoo.source import FILE, Source, mapping, text_node
from agentv.authoring.convert.promptfoo.tables import (
    ABSENT,
    ASSERTION_KEYS,
    MEASURES,
    NOT_CONVERTED,
    OWN_THRESHOLD,
    RENAMED,
    SAME,
    SCHEMAS,
    THRESHOLDS,
    TRIMMED,
    USED,
)
from agentv.authoring.convert.promptfoo.targets import embedder_of, judge_of
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar

UNCONVERTED = "unconverted"
"""The key under which stands what would be read as something else here, were it left alone."""

_MEMBER = re.compile(r"output(?:\.[A-Za-z_]\w*)+")
_KNOWN = {*ASSERTION_KEYS, *NOT_CONVERTED, "threshold", "provider"}


def assertions(node: Node, source: Source) -> Node:
    """The entries of an `assert:` list."""
    if not isinstance(node, ListNode):
        source.tell(node, "'assert' is not a list")
        return node
    return ListNode([_entry(item, source) for item in node.items], node.at)


def _entry(node: Node, source: Source) -> Node:
    if not isinstance(node, MapNode):
        source.tell(node, "an assertion in promptfoo is a mapping", "write it as a mapping with 'type'")
        return node if not isinstance(node, Scalar) else mapping(node, {UNCONVERTED: node})
    kind = node.get("type")
    if not isinstance(kind, Scalar) or not isinstance(kind.value, str):
        source.tell(node, "this assertion has no type")
        return mapping(node, {UNCONVERTED: node})
    inverted = kind.value.startswith("not-")
    name = kind.value.removeprefix("not-")
    if name == "assert-set":
        return _set(node, source)
    ours = name if name in SAME else RENAMED.get(name)
    if ours is None:
        source.tell(kind, f"'{name}' has no equivalent", ABSENT.get(name, "write it as an agentv assertion"))
        return node  # its type is none here, and is refused
    return _converted(node, text_node(f"not-{ours}" if inverted else ours, kind.at), ours, source)


def _set(node: MapNode, source: Source) -> Node:
    items: dict[str, Node] = {}
    for key, item in node.items.items():
        if key == "assert":
            items[key] = assertions(item, source)
        elif key in ("metric", "type", "weight", "threshold"):
            items[ASSERTION_KEYS.get(key, key)] = item
        else:
            source.tell(node.keys[key], f"'{key}' of an assert-set has no equivalent")
            items[key] = item
    if "threshold" not in items:  # without one, every assertion of a set must pass
        items["threshold"] = Scalar(1, "1", node.at)
    return mapping(node, items)


def _converted(node: MapNode, kind: Scalar, ours: str, source: Source) -> Node:
    items: dict[str, Node] = {}
    for key, item in node.items.items():
        if key == "threshold":
            items["threshold" if ours in OWN_THRESHOLD else "min_score"] = item
        elif key == "provider":
            option, asked = ("embedder", embedder_of) if ours == "similar" else ("judge", judge_of)
            found = asked(item, source)
            items[option if found is not None else key] = found or item
        elif key == "contextTransform" and isinstance(item, Scalar) and _MEMBER.fullmatch(item.text):
            items["context_transform"] = text_node(f"${item.text.removeprefix('output')}", item.at)
        elif key in NOT_CONVERTED:
            source.tell(node.keys[key], f"'{key}' is not converted", NOT_CONVERTED[key])
            items[f"{UNCONVERTED}_{key}"] = item
        else:
            if key not in _KNOWN:
                source.tell(node.keys[key], f"'{key}' of '{ours}' has no equivalent")
            items[ASSERTION_KEYS.get(key, key)] = item
    items["type"] = kind
    _as_promptfoo_measures(items, node, kind, ours)
    value = items.get("value")
    if value is not None:
        written = _value(value, ours, source)
        if written is None:
            return mapping(node, {UNCONVERTED: node})
        items["value"] = written
    _as_promptfoo_compares(items, kind, ours)
    return mapping(node, items)


def _as_promptfoo_measures(items: dict[str, Node], node: MapNode, kind: Scalar, ours: str) -> None:
    """What is another there where nothing is said: the threshold, and how embeddings are compared."""
    if ours in THRESHOLDS:
        items.setdefault("threshold", Scalar(THRESHOLDS[ours], str(THRESHOLDS[ours]), node.at))
    measure = MEASURES.get(_name(node))
    if measure is not None:
        items["measure"] = text_node(measure, kind.at)


def _name(node: MapNode) -> str:
    """Its type as promptfoo names it, without what inverts it."""
    kind = node.get("type")
    return kind.text.removeprefix("not-") if isinstance(kind, Scalar) else ""


def _as_promptfoo_compares(items: dict[str, Node], kind: Scalar, ours: str) -> None:
    """What is meant there and not here: white space counts, a negated list forbids each of its names, and others."""
    if ours in TRIMMED and isinstance(items.get("value"), Scalar):
        items["trim"] = Scalar(False, "false", kind.at)
    if ours in USED:
        _as_promptfoo_counts(items, kind, ours)


def _as_promptfoo_counts(items: dict[str, Node], kind: Scalar, ours: str) -> None:
    """A negated list forbids each of its names, and a skill's `max` allows none."""
    value = items.get("value")
    if isinstance(value, ListNode) and kind.text != ours:
        items["match"] = text_node("any", kind.at)
    if isinstance(value, MapNode) and ours == "skill-used" and "max" in value.items and "min" not in value.items:
        items["value"] = mapping(value, {**value.items, "min": Scalar(0, "0", value.at)})


def _value(node: Node, ours: str, source: Source) -> Node | None:
    """The value as it is written here; None where that is impossible, which is reported."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        if ours in ("python", "javascript"):
            return _code(node, ours, source)
        if source.is_code(node.value):
            hint = "write an assertion of type python that names a function"
            source.tell(node, f"the computed value '{node.text}' has no equivalent", hint)
            return None
        if node.value.startswith(FILE) and ours not in SCHEMAS:
            content = source.content(node)
            if content is None:
                return None
            node = content
        if ours in LIST_TYPES:
            node = ListNode([text_node(item, node.at) for item in _split(node.text)], node.at)
        elif ours == "regex":
            return _pattern(node, source)
    return source.template(node)


def _split(text: str) -> list[str]:
    """The items of a text with commas; those in quotes may hold some."""
    rows = list(csv.reader([text], skipinitialspace=True))
    return [item.strip() for item in (rows[0] if rows else [])]


def _pattern(node: Scalar, source: Source) -> Node | None:
    try:
        re.compile(node.text)
    except re.error as error:
        source.tell(
            node,
            f"the pattern is a JavaScript regex that Python cannot compile: {error}",
            "write it in Python's syntax",
        )
        return None
    return source.template(node)


def _code(node: Scalar, ours: str, source: Source) -> Node:
    if node.value.startswith(FILE):
        path = node.value.removeprefix(FILE)
        if ours == "python" and ".py:" not in path:
            return text_node(f"{path}:get_assert", node.at)
        return text_node(path, node.at)
    if ours == "python" and re.search(r"\bcontext\b", node.value):
        hint = "write context.vars, not context['vars']"
        source.tell(node, "'context' is an object in agentv, but a mapping in promptfoo", hint)
    return node
