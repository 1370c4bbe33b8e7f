from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import pytest

from agentv.targets.http.bodies import LARGEST_BODY, PackedError, TooLargeError, bounded

TEXT = b"hello " * 1_000


async def chunks(data, size):
    for start in range(0, len(data), size):
        yield data[start : start + size]


def body(data, packed="", size=100):
    async def run():
        return [piece async for piece in bounded(chunks(data, size), packed)]

    return asyncio.run(run())


def raw(data):
    pack = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return pack.compress(data) + pack.flush()


def zipped(data):
    """The same bytes in every process, so that tests of several are called alike."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("packed", "data"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", zipped(TEXT)),
        ("GZIP ", zipped(TEXT)),
        ("x-gzip", zipped(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw(TEXT)),
    ],
)
@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_a_body_is_unpacked(packed, data, size):
    assert b"".join(body(data, packed, size)) == TEXT


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_what_unpacks_to_too_much_is_refused_and_never_whole(pack):
    packed = "gzip" if pack is gzip.compress else "deflate"
    data, seen = pack(b" " * (2 * LARGEST_BODY)), 0

    async def run():
        nonlocal seen
        async for piece in bounded(chunks(data, len(data)), packed):
            assert len(piece) <= 65_536
            seen += len(piece)

    with pytest.raises(TooLargeError):
        asyncio.run(run())
    assert seen <= LARGEST_BODY


@pytest.mark.parametrize("letter", ["a", "ä", "語", "😀", "[", ","])
def test_an_answer_as_long_as_may_be_is_read(letter):
    data = b'{"x": "' + letter.encode() * (10_000_000 // len(letter.encode())) + b'"}'
    assert len(b"".join(body(data, size=65_536))) == len(data)
    data = json.dumps({"x": letter * (10_000_000 // len(letter.encode()))}).encode()
    assert len(b"".join(body(data, size=65_536))) == len(data)


@pytest.mark.parametrize(
    ("packed", "data"),
    [
        ("br", TEXT),
        ("zstd", TEXT),
        ("gzip, gzip", zipped(zipped(TEXT))),
        ("gzip", TEXT),
        ("deflate", b"\x78\x9c!!!!"),
        ("gzip", zipped(TEXT)[:-9]),
    ],
)
def test_what_cannot_be_unpacked_is_refused(packed, data):
    with pytest.raises(PackedError):
        body(data, packed)
