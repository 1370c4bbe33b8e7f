"""What the journal of an earlier run holds: where its answers stand, and which rows it vouches for.

Some 30 bytes are kept for each, so that a million of them fit.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from zlib import crc32

from agentv.foreign.refusals import store_error
from agentv.model.response import TargetResponse
from agentv.ports import Call
from agentv.store.answers import HEADER, anew_in, answer_of, case_in, is_redacted, key_in, seal_in, unsealed
from agentv.store.hashes import NumberedHashes
from agentv.store.reading import key_of_row


class Recall:
    """The answers of a `journal.jsonl` by their keys; of several under one key, the last.

    Attributes:
        run_id: of the run, by its directory's name.
        damaged: lines whose checksum does not agree: they hold no answer.

    Args:
        path: of the journal; what is appended to it later is not looked at.

    Raises:
        StoreError: it cannot be read; so for `answer`.
    """

    def __init__(self, path: Path) -> None:
        self.run_id = path.parent.name
        self.damaged = 0
        self._path = path
        self._numbers = NumberedHashes()
        self._offsets = array("Q")
        self._cases = array("q")
        self._rows = NumberedHashes()
        self._vouched_at = array("Q")
        self._forgotten: dict[int, int] = {}
        try:
            self._file = path.open("rb")
            self._find_all()
        except OSError as error:
            raise store_error("read", path, error) from error

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return self._find(key) is not None

    def _find(self, key: str) -> int | None:
        """The number of an answer that may be used."""
        number = self._numbers.find(hash(key))
        if number is None or self._forgotten.get(self._cases[number], -1) > self._offsets[number]:
            return None
        return number

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
        seal = seal_in(line)
        if seal is not None:
            if self._rows.number(hash(seal)) == len(self._vouched_at):
                self._vouched_at.append(offset)
            return
        cases = anew_in(line)
        if cases is not None:
            self._forgotten.update(dict.fromkeys(map(hash, cases), offset))
            return
        if is_redacted(line.rstrip(b"\n")):
            return  # it is not what was answered
        number, case = self._numbers.number(hash(key_in(line))), hash(case_in(line))
        if number == len(self._offsets):
            self._offsets.append(offset)
            self._cases.append(case)
        else:
            self._offsets[number] = offset

    def answer(self, key: str) -> TargetResponse | None:
        """The answer under a key; None where there is none, or where a secret was taken out of it."""
        number = self._find(key)
        if number is None:
            return None
        try:
            self._file.seek(self._offsets[number])
            body = unsealed(self._file.readline().rstrip(b"\n"))
        except OSError as error:
            raise store_error("read", self._path, error) from error
        found = None if body is None else answer_of(body)
        return found[1] if found is not None and found[0] == key else None

    @property
    def vouches(self) -> bool:
        """Whether the journal vouches for any row at all; one that was lost vouches for none."""
        return len(self._rows) > 0

    def vouches_for(self, row: bytes) -> bool:
        """Whether a line of `index.jsonl`, without its end, is as it was written."""
        key = key_of_row(row)
        return key is not None and self._rows.find(hash((key, crc32(row)))) is not None

    def vouched_at(self, row: bytes) -> int | None:
        """Where in the journal the line stands that vouches for a row, given without its end; None where none does."""
        number = self._rows.find(hash((key_of_row(row), crc32(row))))
        return None if number is None else self._vouched_at[number]

    def answered_at(self, key: str) -> int | None:
        """Where in the journal the answer under a key stands."""
        number = self._find(key)
        return None if number is None else self._offsets[number]

    def kept(self, call: Call) -> TargetResponse | None:
        """The answer to a call."""
        return self.answer(call.key)

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Nothing: it is another run's journal."""

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
