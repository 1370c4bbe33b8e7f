"""Totals of pushed runs. Those of many rows are computed by a process of their own: pages do not wait for them.

`python -m agentv.extensions.team.server.upload_totals DIRECTORY` is that process. It reads the pushed `summary.json`
from stdin.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

from agentv.app.results.totals import totals_of_upload
from agentv.errors import StoreError
from agentv.store.files.directory import INDEX
from agentv.user_code.processes.memory import map_large_blocks

_LARGE = 16_000_000
"""Bytes of rows whose totals take about half a second; those of more are computed by a process of their own."""

_NICENESS = 5
"""Pages come first."""


def totals_of_copy(run: Path, pushed: bytes, large: int = _LARGE) -> bytes:
    """The `summary.json` to store for a copy.

    Args:
        run: directory of the copy.
        pushed: the `summary.json` that was pushed.
        large: bytes of rows from which a process of its own computes.

    Raises:
        StoreError: its files cannot be read, or its rows are malformed.
    """
    if (run / INDEX).stat().st_size < large:
        return totals_of_upload(run, pushed)
    # -P: nothing is imported from the working directory
    command = [sys.executable, "-P", "-m", __name__, str(run)]
    done = subprocess.run(command, input=pushed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise StoreError(f"no totals: their process ended with {done.returncode}")
    return done.stdout


def _main() -> None:
    os.nice(_NICENESS)
    map_large_blocks()
    gc.set_threshold(100_000, 50, 100)  # as every command: rows are many objects and next to no cycles
    sys.stdout.buffer.write(totals_of_upload(Path(sys.argv[1]), sys.stdin.buffer.read()))


if __name__ == "__main__":
    _main()
