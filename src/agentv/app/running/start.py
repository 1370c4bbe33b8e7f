"""Start of a run: load the results of earlier processes, write `run.json` and import grading code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.labelled_runs import has_gate
from agentv.app.planning.answer_sources import AnswerSources
from agentv.app.planning.preparation import Prepared, budget_of, root_of, workers_of
from agentv.app.running.run_record import SIGNATURE, record_of, signature_of
from agentv.app.wiring import Connections, WorkspaceSettings
from agentv.engine.calls.recorded_call import call_key
from agentv.engine.calls.retry_policy import is_stopped
from agentv.engine.sequential_samples import COST_LIMIT, SequentialSampler
from agentv.model.redaction import Redactor
from agentv.model.run.events import Event, RunRegrades, RunResumed, TrialKept
from agentv.model.run.labels import ReadLabels
from agentv.model.run.row import Row
from agentv.model.run.trial import Trial, TrialResult
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.formatting import plural
from agentv.model.values.usage import total_cost
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.types import ProviderSettings
from agentv.reports.text import one_line
from agentv.store.files.directory import HISTORY, INDEX, JOURNAL, KEPT_WORKSPACES, RUN, PreviousRun, RunDirectory
from agentv.store.files.lines import read_lines
from agentv.store.journal.answers import SpentLine, is_spent_line, verified
from agentv.store.journal.journal import Journal
from agentv.store.rows.reading import RowHead, is_interrupted_row, read_rows, replaced_rows, row_in
from agentv.store.totals.summary import RunCounts, remove_summary

if TYPE_CHECKING:
    from agentv.engine.calls.budget import BudgetLimiter


MAX_HELD = 5000
"""Maximum number of pending trials held in memory on resume, which saves going through the whole plan again."""

Sink = Callable[[Event], None]


class OpenRun(Struct, frozen=True):
    """A run whose directory is open, but not its journal.

    Attributes:
        prepared: the plan.
        sources: sources of stored answers.
        sink: receives every event.
        previous: earlier processes of the run.
        totals: counts of the run, updated as its rows are written.
        budget_limiter: limit of the calls' cost; None if there is no budget.
        labels: of its suites, read before any call, so that targets cannot influence the run's gates.
    """

    prepared: Prepared
    directory: RunDirectory
    sources: AnswerSources
    sink: Sink
    previous: PreviousRun
    totals: RunTotals
    budget_limiter: BudgetLimiter | None
    labels: ReadLabels = field(default_factory=ReadLabels)

    def journal(self) -> Journal:
        """Return the journal of the run; the caller closes it."""
        before_ms = self.previous.duration_ms
        return Journal(self.directory, root_of(self.prepared.suites), self.totals.add_row, before_ms=before_ms)


def opened_run(prepared: Prepared, directory: RunDirectory, sources: AnswerSources, sink: Sink) -> OpenRun:
    """Return a run with its directory open, its previous processes and its remaining budget.

    Raises:
        StoreError: its `run.json` or its journal cannot be read.
    """
    previous = PreviousRun()
    if prepared.settings.resume_run is not None:
        from agentv.app.planning.resume import previous_run

        previous = previous_run(directory.path)
    usd, tokens = budget_of(prepared)
    budget_limiter = None
    if usd is not None or tokens is not None:
        from agentv.engine.calls.budget import Budget, BudgetLimiter
        from agentv.store.journal.journal_reader import spent_in

        budget_limiter = BudgetLimiter(Budget(usd, tokens))
        if prepared.settings.resume_run is not None:  # earlier processes spent some of it
            before = spent_in(directory.path / JOURNAL)
            budget_limiter = BudgetLimiter(Budget(usd, tokens, before.total), before.largest)
    return OpenRun(prepared, directory, sources, sink, previous, RunTotals(prepared), budget_limiter)


class EarlierTrials(Struct, frozen=True):
    """Trials of earlier processes that still count.

    Attributes:
        results: trial key → the result if trials can depend on it, else None.
        pending: the other trials of the plan; None if there are too many to hold.
        superseded: number of rows that no longer count.
        summary_keys: keys of `summary.json` that agentv did not write.
    """

    results: Mapping[str, TrialResult | None] = field(default_factory=dict)
    pending: list[Trial] | None = None
    superseded: int = 0
    summary_keys: JsonObject = EMPTY


class StartedRun(Struct, frozen=True):
    """A run that is ready to run its trials.

    Attributes:
        open: its plan, its directory, and the sink of its events.
        earlier: trials that need not run again.
        sampler: decides when a case needs no more samples.
        record: as written to `run.json`.
    """

    open: OpenRun
    journal: Journal
    connections: Connections
    earlier: EarlierTrials
    sampler: SequentialSampler
    record: JsonObject = field(default_factory=dict)

    def pending(self) -> Iterator[Trial]:
        """Yield the selected trials that still need a row."""
        return _pending(self.open.prepared, self.earlier, self.sampler)


async def start(run: OpenRun, journal: Journal, *, loads_code: bool = True) -> StartedRun:
    """Load the trials of earlier processes, report them to the sink, and write `run.json`.

    Args:
        run: with an open directory.
        journal: of the run.
        loads_code: import grading code before any target is called, so that targets cannot change it.

    Raises:
        StoreError: the directory cannot be read or written.
    """
    prepared, earlier = run.prepared, EarlierTrials()
    sampler = SequentialSampler(limited=any(suite.run.cost_limit_usd is not None for suite in prepared.suites))
    if prepared.settings.resume_run is not None:
        earlier = _restored_results(run, journal, sampler)
        run.sink(_resumed(run, journal, earlier, sampler))
        for row in replaced_rows(Path(run.directory.path)):
            run.totals.counts.add_replaced(row)
    regraded = run.sources.earlier
    if regraded is not None:
        from agentv.engine.conversation import first_request

        keys = (call_key(one.target, first_request(one)) for one in _pending(prepared, earlier, sampler))
        is_recorded = [journal.holds(key) or key in regraded for key in keys]
        run.sink(RunRegrades(regraded.run_id, sum(is_recorded), len(is_recorded) - sum(is_recorded)))
    seed = None if prepared.draws is None else prepared.draws.seed
    record = record_of(prepared, run.directory.run_id, run.previous, seed)
    if any(map(has_gate, prepared.suites)):
        record["labels_sha256"] = run.labels.sha256
    signature = signature_of(record, root_of(prepared.suites), prepared.settings.process_env)
    if signature is not None:
        record[SIGNATURE] = signature
    run.directory.write(RUN, record)
    answers = replace(run.sources.answers(journal), spending=journal)
    connections = Connections(
        workers_of(prepared),
        run.budget_limiter,
        answers,
        lambda: workspace_settings(run),
        debug=prepared.settings.debug,
    )
    if loads_code:
        await connections.imported.load(prepared.suites, connections.executor)
    return StartedRun(run, journal, connections, earlier, sampler, record)


def workspace_settings(run: OpenRun) -> WorkspaceSettings:
    """Return the workspace settings of a run. They hide the project and the run, and so grading files, from agents."""
    root = root_of(run.prepared.suites)
    return WorkspaceSettings(
        kept_directory=str(run.directory.path / KEPT_WORKSPACES),
        private=tuple(dict.fromkeys((root, str(run.directory.path)))),
        redactor=run.directory.redactor,
    )


def _restored_results(run: OpenRun, journal: Journal, sampler: SequentialSampler) -> EarlierTrials:
    """Read the planned trials that are done, and report their results to the sink."""
    from agentv.engine.dependency_order import split_completed
    from agentv.store.rows.results import result_of  # only needed on resume

    prepared, index = run.prepared, run.directory.path / INDEX
    journal.load_answers()
    summary_keys = remove_summary(run.directory)
    rerun, chosen = prepared.settings.rerun, prepared.chosen
    if rerun is not None and chosen is None:
        chosen = frozenset(trial.key for trial in prepared.plan)
    linked = any(suite.links for suite in prepared.suites)
    results: dict[str, TrialResult | None] = {}
    pending: list[Trial] | None = None

    def must_rerun(row: RowHead) -> bool:
        return rerun is not None and row.status == rerun and row.key in (chosen or ())

    def planned(finished: Container[str]) -> Container[str]:
        nonlocal pending, results
        keys, pending = split_completed(prepared.plan, finished, MAX_HELD)
        results = dict.fromkeys(keys)
        return results

    superseded = journal.retire_rows(must_rerun, planned)
    root = root_of(prepared.suites)
    for row in read_rows(index):
        run.totals.add_row(row)
        if row.key in results:
            result = result_of(row, root)
            run.sink(TrialKept(result))
            run.totals.add_judges(result)
            sampler.restore(result)
            if prepared.draws is not None:
                prepared.draws.add(result)
            if linked:
                results[result.trial.key] = result
    return EarlierTrials(results, pending, superseded, summary_keys)


def _resumed(run: OpenRun, journal: Journal, earlier: EarlierTrials, sampler: SequentialSampler) -> RunResumed:
    """Count the trials that are done, and the pending ones with a recorded answer."""
    from agentv.engine.conversation import first_request

    is_recorded, of_agents = [], set()
    for trial in _pending(run.prepared, earlier, sampler):  # agents start again, as their workspaces are gone
        has_answer = trial.case.workspace is None and journal.holds(call_key(trial.target, first_request(trial)))
        is_recorded.append(has_answer)
        if trial.has_work:
            of_agents.add(trial.key)
    found = interrupted_trials(run.directory.path, of_agents) if of_agents else {}
    return RunResumed(
        len(earlier.results),
        sum(is_recorded),
        len(is_recorded) - sum(is_recorded),
        run.prepared.plan.ends_early,
        len(found),
        sum(one.calls for one in found.values()),
        total_cost(*(one.cost_usd for one in found.values())),
    )


def _pending(prepared: Prepared, earlier: EarlierTrials, sampler: SequentialSampler) -> Iterator[Trial]:
    planned: Iterable[Trial] | None = earlier.pending if prepared.draws is None else None
    if planned is None:
        planned = prepared.plan if prepared.draws is None else prepared.draws.pending
        if earlier.results:
            planned = (trial for trial in planned if trial.key not in earlier.results)
    pending = sampler.undecided(planned)
    chosen = prepared.chosen
    return pending if chosen is None else (trial for trial in pending if trial.key in chosen)


class RunTotals:
    """Counts of rows and trials, kept in memory because targets could change the files on disk.

    Attributes:
        counts: of all rows.
        exam_rows: trial key → row, for trials of exams.
        unpriced: calls whose price is not known.
        first_notes: target name → the first note of its trials, and the number of trials with notes.
        held_back: number of trials that were skipped because a dependency did not pass.
        agent_versions: target name → versions that its agents report.
        judges: names of the judges that graded, in the order of their first grade.
    """

    def __init__(self, prepared: Prepared) -> None:
        self.counts = RunCounts()
        self.exam_rows: dict[str, Row] = {}
        self.unpriced = Unpriced()
        self.first_notes: dict[str, tuple[str, int]] = {}
        self.agent_versions: dict[str, set[str]] = {}
        self._exams = frozenset(suite.name for suite in prepared.suites if suite.exam is not None)
        self.held_back = 0
        self.judges: dict[str, None] = {}

    def add_row(self, row: Row) -> None:
        """Count a row."""
        self.counts.add(row)
        if row.suite in self._exams:
            self.exam_rows[row.key] = row

    def add_result(self, result: TrialResult) -> None:
        """Count a trial that ended in this process."""
        self.add_judges(result)
        self.unpriced.add(result)
        if result.notes:
            note = f"case '{result.trial.case.id}': {result.notes[0]}"
            first, count = self.first_notes.get(result.trial.target.name, (note, 0))
            self.first_notes[result.trial.target.name] = first, count + 1
        if result.stored is not None and result.stored.agent_version:
            self.agent_versions.setdefault(result.trial.target.name, set()).add(result.stored.agent_version)
        too_costly = result.error is not None and result.error.code == COST_LIMIT
        if result.status == "skipped" and not is_stopped(result.error) and not too_costly:
            self.held_back += 1

    def add_judges(self, result: TrialResult) -> None:
        """Record which judges graded a trial."""
        for score in result.scores:
            asked = score.grade.asked_judge
            if asked is not None:
                self.judges.setdefault(asked.judge)

    def notes(self) -> Iterator[str]:
        """Yield notes about unknown prices, and the first note of each target with the number of others."""
        yield from self.unpriced.notes()
        for name, (first, count) in self.first_notes.items():
            rest = f"; {plural(count - 1, 'more trial')} with 'notes' in the results" if count > 1 else ""
            yield f"'{one_line(name)}', {one_line(first)}{rest}"


class Unpriced(Struct):
    """Models whose calls reported tokens but no price, with the number of trials."""

    _models: Counter[str] = field(default_factory=Counter)

    def add(self, result: TrialResult) -> None:
        """Add one finished trial."""
        trial, specs = result.trial, list[TargetSpec]()
        free = getattr(trial.target.settings, "free", False)  # a replay calls no model
        if result.cost_usd is None and result.token_usage is not None and not free:
            specs.append(trial.target)
        if result.judge_cost_usd is None and result.judge_token_usage is not None:
            # assertions may have called any of these judges and embedders
            judges = (trial.judge, *trial.suite.judges.values())
            forced = trial.suite.forced_judge
            specs += [forced] if forced is not None else [one for one in judges if one]
        if result.user_cost_usd is None and result.user_token_usage is not None and trial.user_model is not None:
            specs.append(trial.user_model)
        self._models.update(dict.fromkeys(map(_model_of, specs), 1))

    def notes(self) -> Iterator[str]:
        """Yield `no price is known for tiny-model (12 trials); …`, or nothing if all prices are known."""
        named = (f"{one_line(name)} ({plural(count, 'trial')})" for name, count in self._models.items())
        if self._models:
            yield f"no price is known for {', '.join(named)}; `price:` on a target sets it"


def _model_of(spec: TargetSpec) -> str:
    """Return the model, with the server if it is not the provider's own, which is probably why the price is unknown."""
    settings = spec.settings
    model = getattr(settings, "model", None)
    name = model if isinstance(model, str) else spec.name
    place = settings.elsewhere() if isinstance(settings, ProviderSettings) else None
    return name if place is None else f"{name} at {Redactor(spec.secrets).redact(place)}"


