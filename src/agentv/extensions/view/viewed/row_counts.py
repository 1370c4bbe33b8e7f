"""How many rows the runs in progress have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agentv.user_code.os_errors import store_error

_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Counted:
    """How far a file was counted. `file`: device and inode; another file may lie there later."""

    file: tuple[int, int]
    size: int
    lines: int


class RowCounts:
    """Counts the rows of files that grow; reads only what was appended since the last time."""

    def __init__(self) -> None:
        self._counted: dict[Path, _Counted] = {}

    def count(self, index: Path) -> int:
        """The number of complete rows; 0 if there is no file.

        Raises:
            StoreError: the file cannot be read.
        """
        try:
            with index.open("rb", buffering=0) as file:
                found = os.fstat(file.fileno())
                identity = (found.st_dev, found.st_ino)
                before = self._counted.get(index)
                if before is None or before.file != identity or before.size > found.st_size:
                    before = _Counted(identity, 0, 0)
                size, lines = file.seek(before.size), before.lines
                for piece in iter(lambda: file.read(_AT_ONCE), b""):
                    size += len(piece)
                    lines += piece.count(b"\n")
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise store_error("read", index, error) from error
        self._counted[index] = _Counted(identity, size, lines)
        return lines
