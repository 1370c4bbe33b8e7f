"""Where the answers of an earlier run stand in its journal: 32 bytes an answer, so that a million of them fit."""

from __future__ import annotations

from array import array
from pathlib import Path

from agentv.model.response import TargetResponse
from agentv.store.answers import HEADER, answer_of, is_redacted, key_in, unsealed
from agentv.store.hashes import NumberedHashes
from agentv.store.lines import store_error


class Recall:
    """The answers of a `journal.jsonl` by their keys; of several under one key, the last.

    Attributes:
        damaged: lines whose checksum does not agree: they hold no answer.

    Args:
        path: of the journal; what is appended to it later is not looked at.

    Raises:
        StoreError: it cannot be read; so for `answer`.
    """

    def __init__(self, path: Path) -> None:
        self.damaged = 0
        self._path = path
        self._numbers = NumberedHashes()
        self._offsets = array("Q")
        try:
            self._file = path.open("rb")
            self._find_all()
        except OSError as error:
            raise store_error("read", path, error) from error

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return self._numbers.find(_hash(key)) is not None

    def _find_all(self) -> None:
        offset = 0
        for line in self._file:
            if line != HEADER and not line.isspace():
                self._note(line, offset)
            offset += len(line)

    def _note(self, line: bytes, offset: int) -> None:
        if unsealed(line.rstrip(b"\n")) is None:
            self.damaged += 1
            return
        number = self._numbers.number(_hash(key_in(line)))
        if number == len(self._offsets):
            self._offsets.append(offset)
        else:
            self._offsets[number] = offset

    def answer(self, key: str) -> TargetResponse | None:
        """The answer under a key; None where there is none, or where a secret was taken out of it."""
        number = self._numbers.find(_hash(key))
        if number is None:
            return None
        try:
            self._file.seek(self._offsets[number])
            body = unsealed(self._file.readline().rstrip(b"\n"))
        except OSError as error:
            raise store_error("read", self._path, error) from error
        found = None if body is None or is_redacted(body) else answer_of(body)
        return found[1] if found is not None and found[0] == key else None

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _hash(key: str) -> int:
    return hash(key)
