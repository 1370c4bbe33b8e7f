"""Types that several threads decode JSON into.

msgspec 0.22 describes a type when it is first decoded into. Where two threads do so at the same time, one of them reads
a description that is not complete, and the process crashes. So the first description is made by one thread.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

Decoded = TypeVar("Decoded")

_DESCRIBING = Lock()


def described(kind: type[Decoded]) -> type[Decoded]:
    """The type, which any number of threads may now decode into."""
    hashable: Any = kind
    with _DESCRIBING:
        _describe(hashable)
    return kind


@cache
def _describe(kind: Any) -> None:
    msgspec.json.Decoder(kind)
