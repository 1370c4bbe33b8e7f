"""Count the bytes that this process reads from files and sockets."""

from collections.abc import Callable
from pathlib import Path

import pytest

_IO = Path("/proc/self/io")


def bytes_read(work: Callable[[], object]) -> int:
    """Return the number of bytes read by `work`; skip the test where the system does not count them."""
    if not _IO.exists():
        pytest.skip("this system does not count the bytes that a process reads")
    before = _read()
    work()
    return _read() - before


def _read() -> int:
    return int(_IO.read_text().split()[1])
