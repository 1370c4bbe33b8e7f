"""Answers that a run received before it was resumed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.model.values.response import TargetResponse
from agentv.ports import Call
from agentv.store.journal.journal_reader import JournalReader

if TYPE_CHECKING:
    from agentv.store.journal.accounted_answers import AccountedAnswers


class EarlierAnswers:
    """The answers of the processes that wrote to a run before this one; none until `load`."""

    def __init__(self) -> None:
        self._reader: JournalReader | None = None
        self._accounted: AccountedAnswers | None = None

    def load(self, journal: Path) -> JournalReader:
        """Read the positions of the answers in a journal.

        Raises:
            StoreError: it cannot be read; so for `answer`.
        """
        self.close()
        self._reader = JournalReader(journal)
        return self._reader

    def account(self, superseded: Iterable[bytes], current: Iterable[bytes]) -> None:
        """Look up which answers' costs rows report already.

        Args:
            superseded: lines of `history.jsonl`.
            current: lines of `index.jsonl`.
        """
        if self._reader is not None:
            from agentv.store.journal.accounted_answers import AccountedAnswers  # only of a run that is resumed

            self._accounted = AccountedAnswers(self._reader, superseded, current)

    def answer(self, call: Call) -> TargetResponse | None:
        """The answer to a call; marked `earlier` if a row reports its cost already."""
        found = None if self._reader is None else self._reader.answer(call.key)
        if found is None or self._accounted is None or call not in self._accounted:
            return found
        return replace(found, earlier=True)

    def __contains__(self, key: str) -> bool:
        """Whether there is an answer under a key, by its hash alone."""
        return self._reader is not None and key in self._reader

    @property
    def damaged(self) -> int:
        """Lines of the journal that were skipped because their checksum is wrong."""
        return 0 if self._reader is None else self._reader.damaged

    def close(self) -> None:
        """Close the journal."""
        if self._reader is not None:
            self._reader.close()
