"""The trials of a started run: what becomes a row, in which order, and what its sink is shown."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import structs

from agentv.app.running.drive import DrivenRun, drive
from agentv.app.running.start import start
from agentv.engine.on_demand import OnDemandScheduler
from agentv.model.run.events import TrialFinished
from doubles.open_runs import opened

SUITE = "name: s\ntarget: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n"
TWO = f"{SUITE}  - {{id: b, input: bye, assert: [contains: hi]}}\n"


def driven(one: Any, **options: Any) -> DrivenRun:
    async def main() -> DrivenRun:
        begun = await start(one.run, one.journal)
        try:
            return await drive(begun, **options)
        finally:
            await begun.connections.close()

    return asyncio.run(main())


def shown(one: Any) -> list[tuple[str, str]]:
    finished = (event.result for event in one.events if isinstance(event, TrialFinished))
    return [(result.trial.case.id, result.status) for result in finished]


def test_every_trial_gets_a_row_before_it_is_shown(tmp_path):
    with opened(tmp_path, TWO) as one:
        rows: list[int] = []
        sink = one.run.sink

        def counting(event: Any) -> None:
            if isinstance(event, TrialFinished):
                rows.append(len(set(one.journal.finished())))
            sink(event)

        structs.force_setattr(one.run, "sink", counting)
        found = driven(one)
        assert (shown(one), rows) == ([("a", "passed"), ("b", "failed")], [1, 2])
        assert one.names() == ["RunStarted", "TrialFinished", "TrialFinished", "RunFinished"]
        assert (found.finished.unstarted, found.counts) == (0, (2, 2))


def test_an_answer_is_in_the_journal_before_its_row(tmp_path):
    with opened(tmp_path, SUITE) as one:
        driven(one)
        one.journal.close()
        kinds = ["row" if '"row"' in line else "answer" for line in one.lines("journal.jsonl") if '"key"' in line]
        assert kinds[0] == "answer"


def test_of_a_plan_only_the_trials_that_are_asked_for_run(tmp_path):
    with opened(tmp_path, TWO) as one:

        def demand(scheduler: OnDemandScheduler) -> None:
            scheduler.ask([trial for trial in one.run.prepared.plan if trial.case.id == "b"])
            scheduler.end()

        found = driven(one, demand=demand)
        assert (shown(one), found.counts) == ([("b", "failed")], (1, 1))


def test_what_is_shown_holds_no_secret_and_names_the_trial_that_was_planned(tmp_path):
    suite = "name: s\nenv: {API_KEY: s3cr3t-and-long}\n" + SUITE.replace("name: s\n", "").replace(
        "input: hi", "input: 'hi s3cr3t-and-long'"
    )
    with opened(tmp_path, suite) as one:
        driven(one)
        (event,) = (event for event in one.events if isinstance(event, TrialFinished))
        assert "s3cr3t-and-long" not in str(event.result.output)
        assert event.planned is not None
        assert "s3cr3t-and-long" in str(event.planned.case.input)
