"""The files that agents left in a run, with the hashes of their contents."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from hashlib import file_digest
from pathlib import Path

from agentv.extensions.team.store.uploaded import LARGEST_BATCH
from agentv.store.files.directory import ARTIFACTS
from agentv.user_code.os_errors import store_error

_SETTLED_S = 1.0
"""Seconds after which a file is not being written any more."""


class Artifacts:
    """The artifacts of one run. Links are left out.

    Args:
        run: its directory.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._sent: dict[str, str] = {}
        self._hashed: dict[str, tuple[tuple[int, int], str]] = {}
        self._too_large: dict[str, None] = {}

    @property
    def too_large(self) -> tuple[str, ...]:
        """Paths of files that cannot be sent."""
        return tuple(self._too_large)

    def new(self, *, settled: bool = False) -> dict[str, str]:
        """Path below the run → SHA-256, of all files that were not sent with this content.

        Args:
            settled: leave out what was written a moment ago.

        Raises:
            StoreError: a file cannot be read.
        """
        latest = time.time() - _SETTLED_S if settled else float("inf")
        found: dict[str, str] = {}
        for path in self._files():
            shown = path.relative_to(self._run).as_posix()
            try:
                stat = path.stat()
                if stat.st_size > LARGEST_BATCH:
                    self._too_large[shown] = None
                elif stat.st_mtime <= latest:
                    digest = self._digest(path, shown, (stat.st_mtime_ns, stat.st_size))
                    if self._sent.get(shown) != digest:
                        found[shown] = digest
            except OSError as error:
                raise store_error("read", path, error) from error
        return found

    def were_sent(self, files: Mapping[str, str]) -> None:
        """The server has these."""
        self._sent.update(files)

    def _files(self) -> Iterator[Path]:
        if (self._run / ARTIFACTS).is_symlink():
            return
        for directory, _, names in os.walk(self._run / ARTIFACTS):
            for path in (Path(directory, name) for name in sorted(names)):
                if not path.is_symlink() and path.is_file():
                    yield path

    def _digest(self, path: Path, shown: str, state: tuple[int, int]) -> str:
        known = self._hashed.get(shown)
        if known is not None and known[0] == state:
            return known[1]
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        self._hashed[shown] = state, digest
        return digest
