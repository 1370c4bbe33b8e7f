"""How many bytes this process reads from files and sockets."""

from collections.abc import Callable
from pathlib import Path

import pytest

_IO = Path("/proc/self/io")


def bytes_read(work: Callable[[], object]) -> int:
    """What the system counted while something worked. Where the system counts nothing, the test is skipped."""
    if not _IO.exists():
        pytest.skip("this system does not count the bytes that a process reads")
    before = _read()
    work()
    return _read() - before


def _read() -> int:
    return int(_IO.read_text().split()[1])
