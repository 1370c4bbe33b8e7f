"""The end of a run: what is written when its trials have ended, and what the outcome says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from msgspec import structs

from agentv.app.running.drive import drive
from agentv.app.running.finish import finish
from agentv.app.running.outcome import Outcome
from agentv.app.running.start import start
from agentv.errors import ExitStatus
from doubles.open_runs import opened

SUITE = "name: s\ntarget: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n"


def outcome_of(one: Any, *, meanwhile: Any = None, **changes: Any) -> Outcome:
    """The outcome of a run, whose last event is changed."""

    async def main() -> Outcome:
        begun = await start(one.run, one.journal)
        done = await drive(begun)
        await begun.connections.close()
        if meanwhile is not None:
            meanwhile()
        return finish(begun, structs.replace(done, finished=structs.replace(done.finished, **changes)))

    return asyncio.run(main())


def summary_of(one: Any) -> Any:
    return json.loads("\n".join(one.lines("summary.json")))


def test_an_interrupted_run_says_so_by_its_status(tmp_path):
    with opened(tmp_path, SUITE) as one:
        outcome = outcome_of(one, interrupted=True)
        assert (outcome.interrupted, outcome.status) == (True, ExitStatus.INTERRUPTED)


def test_the_time_and_the_processes_of_a_resumed_run_add_up(tmp_path):
    with opened(tmp_path, SUITE) as one:
        outcome_of(one, duration_ms=1000.0)
    with opened(tmp_path, SUITE, resume=str(tmp_path / "run")) as one:
        outcome_of(one, duration_ms=500.0)
        assert (summary_of(one)["duration_ms"], summary_of(one)["processes"]) == (1500.0, 2)


def test_rows_that_something_else_wrote_to_are_restored_and_spoil_the_outcome(tmp_path):
    with opened(tmp_path, SUITE) as one:
        index = tmp_path / "run" / "index.jsonl"

        def tamper() -> None:
            with index.open("a", encoding="utf-8") as file:
                file.write('{"key": "forged"}\n')

        outcome = outcome_of(one, meanwhile=tamper)
        assert outcome.touched
        assert outcome.status is ExitStatus.ERRORED
        assert "forged" not in index.read_text(encoding="utf-8")


def test_exports_are_written_and_named(tmp_path):
    path = str(tmp_path / "report.json")
    with opened(tmp_path, SUITE, exports=(path,)) as one:
        outcome = outcome_of(one)
        assert outcome.exports == (path,)
        assert (tmp_path / "report.json").exists()


def test_an_export_that_cannot_be_written_is_a_problem_and_no_crash(tmp_path):
    (tmp_path / "there").mkdir()
    with opened(tmp_path, SUITE, exports=(str(tmp_path / "there" / "report.json"),)) as one:
        (tmp_path / "there").rmdir()
        outcome = outcome_of(one)
        assert outcome.exports == ()
        assert outcome.problem is not None
        assert outcome.status is ExitStatus.ERRORED


def test_a_budget_is_part_of_the_summary_and_of_the_notes(tmp_path):
    with opened(tmp_path, SUITE, budget_usd=1.0) as one:
        outcome = outcome_of(one)
        assert outcome.budget is not None
        assert (outcome.budget.usd, outcome.budget.used_up, outcome.uncounted) == (1.0, False, False)
        assert any(note.startswith("budget: ") for note in outcome.notes)
