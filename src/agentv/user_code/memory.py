"""Memory of processes that live long: large blocks are separate mappings, which are given back once they are freed.

Of an allocator that is not glibc's, nothing is changed.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_M_MMAP_THRESHOLD = -3  # of <malloc.h>
_LARGE = 128 << 10
"""Bytes; with this value glibc starts."""


def map_large_blocks() -> None:
    """Have every block of 128 KB or more be a mapping of its own, for as long as the process lives.

    glibc begins so, but once such a block is freed, blocks of its size (up to 32 MB) come from heaps, which several
    threads share. Arrays that grow leave holes there: with 30 MB of arrays of a million cases a process grew by
    59 MB, and by 29 MB with this (mallopt(3), M_MMAP_THRESHOLD).
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # a C library without mallopt
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
