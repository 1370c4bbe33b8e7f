"""Content of a message as the parts of an API's own shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from agentv.model.values.message import DocumentBlock, ImageBlock, Message
from agentv.model.values.response import Failure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartBuilders(Generic[T]):
    """How an API writes a text, a picture and a PDF."""

    text: Callable[[str], T]
    image: Callable[[ImageBlock], T | Failure]
    document: Callable[[DocumentBlock], T | Failure]


def content_parts(message: Message, builders: PartBuilders[T]) -> list[T] | Failure:
    """The parts of a message, none of them empty, as the APIs want it; files are texts under their paths.

    A Failure is a picture or a PDF that cannot be read.
    """
    parts: list[T] = []
    for part in _parts(message, builders):
        if isinstance(part, Failure):
            return part
        parts.append(part)
    return parts


def _parts(message: Message, builders: PartBuilders[T]) -> Iterator[T | Failure]:
    if not isinstance(message.content, tuple):
        if message.text:
            yield builders.text(message.text)
        return
    for block in message.content:
        if isinstance(block, ImageBlock):
            yield builders.image(block)
        elif isinstance(block, DocumentBlock):
            yield builders.document(block)
        elif text := Message(message.role, (block,)).text:
            yield builders.text(text)
