"""The store of a run: answers in `journal.jsonl`, rows in `index.jsonl` (SPEC section 13).

A crash of the process loses no answers, and a power failure at most those of the last 100 ms. Lost rows are recreated
from their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.run.row import Row
from agentv.model.run.summary import NOT_DRAWN
from agentv.model.run.trial import TrialResult
from agentv.model.values.response import TargetResponse
from agentv.model.values.trace import UsageStep
from agentv.model.values.values import JsonObject
from agentv.ports import Call
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, REJECTED, SUMMARY, Closing, RunDirectory
from agentv.store.files.encoding import to_json
from agentv.store.files.lines import read_lines
from agentv.store.journal.answers import answer_line, spent_line
from agentv.store.journal.journal_files import JournalFiles, cut_torn_lines, quarantine_message
from agentv.store.rows.reading import RowHead, finished_keys, key_of_row, read_heads, replaced_lines
from agentv.store.rows.rows import row_of

if TYPE_CHECKING:
    from agentv.store.journal.journal_reader import AccountedAnswers, JournalReader


class Journal(Closing):
    """The store of a run on disk. A context manager; use it from one thread.

    Attributes:
        repaired: messages about incomplete lines that were removed and rows that were quarantined.

    Args:
        directory: directory of the run, which is locked.
        root: absolute path of the repository root; rows have paths relative to it.
        counts: called with every row that is written, so that totals need not be read from files that others can edit.
        clock: a monotonic clock, in seconds.
        before_ms: total duration of the run's earlier processes.

    Raises:
        StoreError: a file cannot be opened, or is not a journal. Methods raise it if a file cannot be read or written.
    """

    def __init__(
        self,
        directory: RunDirectory,
        root: str,
        counts: Callable[[Row], None] | None = None,
        *,
        clock: Callable[[], float] = monotonic,
        before_ms: float = 0.0,
    ) -> None:
        self._directory = directory
        self._root = root
        self._counts = counts
        self._clock = clock
        self._began_s = clock() - before_ms / 1000
        self._reader: JournalReader | None = None  # reads answers of earlier processes, once loaded
        self._accounted: AccountedAnswers | None = None
        self.repaired = (*directory.repaired, *cut_torn_lines(directory.path))
        self._files = JournalFiles(directory.path)

    @property
    def damaged(self) -> int:
        """Number of lines of the journal that `load_answers` skipped because their checksum is wrong."""
        return 0 if self._reader is None else self._reader.damaged

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Write an answer to the journal. A crash of the process after this call cannot lose it."""
        if answer.earlier and self.holds(call.key):
            return
        case, judge = call.request.case_id, bool(call.request.nonces)
        redactor = self._directory.redactor
        line = answer_line(call.key, case, answer, target=call.target, judge=judge)
        if redactor.found_in(line):
            case, target = redactor.redact(case), redactor.redact(call.target)
            redacted = redactor.redacted(answer)
            line = answer_line(call.key, case, redacted, target=target, redacted=True, judge=judge)
        self._files.append_answer(line)

    def spend(self, case_id: str, target: str, call: UsageStep, trial: str = "") -> None:
        """Write the usage of a model call of an agent."""
        redactor = self._directory.redactor
        line = spent_line(target, case_id, call.tokens, call.cost_usd, trial)
        if redactor.found_in(line):
            line = spent_line(redactor.redact(target), redactor.redact(case_id), call.tokens, call.cost_usd, trial)
        self._files.append_answer(line)

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """Return the answer to a call that the run received before it was resumed, or None. Needs `load_answers`.

        It is marked `earlier` if a row already includes its cost.
        """
        found = None if self._reader is None else self._reader.answer(call.key)
        if found is None or self._accounted is None or call not in self._accounted:
            return found
        return replace(found, earlier=True)

    def holds(self, key: str) -> bool:
        """Whether there is a stored answer with this key. Does not read it."""
        return self._reader is not None and key in self._reader

    def load_answers(self) -> int:
        """Index the answers that this run received before, and return their number.

        A line with a wrong checksum is skipped and counted in `damaged`; its call is made again. A row with a wrong
        checksum is quarantined; its trial is graded again.

        Raises:
            StoreError: there are rows, but the journal has neither their checksums nor any answers.
        """
        from agentv.store.journal.journal_reader import JournalReader

        if self._reader is not None:
            self._reader.close()
        reader = self._reader = JournalReader(self._directory.path / JOURNAL)
        rows = self._files.rows()
        changed = {number for number, line in rows if reader.checksum_position(line.rstrip(b"\n")) is None}
        if changed and not reader.has_checksums and not len(reader):
            what = "was removed, emptied or replaced, so that they cannot be verified"
            raise StoreError(f"{self._directory.path / INDEX} contains rows, but {JOURNAL} {what}: start a new run")
        if changed:
            moved = self._files.move_rows(lambda number, _: number in changed, REJECTED)
            self.repaired = (*self.repaired, quarantine_message(moved))
        return len(reader)

    def retire_rows(self, again: Callable[[RowHead], bool], planned: Callable[[Container[str]], Container[str]]) -> int:
        """Move rows of earlier processes that no longer count to `history.jsonl`.

        These are rows of trials that run again, for whose cases the answers are discarded; rows of trials that are no
        longer planned; and all but the last of several rows of one trial. If interrupted, the rows stay in place.

        Args:
            again: decides whether the trial of a row runs again.
            planned: given the keys of finished trials, returns those that are still planned.

        Returns:
            The number of trials that are no longer planned.
        """
        path, discarded = self._directory.path, dict[str, str]()
        finished, others, undrawn = set[str](), set[str](), set[str]()
        for row in read_heads(path / INDEX):
            if again(row):
                discarded[row.key] = row.test_id
            else:
                (finished if row.is_finished else undrawn if row.status == "skipped" else others).add(row.key)
        if discarded:
            self._files.discard_answers(sorted(set(discarded.values())))
            self.load_answers()
        finished -= discarded.keys()
        current = planned(finished)
        outdated = {key for key in chain(finished, others) if key not in current and key not in discarded}
        moved = {*outdated, *discarded, *(undrawn - finished)}
        del finished, others  # 20 MB for 100,000 rows
        replaced = replaced_lines(path / INDEX)
        if moved or replaced:
            self._files.move_rows(lambda number, line: number in replaced or key_of_row(line) in moved, HISTORY)
        if self._reader is not None:
            from agentv.store.journal.journal_reader import AccountedAnswers  # only needed on resume

            history = (line for _, line in read_lines(path / HISTORY))
            self._accounted = AccountedAnswers(self._reader, history, (line for _, line in self._files.rows()))
        return len(outdated)

    def finish(self, result: TrialResult) -> TrialResult:
        """Write the row of a finished trial. Skipped trials get no row, so that they run when the run is resumed.

        A trial that was not drawn (`NOT_DRAWN`) does get a row.
        """
        redactor = self._directory.redactor
        if result.status == "skipped" and (result.error is None or result.error.code != NOT_DRAWN):
            return redactor.redact_result(result) if redactor else result
        row = row_of(result, self._root)
        line = to_json(row)
        if redactor.found_in(line):
            result = redactor.redact_result(result)
            row = row_of(result, self._root)
            line = to_json(row)
        self._files.check()
        if self._counts is not None:
            self._counts(row)
        self._files.append_row(result.trial.key, line, (self._clock() - self._began_s) * 1000)
        return result

    def finished(self) -> Iterator[str]:
        """Yield the keys of the trials that need not run again, in the order of their rows."""
        self._files.write_rows()
        return finished_keys(self._directory.path / INDEX)

    def write_summary(self, summary: JsonObject) -> None:
        """Write the checksum of `summary.json` to the journal, then the file, which does not count without it.

        Raises:
            StoreError: a file cannot be written.
        """
        document = self._directory.document(summary)
        self._files.append_summary_checksum(document)
        self._directory.replace(SUMMARY, document)

    def flush(self) -> None:
        """Write buffered rows, and flush the journal to disk."""
        self._files.flush()

    def close(self) -> None:
        """Write buffered rows, flush everything to disk, and close the files."""
        with ExitStack() as closing:
            if self._reader is not None:
                closing.callback(self._reader.close)
            self._files.close()
