"""Stored answers that a run can use instead of calls: of a run to regrade, a cassette, or the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, caches, results_of
from agentv.app.results.stored import find_run
from agentv.app.wiring import Answers, SystemClock, redactor_for
from agentv.engine.calls.recorded_call import call_key, no_answer
from agentv.errors import UsageError
from agentv.model.values.formatting import plural
from agentv.model.values.response import TargetResponse
from agentv.ports import AnswerArchive, Call
from agentv.registry.extensions import PORTS, loaded, registered
from agentv.store.files.directory import JOURNAL
from agentv.work_ports import ModelExchanges, WorkArchive

if TYPE_CHECKING:
    from agentv.store.cassettes.cache import AnswerCache
    from agentv.store.cassettes.cassette import Cassette
    from agentv.store.journal.journal_reader import JournalReader


_CACHE_HINT = "with --cache, no call is paid for twice"


class AnswerSources(Struct, frozen=True):
    """Sources of answers besides the journal of a run.

    Attributes:
        earlier: the answers of the run to regrade.
        works: stored work of that run's agents.
        cassette: the cassette that is replayed or recorded.
        cache: the answers of all runs.
        asks: make the calls that the cassette lacks.
        records: write the cassette after a complete run.
        adds: add missing answers to the cassette, even if the run is not completed.
        exchanges: recorded model calls of agents, for which the agents themselves still run; None: no cassette.
    """

    earlier: JournalReader | None = None
    works: WorkArchive | None = None
    cassette: Cassette | None = None
    cache: AnswerCache | None = None
    asks: bool = True
    records: bool = False
    adds: bool = False
    exchanges: ModelExchanges | None = None

    def answers(self, journal: AnswerArchive) -> Answers:
        """Return the store in which answers are looked up and saved."""
        archives: list[AnswerArchive] = [one for one in (self.earlier, self.cassette, self.cache) if one is not None]
        if not archives:
            return Answers(journal)
        recorded = self.cassette.unanswered if self.cassette is not None and not self.asks else None
        unanswered = recorded or (no_answer if self.earlier else None)
        store = LayeredStore(journal, archives)
        return Answers(store, unanswered, recorded, self.works, exchanges=self.exchanges)

    def notes(self) -> tuple[str, ...]:
        """Return notes about the cache and about replayed agents for the end of the run."""
        replayed = tuple(self.exchanges.notes()) if self.exchanges is not None else ()
        if self.cache is None:
            return replayed
        self.cache.flush()
        return (*replayed, *self.cache.notes)

    def ended(self, *, interrupted: bool, cut: bool, errored: int) -> tuple[str, bool]:
        """Write the recorded cassette; return a note, possibly empty, and whether it is a failure.

        Args:
            interrupted: the run was stopped by Ctrl-C or a signal.
            cut: some trials did not start, for any reason.
            errored: number of errored trials, whose answers may be missing.

        Raises:
            StoreError: the cassette cannot be written.
        """
        cassette = self.cassette
        if cassette is None or not (self.records or self.adds):
            return "", False
        if (interrupted or cut) and self.records:
            what = "was interrupted" if interrupted else "stopped early"
            why = f"the run {what}, and a cassette requires a complete run"
            return f"{cassette.path} is not written, because {why}: record it again ({_CACHE_HINT})", False
        if cassette.refused:
            target, case = cassette.refused[0]
            more = f" and {plural(len(cassette.refused) - 1, 'other call')}" if len(cassette.refused) > 1 else ""
            what = f"'{target}' for the case '{case}'{more}"
            return f"{cassette.path} is not written, because the call to {what} contains a secret", True
        if self.records and cassette.path.exists() and (errored or cassette.empty):
            why = f"{plural(errored, 'trial')} errored" if errored else "no call was made"
            return f"{cassette.path} is unchanged, because {why}: record it again once every call has an answer", True
        return self._written(cassette), False

    def _written(self, cassette: Cassette) -> str:
        if self.records:
            now, before = cassette.write()
            instead = f", replacing {before}" if before else ""
            return f"recorded {_counted(now - cassette.trials, cassette.trials)} in {cassette.path}{instead}"
        if not cassette.added and not cassette.added_trials:
            return ""  # do not rewrite an unchanged file
        added = _counted(cassette.added, cassette.added_trials)
        return f"added {added} to {cassette.path}, which now holds {cassette.add()}"


def _counted(calls: int, trials: int) -> str:
    if not trials:
        return plural(calls, "call")
    of_agents = plural(trials, "agent trial")
    return f"{plural(calls, 'call')} and {of_agents}" if calls else of_agents


@contextmanager
def answer_sources(prepared: Prepared) -> Iterator[AnswerSources]:
    """Open the sources of answers that the settings name.

    Raises:
        UsageError: the run to regrade does not exist, or has no answer to any trial.
        StoreError: a journal or a cassette cannot be read.
    """
    settings = prepared.settings
    with ExitStack() as opened:
        earlier = opened.enter_context(_regraded(prepared)) if settings.regrade is not None else None
        adds = settings.replay_mode == "new"
        cassette: Cassette | None = None
        written = settings.record or settings.replay
        if written is not None:
            from agentv.store.cassettes.cassette import Cassette, check_place

            path, redactor = Path(written), redactor_for(prepared.suites)
            if adds or settings.record is not None:
                check_place(path)
            begins = settings.record is not None or (adds and not path.exists())
            cassette = Cassette(path, redactor) if begins else Cassette.load(path, redactor)
        cache = opened.enter_context(answer_cache(prepared)) if caches(settings, prepared.suites) else None
        records, asks = settings.record is not None, settings.replay is None or adds
        works: WorkArchive | None = None
        if earlier is not None:
            from agentv.app.running.kept_work import KeptWorks

            works = KeptWorks(earlier)
        exchanges: ModelExchanges | None = None
        if cassette is not None and "ModelExchanges" in registered(PORTS):
            exchanges = loaded(PORTS, "ModelExchanges")(cassette, records=asks, adds=adds)
        yield AnswerSources(earlier, works, cassette, cache, asks=asks, records=records, adds=adds, exchanges=exchanges)


def answer_cache(prepared: Prepared) -> AnswerCache:
    """Open the cache of the answers of all runs; the caller closes it."""
    from agentv.store.cassettes.cache import AnswerCache, cache_file

    place = cache_file(results_of(prepared.suites, of_new_run=True))
    return AnswerCache(place, redactor_for(prepared.suites), SystemClock(), repairs=True)


@contextmanager
def _regraded(prepared: Prepared) -> Iterator[JournalReader]:
    from agentv.engine.conversation import first_request
    from agentv.store.journal.journal_reader import JournalReader

    run = find_run(prepared.settings.regrade or "last", results_of(prepared.suites), action="regrade")
    with closing(JournalReader(run / JOURNAL)) as earlier:
        if not any(call_key(trial.target, first_request(trial)) in earlier for trial in prepared.plan):
            keys = (call_key(trial.target, first_request(trial)) for trial in prepared.plan)
            redacted = sum(key in earlier.redacted for key in keys)
            if redacted:
                message = (
                    f"the run {run.name} has {plural(redacted, 'answer')} to these cases, but none can be graded again"
                )
                hint = "each contained a secret that was redacted: run them again with 'agentv eval'"
                raise UsageError(message, hint)
            message = f"the run {run.name} has no answer to these cases on these targets"
            raise UsageError(message, "their inputs or settings changed; they will be called again")
        yield earlier


class LayeredStore:
    """An `AnswerLookup` that combines a run's own answers with other archives. It does not close them.

    Args:
        own: the answers of the run.
        archives: other archives, searched in order for answers that the run lacks. Each is given every answer.
    """

    def __init__(self, own: AnswerArchive, archives: Sequence[AnswerArchive]) -> None:
        self._own = own
        self._archives = archives

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Store an answer in the run and in all other archives."""
        self._own.keep(call, answer)
        for archive in self._archives:
            archive.keep(call, answer)

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """Return the run's own answer, else the first in another archive, or None."""
        found = self._own.stored_answer(call)
        if found is not None:
            for archive in self._archives:
                archive.keep(call, found)
            return found
        archived = next((one for archive in self._archives if (one := archive.stored_answer(call)) is not None), None)
        return None if archived is None else replace(archived, earlier=True)
