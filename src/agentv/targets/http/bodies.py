"""Bodies of replies, unpacked a piece at a time and counted: a megabyte can unpack to gigabytes (a "bomb")."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

LARGEST_BODY = 32_000_000
"""Bytes of a reply: an answer of 10 MB, every letter beyond ASCII escaped; more is never read."""

LARGEST_TEXT = 48_000_000
"""Bytes that a reply may take as text: one letter beyond the first 65,536 of Unicode makes each letter take four."""

ENCODINGS = "gzip, deflate"
"""In which replies may be packed: what unpacks in pieces with nothing else installed."""

_PIECE = 65_536
_GZIP = zlib.MAX_WBITS | 16
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


_WIDE = re.compile(rb"[\xf0-\xf7]")


class TooLargeError(Exception):
    """The body of a reply is larger than is read."""


class PackedError(ValueError):
    """The body of a reply cannot be unpacked."""


class Size:
    """What the body of a reply takes: its bytes, and its text."""

    __slots__ = ("_bytes", "_width")

    def __init__(self) -> None:
        self._bytes = 0
        self._width = 1

    def takes(self, piece: bytes) -> bool:
        """Take in the next bytes after unpacking; False where the body is too large with them."""
        self._bytes += len(piece)
        if self._width < 4 and not piece.isascii():  # bytes of the widest letters
            self._width = 4 if _WIDE.search(piece) else 2
        return self._bytes <= LARGEST_BODY and self._bytes * self._width <= LARGEST_TEXT


async def bounded(chunks: AsyncIterable[bytes], packed: str) -> AsyncIterator[bytes]:
    """The body, unpacked.

    Args:
        chunks: as they come over the network.
        packed: the header `Content-Encoding`, or an empty text.

    Raises:
        TooLargeError: `Size` refuses it.
        PackedError: it is packed in another way than was asked for, or not as it says.
    """
    size = Size()
    async for chunk in _unpacked(chunks, packed.strip().lower()):
        if not size.takes(chunk):
            raise TooLargeError
        yield chunk


class BoundedBody:
    """Base of a response stream of httpx or httpx2 whose body is unpacked here, a piece at a time, and counted.

    Those libraries unpack all of a piece at once.
    """

    def __init__(self, response: Any) -> None:
        self._stream = response.stream
        self._packed = response.headers.pop("content-encoding", "")

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded(self._stream, self._packed)

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._stream.aclose()


async def _unpacked(chunks: AsyncIterable[bytes], packed: str) -> AsyncIterator[bytes]:
    unpack: zlib._Decompress | None = None
    if packed not in ("", "identity", *_WINDOWS):
        raise PackedError(f"the response is encoded with {packed[:40]!r}, but the request accepts only {ENCODINGS}")
    async for chunk in chunks:
        if packed not in _WINDOWS:
            yield chunk
            continue
        rest = chunk
        try:
            while rest:
                unpack = unpack or _unpacker(packed, rest[0])
                yield unpack.decompress(rest, _PIECE)
                rest = unpack.unconsumed_tail
        except zlib.error as error:
            raise PackedError(f"the response cannot be decompressed: {error}") from error
    if unpack is not None and not unpack.eof:
        raise PackedError("the compressed response is incomplete")


def _unpacker(packed: str, first: int) -> zlib._Decompress:
    """What unpacks a body by its first byte: some servers send `deflate` without the header that RFC 9110 wants."""
    raw = packed == "deflate" and first & 0xF != zlib.DEFLATED
    return zlib.decompressobj(-zlib.MAX_WBITS if raw else _WINDOWS[packed])
