"""End of a run: its summary, its exams, its cassette and its exports, and what wrote to its files meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import structs
from msgspec.structs import replace

from agentv.app.labelled_runs import has_gate, labelled_runs
from agentv.app.planning.preparation import caches, results_of, root_of
from agentv.app.results.place import planned_counts
from agentv.app.running.drive import DrivenRun
from agentv.app.running.outcome import Outcome, cut_by, journal_damage, superseded_rows
from agentv.app.running.run_record import partial_of, with_agent_versions
from agentv.app.running.start import StartedRun
from agentv.errors import StoreError
from agentv.model.run.summary import Summary
from agentv.model.values.formatting import money, plural
from agentv.model.values.usage import BudgetUse
from agentv.reports.text.escaping import one_line
from agentv.store.files.directory import INDEX, RUN, read_document

if TYPE_CHECKING:
    from agentv.app.results.stored import StoredRun
    from agentv.app.running.exam_attempt import ExamAttempt
    from agentv.engine.calls.budget import BudgetLimiter


def finish(started: StartedRun, driven: DrivenRun) -> Outcome:
    """Write all results of a run whose trials have ended.

    Raises:
        StoreError: the run's directory, or a cassette, cannot be written.
    """
    run, journal, finished = started.open, started.journal, driven.finished
    budget_limiter = run.budget_limiter
    notes = _notes(started)
    journal.flush()  # comparisons and gates are made of the rows on the disk
    record = with_agent_versions(started.record, run.totals.agent_versions)
    if record is not None:
        journal.write_record(record)
    summary = _summary(started, driven, budget_limiter.use() if budget_limiter is not None else None)
    summary = _with_gates(started, summary)
    journal.write_summary({**summary.as_json(), **started.earlier.summary_keys})
    attempts = _exam_attempts(started, interrupted=finished.interrupted)
    cassette, failed = run.sources.ended(
        interrupted=finished.interrupted, cut=finished.unstarted > 0, errored=summary.trials.errored
    )
    shown = _with_corrected_rates(started, summary)
    if _labels_changed(started):
        notes = (*notes, "labels were changed during the run; its gates are decided by those from before")
    exports: tuple[str, ...] = ()
    problems = _changed_rows(started)
    if run.prepared.settings.exports and not problems:
        from agentv.app.exports import write_exports

        exports, problems = write_exports(_stored(started), run.prepared.settings.exports)
    notes = (*notes, *_notes_on(budget_limiter, summary), *((cassette,) if cassette and not failed else ()))
    return Outcome(
        run.directory.run_id,
        run.directory.path,
        shown,
        finished.interrupted,
        notes=notes,
        fail_fast=run.prepared.settings.fail_fast,
        allow_unchecked=run.prepared.settings.allow_unchecked,
        problem="; ".join((*((cassette,) if failed else ()), *problems)) or None,
        budget=summary.budget,
        uncounted=budget_limiter is not None and budget_limiter.uncounted,
        exam_attempts=attempts,
        exports=exports,
        record=started.record,
    )


def _notes(started: StartedRun) -> tuple[str, ...]:
    """What people should know of the run's directory, of prices, of the cache, and of the files that graded."""
    journal = started.journal
    return (
        *journal.repaired,
        *journal_damage(journal.damaged),
        *superseded_rows(started.earlier.superseded),
        *started.open.totals.unpriced.notes(),
        *started.open.totals.trial_notes.notes(),
        *started.open.sources.notes(),
        *started.connections.notes(),
    )


def _summary(started: StartedRun, driven: DrivenRun, budget: BudgetUse | None) -> Summary:
    """The totals of the run, of all its processes."""
    run, finished, (cases, trials) = started.open, driven.finished, driven.counts
    summary = run.totals.counts.summary(
        run_id=run.directory.run_id,
        planned=replace(planned_counts(started.record), cases=cases, trials=trials),
        duration_ms=run.previous.duration_ms + finished.duration_ms,
        processes=run.previous.processes + 1,
    )
    summary = structs.replace(summary, budget=budget) if budget is not None else summary
    summary = structs.replace(
        summary,
        partial=partial_of(run.prepared),
        held_back=run.totals.held_back,
        judges=tuple(run.totals.judges),
    )
    draws = run.prepared.draws
    if draws is not None:
        from agentv.app.against import comparison_of

        summary = structs.replace(summary, against=comparison_of(draws))
    cut = cut_by(finished, summary, draws)
    summary = summary if cut is None else summary.cut_short(cut)
    if summary.matrix is None:
        return summary
    from agentv.app.compare.within import with_comparisons  # imports numpy, for the few runs with several targets

    return with_comparisons(summary, run.directory.path / INDEX, started.record)