class InterruptedTrial(Struct):
    """Model calls and cost of a trial before it was interrupted; US dollars, None if no price is known."""

    calls: int = 0
    cost_usd: float | None = None


def interrupted_trials(run: Path, pending: Container[str]) -> dict[str, InterruptedTrial]:
    """Return trial key → usage for each trial without a result that an earlier process had started.

    Args:
        run: the run directory; rows of interrupted trials were moved to its `history.jsonl`.
        pending: keys of trials without a result.
    """
    found: dict[str, InterruptedTrial] = {}
    for _, line in read_lines(run / JOURNAL):
        body = verified(line.rstrip(b"\n")) if is_spent_line(line) else None
        call = None if body is None else msgspec.json.decode(body, type=SpentLine)
        if call is not None and isinstance(call.trial, str) and call.trial in pending:
            trial = found.setdefault(call.trial, InterruptedTrial())
            trial.calls += 1
            trial.cost_usd = total_cost(trial.cost_usd, call.cost_usd)
    counted = {*found}  # rows of these trials include the same calls
    for _, line in read_lines(run / HISTORY):
        row = row_in(line) if is_interrupted_row(line) else None
        if row is not None and row.key in pending and row.key not in counted:
            trial = found.setdefault(row.key, InterruptedTrial())
            trial.cost_usd = total_cost(trial.cost_usd, row.cost_usd)
    return found
