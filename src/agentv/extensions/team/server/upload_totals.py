"""Totals of pushed runs. Those of many rows are computed by a process of their own: nothing waits for them meanwhile.

`python -m agentv.extensions.team.server.upload_totals DIRECTORY` is that process. It reads the pushed `summary.json`
from stdin.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from agentv.app.results.totals import totals_of_upload
from agentv.errors import StoreError
from agentv.store.files.directory import INDEX, RUN
from agentv.user_code.processes.memory import map_large_blocks

_LARGE = 16_000_000
"""Bytes of rows whose totals take about half a second; those of more are computed by a process of their own."""

_NICENESS = 5
"""Pages come first."""


class _Inputs(NamedTuple):
    """What the totals of a run are computed from: the pushed ones, `run.json`, and the size and time of its rows."""

    pushed: bytes
    record: bytes
    size: int
    changed_ns: int

    @classmethod
    def of(cls, run: Path, pushed: bytes) -> _Inputs:
        rows = (run / INDEX).stat()
        return cls(pushed, (run / RUN).read_bytes(), rows.st_size, rows.st_mtime_ns)


class _Job(NamedTuple):
    inputs: _Inputs
    process: subprocess.Popen[bytes]
    printed: IO[bytes]

    @property
    def goes_on(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """End the process, however far it is."""
        self.process.kill()
        self.process.wait()
        self.printed.close()

    def totals(self) -> bytes:
        """What it printed, once it has ended.

        Raises:
            StoreError: it failed.
        """
        with self.printed:
            if self.process.returncode:
                raise StoreError(f"no totals: their process ended with {self.process.returncode}")
            self.printed.seek(0)
            return self.printed.read()


class UploadTotals:
    """The totals of the copies of a server. One process at a time computes; further runs wait for it.

    Args:
        large: bytes of rows from which a process of its own computes.
    """

    def __init__(self, large: int = _LARGE) -> None:
        self._large = large
        self._jobs: dict[Path, _Job] = {}

    def __call__(self, run: Path, pushed: bytes) -> bytes | None:
        """The `summary.json` to store for a copy; None: not known yet, ask again.

        Args:
            run: directory of the copy.
            pushed: the `summary.json` that was pushed.

        Raises:
            StoreError: its files cannot be read, or its rows are malformed.
        """
        inputs = _Inputs.of(run, pushed)
        if inputs.size < self._large:
            return totals_of_upload(run, pushed)
        job = self._jobs.get(run)
        if job is not None and job.inputs != inputs:
            self._jobs.pop(run).end()
            job = None
        if job is None:
            self._forget_deleted()
            if not any(one.goes_on for one in self._jobs.values()):
                self._jobs[run] = _started(run, inputs)
            return None
        return None if job.goes_on else self._jobs.pop(run).totals()

    def close(self) -> None:
        """End what goes on."""
        for run in list(self._jobs):
            self._jobs.pop(run).end()

    def _forget_deleted(self) -> None:
        for run in [one for one in self._jobs if not one.exists()]:
            self._jobs.pop(run).end()


def _started(run: Path, inputs: _Inputs) -> _Job:
    # -P: nothing is imported from the working directory
    command = [sys.executable, "-P", "-m", __name__, str(run)]
    printed = TemporaryFile()  # noqa: SIM115  # closed with the job
    with TemporaryFile() as given:
        given.write(inputs.pushed)
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=printed, stderr=subprocess.DEVNULL)  # no shell
    return _Job(inputs, process, printed)


def _main() -> None:
    os.nice(_NICENESS)
    map_large_blocks()
    gc.set_threshold(100_000, 50, 100)  # as every command: rows are many objects and next to no cycles
    sys.stdout.buffer.write(totals_of_upload(Path(sys.argv[1]), sys.stdin.buffer.read()))


if __name__ == "__main__":
    _main()
