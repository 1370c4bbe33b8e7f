"""Content of a message, attached documents too, as the parts of an API's own shape."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from agentv.model.values.message import DocumentBlock, ImageBlock, Message
from agentv.model.values.response import Failure

PDF = "application/pdf"
LARGEST_PDF = 50_000_000
"""Bytes of a PDF that is read. Every API refuses less than that, in its own words."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A PDF by its bytes: the `name` of its file without directories, and the bytes as `base64`."""

    name: str
    base64: str

    @property
    def data_url(self) -> str:
        """Media type and bytes as a data URL, which OpenAI's API accepts."""
        return f"data:{PDF};base64,{self.base64}"


def document_of(block: DocumentBlock) -> Attached | Failure:
    """A PDF with its bytes, or why it cannot be sent (code `bad-document`)."""
    try:
        return _read(block.path, block.sha256)
    except OSError as error:
        return Failure("bad-document", f"'{block.value}' cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Failure("bad-document", f"'{block.value}' {error}")


def not_taken(block: DocumentBlock, who: str) -> Failure:
    """Why a PDF cannot be sent to an API that has no place for one."""
    return Failure(
        "bad-document", f"{who} does not accept PDFs: replace '{block.value}' with pictures of its pages, or its text"
    )


@lru_cache(maxsize=16)
def _read(path: str, _sha256: str) -> Attached:
    """A file, read once as long as it is the same, since many cases show the same one.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too large; the text begins with a verb.
    """
    file = Path(path)
    if file.stat().st_size > LARGEST_PDF:
        raise ValueError(f"is larger than {LARGEST_PDF / 1_000_000:g} MB")
    return Attached(file.name, base64.b64encode(file.read_bytes()).decode())


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
