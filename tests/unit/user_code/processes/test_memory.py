"""Large blocks of memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_PROGRAM = """
import ctypes
import sys
from pathlib import Path
from agentv.user_code.processes.memory import map_large_blocks

if sys.argv[1] == "map":
    map_large_blocks()
for _ in range(3):
    freed = bytearray(20_000_000)
    del freed
block = bytearray(b"x" * 8_000_000)
where = ctypes.addressof((ctypes.c_char * 1).from_buffer(block))
heap = next(line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith("[heap]"))
first, last = (int(one, 16) for one in heap.split()[0].split("-"))
print("heap" if first <= where < last else "mapped")
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc's allocator")
@pytest.mark.parametrize(("given", "found"), [("map", "mapped"), ("leave", "heap")])
def test_a_large_block_is_a_mapping_also_after_a_larger_one_was_freed(given, found):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, given], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == found
