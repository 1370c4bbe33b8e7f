"""Reader of an earlier run's journal: the positions of its answers, and the rows it has checksums of.

Some 40 bytes are kept for each, so that a million of them fit.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from zlib import crc32

from agentv.model.run.budget import Amount
from agentv.model.values.response import TargetResponse, TokenUsage
from agentv.ports import Call
from agentv.store.files.hashes import NumberedHashes
from agentv.store.files.signatures import signature
from agentv.store.journal.answers import HEADER, anew_in, answer_of, facts_in, is_redacted, key_in, seal_in, unsealed
from agentv.store.rows.reading import key_of_row
from agentv.user_code.os_errors import store_error

NOTHING = Amount()


def amount_of(cost_usd: float | None, tokens: TokenUsage | None) -> Amount:
    """What a call took; nothing where it did not say."""
    total = 0 if tokens is None else tokens.total or (tokens.input or 0) + (tokens.output or 0)
    return Amount(cost_usd or 0.0, total)


class JournalReader:
    """The answers of a `journal.jsonl` by their keys; of several under one key, the last.

    Attributes:
        run_id: of the run, by its directory's name.
        judged: hash of a case → what the answers of judges for it took, those that it asked for again among them.
        damaged: lines whose checksum does not agree: they hold no answer.
        redacted: the keys of calls whose answers held a secret: they are not what was answered, and are not given.

    Args:
        path: of the journal; what is appended to it later is not looked at.

    Raises:
        StoreError: it cannot be read; so for `answer`.
    """

    def __init__(self, path: Path) -> None:
        self.run_id = path.parent.name
        self.damaged = 0
        self.redacted: set[str] = set()
        self._path = path
        self._numbers = NumberedHashes()
        self._offsets = array("Q")
        self._cases = array("q")
        self._signatures = array("Q")
        self._rows = NumberedHashes()
        self._vouched_at = array("Q")
        self._forgotten: dict[int, int] = {}
        self.judged: dict[int, Amount] = {}
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
        facts = facts_in(line)
        case = hash(facts.case)
        if facts.judge and not facts.earlier:
            self.judged[case] = self.judged.get(case, NOTHING) + amount_of(facts.cost_usd, facts.token_usage)
        if is_redacted(line.rstrip(b"\n")):
            self.redacted.add(key_in(line))
            return  # it is not what was answered
        number = self._numbers.number(hash(key_in(line)))
        if number == len(self._offsets):
            self._offsets.append(offset)
            self._cases.append(case)
            self._signatures.append(signature(line))
        else:
            self._offsets[number] = offset
            self._signatures[number] = signature(line)

    def answer(self, key: str) -> TargetResponse | None:
        """The answer under a key; None where there is none, or where a secret was taken out of it.

        So too where its line was changed since the journal was looked through, as by what runs now.
        """
        number = self._find(key)
        if number is None:
            return None
        try:
            self._file.seek(self._offsets[number])
            line = self._file.readline()
        except OSError as error:
            raise store_error("read", self._path, error) from error
        body = unsealed(line.rstrip(b"\n")) if signature(line) == self._signatures[number] else None
        found = None if body is None else answer_of(body)
        return found[1] if found is not None and found[0] == key else None

    @property
    def vouches(self) -> bool:
        """Whether the journal has a checksum of any row; a lost journal has none."""
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
        """Position in the journal of the answer with a key."""
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