def _exam_attempts(started: StartedRun, *, interrupted: bool) -> tuple[ExamAttempt, ...]:
    """What the run came to as an exam, appended to the logs of the prompts."""
    run = started.open
    if all(suite.exam is None for suite in run.prepared.suites):
        return ()
    from agentv.app.running.exam_attempt import record_attempts, why_of_run

    settings, before = run.prepared.settings, run.previous.settings
    why = tuple(why_of_run(settings, before, interrupted=interrupted, cached=caches(run.prepared)))
    return record_attempts(run.prepared, run.totals.exam_rows.values(), run_id=run.directory.run_id, why=why)


def _labels_changed(started: StartedRun) -> bool:
    """Whether labels that decide gates are others now than before the run, which read them then."""
    prepared = started.open.prepared
    if not any(map(has_gate, prepared.suites)):
        return False
    now = labelled_runs().of_suites((suite.name for suite in prepared.suites), results_of(prepared.suites))
    return now.problem is not None or now.sha256 != started.open.labels.sha256


def _with_gates(started: StartedRun, summary: Summary) -> Summary:
    """The totals with what the gates of the suites come to; labels are those from before the run."""
    run = started.open
    if summary.is_empty_shard:
        return summary
    gated = any(map(has_gate, run.prepared.suites))
    changed = run.previous.processes > 0 and run.previous.labels_sha256 != run.labels.sha256
    if gated:
        summary = labelled_runs().with_gates(summary, _stored(started), run.prepared.suites, changed=changed)
    if not summary.activation:
        return summary
    from agentv.app.activation_gate import activation_gate

    queried = {one.suite for one in summary.activation}
    skills = (
        activation_gate(one, summary.activation, run.totals.counts.failed_queries(one.name))
        for one in run.prepared.suites
        if one.skill_minimums is not None and one.name in queried
    )
    return structs.replace(summary, gates=(*summary.gates, *dict.fromkeys(skills)))


def _with_corrected_rates(started: StartedRun, summary: Summary) -> Summary:
    """The totals as they are shown: with what labels say of the judges that graded."""
    return labelled_runs().with_rates(summary, _stored(started)) if summary.judges else summary


def _stored(started: StartedRun) -> StoredRun:
    """The run as it lies on the disk, with the labels from before it began."""
    from agentv.app.results.stored import StoredRun
    from agentv.store.journal.verification import stored_summary

    run = started.open
    path, root = run.directory.path, root_of(run.prepared.suites)
    stored = stored_summary(path)
    summary = stored and stored.document
    return StoredRun(path, root, run.directory.run_id, read_document(path / RUN), summary, labels=run.labels)


def _changed_rows(started: StartedRun) -> tuple[str, ...]:
    """Why the rows on the disk are not those of the run, where gates or exports are made of them."""
    prepared, path = started.open.prepared, started.open.directory.path
    if not prepared.settings.exports and not any(map(has_gate, prepared.suites)):
        return ()
    from agentv.store.journal.verification import check_rows, stored_summary

    try:
        check_rows(path)
        written = stored_summary(path)
    except StoreError as error:
        return (str(error),)
    if written is not None and written.verified:
        return ()
    return (f"{path / INDEX}: rows were added or removed during the run; --resume grades their trials again",)


def _notes_on(budget_limiter: BudgetLimiter | None, summary: Summary) -> Iterator[str]:
    """Notes about the budget: what was spent, what did not run, and calls that could not be counted."""
    if budget_limiter is None:
        return
    use, parts = budget_limiter.use(), []
    if use.usd is not None:
        parts.append(f"{money(use.spent_usd)} of {money(use.usd)}")
    if use.tokens is not None:
        parts.append(f"{use.spent_tokens:,} of {use.tokens:,} tokens")
    note = f"budget: {' and '.join(parts)} spent"
    if use.used_up:
        trials = summary.trials
        run = f"{trials.total - trials.skipped:,} of {plural(trials.total, 'trial')} run"
        note += f"; {run}, {trials.skipped:,} not run"
    yield note
    for name, what in budget_limiter.silent():
        word = "what its calls cost" if what == "usd" else "how many tokens its calls use"
        yield f"'{one_line(name)}' does not report {word}: the budget counts them as zero"
