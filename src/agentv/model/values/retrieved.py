"""Texts that a target retrieved before it answered.

An item is a string, or an object with `text`, `content` or `page_content` (LangChain). Its `source` or `id` names the
origin, and `score` says how well it matched. Other keys are kept as the item's `metadata`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from msgspec import Struct, field

from agentv.model.values.values import EMPTY, Json, JsonObject

TEXT_KEYS = ("text", "content", "page_content")
"""Keys of an item's text, in lookup order."""

SOURCE_KEYS = ("source", "id")

_OWN_KEYS = frozenset((*TEXT_KEYS, *SOURCE_KEYS, "score", "metadata"))

_DEEPEST = 100


class RetrievedText(Struct, frozen=True):
    """One retrieved text.

    Attributes:
        source: its origin, such as a path or an id.
        score: how well it matched, on the retriever's own scale; None if not reported.
        metadata: any other data that the target returned for it.
    """

    text: str
    source: str | None = None
    score: float | None = None
    metadata: JsonObject = field(default=EMPTY)

    def as_json(self) -> Json:
        """Return the text alone if nothing else is known, else an object."""
        if self.source is None and self.score is None and not self.metadata:
            return self.text
        known = {"text": self.text, "source": self.source, "score": self.score, "metadata": self.metadata or None}
        return {key: value for key, value in known.items() if value is not None}


def context_json(context: Iterable[RetrievedText]) -> list[Json]:
    """Return retrieved texts as plain data, readable by `read_context`."""
    return [one.as_json() for one in context]


def read_context(value: object, name: str = "context") -> tuple[RetrievedText, ...]:
    """Return the retrieved texts of a reply: one item, a list of items, or None for none.

    Args:
        value: the value that the target returned.
        name: its name in error messages.

    Raises:
        ValueError: it has another shape; the message names the item.
    """
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(_item(one, f"{name}[{place}]") for place, one in enumerate(value))
    return (_item(value, name),)


def text_in(item: Json) -> str | None:
    """Return the text of an item in plain data, or None if it has none."""
    if isinstance(item, str):
        return item
    if isinstance(item, Mapping):
        return next((found for key in TEXT_KEYS if isinstance(found := item.get(key), str)), None)
    return None


def context_texts(value: Json) -> tuple[str, ...]:
    """Return the texts in a string, an object, or a list of them, without blank ones.

    The text of an object is its `text`, `content` or `page_content`; any other object becomes JSON.
    """
    listed = value if isinstance(value, list | tuple) else [value]
    texts = []
    for one in listed:
        text = text_in(one)
        if text is None and one is not None:
            text = json.dumps(one, ensure_ascii=False, default=str)
        if text is not None and text.strip():
            texts.append(text)
    return tuple(texts)


def _item(value: Any, name: str) -> RetrievedText:
    if isinstance(value, RetrievedText):
        value = value.as_json()
    elif isinstance(getattr(value, "page_content", None), str):  # a Document of LangChain
        value = {"page_content": value.page_content, "metadata": getattr(value, "metadata", None)}
    if isinstance(value, str):
        return RetrievedText(value)
    if not isinstance(value, Mapping):
        raise ValueError(f"'{name}' must be text, or an object with 'text', found {kind_of(value)}")  # noqa: TRY004
    text = text_in(value)
    if text is None:
        keys = ", ".join(f"'{key}'" for key in list(value)[:8]) or "no keys"
        raise ValueError(f"'{name}' has no text under 'text', 'content' or 'page_content'; it has {keys}")
    given = value.get("metadata")
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"'{name}.metadata' must be an object, found {kind_of(given)}")
    others = {str(key): one for key, one in value.items() if key not in _OWN_KEYS}
    metadata = plain_object({**others, **(given or {})}, f"{name}.metadata")
    source = next((value[key] for key in SOURCE_KEYS if value.get(key) is not None), metadata.get("source"))
    source = None if source is None else str(source)
    return RetrievedText(text, source, _score(value.get("score"), f"{name}.score"), metadata)


def _score(value: object, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"'{name}' must be a number, found {value!r:.60}")
    return float(value)


def plain_object(value: Mapping[Any, Any], name: str) -> dict[str, Json]:
    """Return a copy of a mapping as plain data.

    Raises:
        ValueError: it contains a value that JSON cannot represent; the message names its path.
    """
    return {str(key): _plain(one, f"{name}.{key}", 1) for key, one in value.items()}


def _plain(value: Any, name: str, depth: int) -> Json:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"'{name}' must be JSON data, found {value}")
        return value
    if depth > _DEEPEST:
        raise ValueError(f"'{name:.60}…' is nested too deeply")
    if isinstance(value, Mapping):
        return {str(key): _plain(one, f"{name}.{key}", depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, f"{name}[{place}]", depth + 1) for place, one in enumerate(value)]
    raise ValueError(f"'{name:.200}' must be JSON data, found {kind_of(value)}")


def kind_of(value: object) -> str:
    """Return the name of a value's type for error messages."""
    return "null" if value is None else type(value).__name__
