"""Answers that a run need not ask for: those of a run to regrade, and those of a cassette; and what it records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.app.preparation import Prepared, caches, root_of
from agentv.app.results.finding import find_run
from agentv.app.wiring import Answers, SystemClock, redactor_for
from agentv.engine.kept import call_key, no_answer
from agentv.errors import UsageError
from agentv.ports import Shelf, Store
from agentv.reports.totals import plural
from agentv.store.directory import JOURNAL

if TYPE_CHECKING:
    from agentv.app.recorded_code import RecordedCode
    from agentv.store.cache import AnswerCache
    from agentv.store.cassette import Cassette
    from agentv.store.recall import Recall


@dataclass(frozen=True, slots=True)
class Shelves:
    """What stands behind the journal of a run.

    Attributes:
        earlier: the answers of the run to regrade.
        cassette: what is replayed, or recorded.
        cache: the answers of all runs.
        asks: calls that the cassette does not hold are made.
        records: the cassette is written anew when the whole run has ended.
        adds: what the cassette lacks is added to it, however the run ends.
        code: code of the user's that grades is answered for too; None: it runs.
    """

    earlier: Recall | None = None
    cassette: Cassette | None = None
    cache: AnswerCache | None = None
    asks: bool = True
    records: bool = False
    adds: bool = False
    code: RecordedCode | None = None

    def answers(self, journal: Store) -> Answers:
        """Where answers are found and kept."""
        shelves: list[Shelf] = [one for one in (self.earlier, self.cassette, self.cache) if one is not None]
        if not shelves:
            return Answers(journal)
        from agentv.store.shelves import Shelved

        recorded = self.cassette.unanswered if self.cassette is not None and not self.asks else None
        return Answers(Shelved(journal, shelves), recorded or (no_answer if self.earlier else None), recorded)

    def ended(self, *, interrupted: bool, cut: bool, errored: int) -> tuple[str, bool]:
        """Write the cassette that was recorded; what to say of it, empty for nothing, and whether that is a failure.

        Args:
            interrupted: Ctrl-C or a signal ended the run.
            cut: some trials were not begun, for whatever reason.
            errored: how many trials errored: what they would have been told is not recorded.

        Raises:
            StoreError: the system refuses.
        """
        cassette = self.cassette
        if cassette is None or not (self.records or self.adds):
            return "", False
        if (interrupted or cut) and self.records:
            return self._half_recorded(cassette, "was interrupted" if interrupted else "stopped early"), False
        if cassette.refused:
            target, case = cassette.refused[0]
            more = f" and {plural(len(cassette.refused) - 1, 'other call')}" if len(cassette.refused) > 1 else ""
            what = f"'{target}' for the case '{case}'{more}"
            return f"{cassette.path} is not written, since the call of {what} holds a secret", True
        if self.records and cassette.path.exists() and (errored or cassette.empty):
            why = f"{plural(errored, 'trial')} errored" if errored else "no call was made"
            return f"{cassette.path} stays as it was, since {why}: record it anew once all are answered", True
        return self._written(cassette), False

    def _half_recorded(self, cassette: Cassette, what: str) -> str:
        cached = (
            "the cache holds what was answered" if self.cache is not None else "with --cache, no call is paid twice"
        )
        why = f"the run {what}, and a cassette holds a whole run"
        return f"{cassette.path} is not written, since {why}: record it anew ({cached})"

    def _written(self, cassette: Cassette) -> str:
        if self.records:
            now, before = cassette.write()
            instead = f", in place of {before}" if before else ""
            return f"recorded {plural(now, 'call')} in {cassette.path}{instead}"
        if not cassette.added:
            return ""  # a file that stays as it is need not be written
        return f"added {plural(cassette.added, 'call')} to {cassette.path}, which holds {cassette.add()}"


@contextmanager
def shelves_of(prepared: Prepared) -> Iterator[Shelves]:
    """What the settings put behind the journal.

    Raises:
        UsageError: there is no such run, or it answers none of the trials.
        StoreError: a journal or a cassette cannot be read.
    """
    settings = prepared.settings
    with ExitStack() as opened:
        earlier = opened.enter_context(_regraded(prepared)) if settings.regrade is not None else None
        cassette = _cassette(prepared)
        adds = settings.replay_mode == "new"
        cache = opened.enter_context(_cache(prepared)) if caches(prepared) else None
        records, asks = settings.record is not None, settings.replay is None or adds
        code = _code(prepared, cassette, asks=asks)
        yield Shelves(earlier, cassette, cache, asks=asks, records=records, adds=adds, code=code)


def _code(prepared: Prepared, cassette: Cassette | None, *, asks: bool) -> RecordedCode | None:
    if cassette is None or not (cassette.holds_code or prepared.settings.record_code):
        return None
    from agentv.app.recorded_code import RecordedCode

    cassette.holds_code = True
    return RecordedCode(cassette, asks, root_of(prepared.suites))


def _cache(prepared: Prepared) -> AnswerCache:
    from agentv.store.cache import AnswerCache, cache_file

    return AnswerCache(cache_file(Path(root_of(prepared.suites))), redactor_for(prepared.suites), SystemClock())


def _cassette(prepared: Prepared) -> Cassette | None:
    settings = prepared.settings
    written = settings.record or settings.replay
    if written is None:
        return None
    from agentv.store.cassette import Cassette
    from agentv.store.cassette_file import check_place

    path, redactor = Path(written), redactor_for(prepared.suites)
    adds = settings.replay_mode == "new"
    if adds or settings.record is not None:
        check_place(path)
    begins = settings.record is not None or (adds and not path.exists())
    return Cassette(path, redactor) if begins else Cassette.load(path, redactor)


@contextmanager
def _regraded(prepared: Prepared) -> Iterator[Recall]:
    from agentv.engine.conversation import first_request
    from agentv.store.recall import Recall

    run = find_run(prepared.settings.regrade or "last", Path(root_of(prepared.suites)), doing="regrade")
    with closing(Recall(run / JOURNAL)) as earlier:
        if not any(call_key(trial.target, first_request(trial)) in earlier for trial in prepared.plan):
            message = f"the run {run.name} holds no answer to these cases on these targets"
            raise UsageError(message, "their inputs or settings are others now, so that they must be asked anew")
        yield earlier
