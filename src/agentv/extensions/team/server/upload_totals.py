"""Totals of pushed runs. Those of many rows are computed by a process of their own, for which nothing waits.

`python -m agentv.extensions.team.server.upload_totals DIRECTORY` is that process. It reads the pushed `summary.json`
from stdin.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from agentv.app.results.totals import totals_of_upload
from agentv.errors import StoreError
from agentv.store.files.directory import INDEX
from agentv.user_code.memory import map_large_blocks

_LARGE = 16_000_000
"""Bytes of rows whose totals take about half a second; those of more are computed by a process of their own."""

_NICENESS = 5
"""Pages come first."""


class UploadTotals:
    """Computes the totals of copies. Those of large runs wait for each other.

    Args:
        large: bytes of rows from which a process of its own computes.
    """

    def __init__(self, large: int = _LARGE) -> None:
        self._large = large
        self._worker = ThreadPoolExecutor(1, "agentv-totals")
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def of(self, run: Path, pushed: bytes) -> Future[bytes]:
        """The `summary.json` to store for a copy; a `StoreError` if its rows are malformed.

        Args:
            run: directory of the copy.
            pushed: the `summary.json` that was pushed.
        """
        if (run / INDEX).stat().st_size >= self._large:
            return self._worker.submit(self._of_process, run, pushed)
        found: Future[bytes] = Future()
        try:
            found.set_result(totals_of_upload(run, pushed))
        except Exception as error:  # noqa: BLE001  # rows may hold anything
            found.set_exception(error)
        return found

    def close(self) -> None:
        """End what is being computed."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        self._worker.shutdown(cancel_futures=True)

    def _of_process(self, run: Path, pushed: bytes) -> bytes:
        # -P: nothing is imported from the working directory
        command = [sys.executable, "-P", "-m", __name__, str(run)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as self._process:
            if self._closed:  # while the process began
                self._process.kill()
            found, _ = self._process.communicate(pushed)
        if self._process.returncode:
            raise StoreError(f"no totals: their process ended with {self._process.returncode}")
        return found


def _main() -> None:
    os.nice(_NICENESS)
    map_large_blocks()
    gc.set_threshold(100_000, 50, 100)  # as every command: rows are many objects and next to no cycles
    sys.stdout.buffer.write(totals_of_upload(Path(sys.argv[1]), sys.stdin.buffer.read()))


if __name__ == "__main__":
    _main()
