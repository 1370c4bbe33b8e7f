"""Surcharges in replies: what was billed beside the tokens at the list price, so that no price list gives the cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_TOOL_ITEMS = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call")
"""Types of the items in OpenAI's responses that are calls of its own tools."""


def is_surcharged(found: Mapping[str, Any]) -> bool:
    """Whether an event or a whole reply of a model API tells of a dearer tier, or of a tool that the provider ran."""
    return any(_names_surcharge(one) for one in _objects(found))


def _objects(found: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The objects that may tell: the reply itself, and what stands directly in it."""
    yield found
    for key in ("response", "message", "item", "usage"):
        inner = found.get(key)
        if isinstance(inner, Mapping):
            yield inner
            if key != "usage" and isinstance(inner.get("usage"), Mapping):
                yield inner["usage"]
    for key in ("output", "candidates"):
        items = found.get(key)
        yield from (one for one in items if isinstance(one, Mapping)) if isinstance(items, list) else ()


def _names_surcharge(one: Mapping[str, Any]) -> bool:
    used = one.get("server_tool_use")
    if isinstance(used, Mapping) and any(isinstance(count, int) and count > 0 for count in used.values()):
        return True
    is_dearer = one.get("speed") == "fast" or (one.get("service_tier") == "priority" and "input_tokens" not in one)
    return is_dearer or one.get("type") in _TOOL_ITEMS or bool(one.get("groundingMetadata"))
