"""Protection of the small files of a run: while it goes, nothing but agentv writes to them."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from agentv.store.files.directory import HISTORY, REJECTED, RUN, SEARCHED, SUMMARY, VIEWED, write_private

_ABSENT = (SUMMARY, SEARCHED, VIEWED)
"""Files that are written, or built, when the run has ended: one that is there before is not agentv's."""

_COUNTED = (HISTORY, REJECTED)
"""Files that are done with when the first trial starts."""


class WatchedFiles(Struct):
    """The contents of these files, as agentv wrote them.

    Args:
        run: the directory.
        record: the bytes of `run.json`.
    """

    run: Path
    record: bytes
    _written: dict[str, bytes] = field(default_factory=dict)
    _digests: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._written[RUN] = self.record
        for name in (SEARCHED, VIEWED):
            (self.run / name).unlink(missing_ok=True)  # of rows that are about to change
        self._digests = {name: _digest(self.run / name) for name in _COUNTED}

    def wrote(self, name: str, content: bytes) -> None:
        """A file was written: so it stays."""
        self._written[name] = content

    def appended(self, name: str) -> None:
        """Lines were added to a file: what is in it now stays."""
        self._digests[name] = _digest(self.run / name)

    def restore(self) -> tuple[str, ...]:
        """Undo what something else wrote, as far as possible; what it was, one sentence each.

        Raises:
            OSError: the system refuses.
        """
        found = [note for name, content in self._written.items() if (note := self._rewritten(name, content))]
        found += [note for name in _ABSENT if name not in self._written and (note := self._removed(name))]
        return (*found, *(note for name in _COUNTED if (note := self._changed(name))))

    def _rewritten(self, name: str, content: bytes) -> str | None:
        path = self.run / name
        if _digest(path) == hashlib.sha256(content).hexdigest():
            return None
        _clear(path)
        self.run.mkdir(parents=True, exist_ok=True)
        write_private(path, content)
        return f"{name} was changed or removed: agentv's version is restored"

    def _removed(self, name: str) -> str | None:
        path = self.run / name
        if not os.path.lexists(path):
            return None
        _clear(path)
        return f"{name} was added by another program: it is removed"

    def _changed(self, name: str) -> str | None:
        now = _digest(self.run / name)
        if now == self._digests[name]:
            return None
        self._digests[name] = now
        return f"{name} was changed, added or removed"


def _clear(path: Path) -> None:
    """Remove anything at a path; a symlink, not its target."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            import shutil  # which loads three compressors

            shutil.rmtree(path)
        else:
            path.unlink()


def _digest(path: Path) -> str | None:
    """The sha256 of a file; None where none is there, or something that is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor has no path
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
