"""What the start of a run writes and reports to its sink, and which of its trials become rows."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.app.running.drive import drive
from agentv.app.running.run_record import with_agent_versions
from agentv.app.running.start import InterruptedTrial, StartedRun, Unpriced, interrupted_trials, start
from agentv.engine.dependency_order import OnDemandScheduler
from agentv.model.run.events import RunFinished, TrialFinished
from agentv.model.suite.suite import SimulatedUser, TargetSpec
from agentv.model.values.usage import TokenUsage
from agentv.store.files.directory import HISTORY, JOURNAL
from agentv.store.journal.answers import HEADER, spent_line
from doubles.keyed import Keyed
from doubles.open_runs import open_run
from doubles.trials import finished, trial

SUITE = "name: s\ntarget: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n"
TWO = f"{SUITE}  - {{id: b, input: bye, assert: [contains: hi]}}\n"


def started(one: Any, **options: Any) -> StartedRun:
    async def main() -> StartedRun:
        found = await start(one.run, one.journal, **options)
        await found.connections.close()
        return found

    return asyncio.run(main())


def ran(project: Path, suite: str) -> None:
    """Run a suite into a directory that another run can resume."""

    async def main(one: Any) -> None:
        begun = await start(one.run, one.journal)
        await drive(begun)
        await begun.connections.close()

    with open_run(project, suite) as one:
        asyncio.run(main(one))


def pending(found: StartedRun) -> list[str]:
    return [trial.case.id for trial in found.pending()]


def test_rows_of_cases_that_are_gone_are_superseded(tmp_path):
    ran(tmp_path, TWO)
    with open_run(tmp_path, SUITE, resume=str(tmp_path / "run")) as one:
        assert started(one).earlier.superseded == 1
        assert len(one.lines("index.jsonl")) == 1


def test_failed_trials_that_are_asked_for_run_again(tmp_path):
    ran(tmp_path, TWO)
    with open_run(tmp_path, TWO, resume=str(tmp_path / "run"), rerun="failed") as one:
        assert pending(started(one)) == ["b"]


def test_a_damaged_record_is_replaced_and_its_trials_stay_done(tmp_path):
    ran(tmp_path, SUITE)
    (tmp_path / "run" / "run.json").write_text("{", encoding="utf-8")
    with open_run(tmp_path, SUITE, resume=str(tmp_path / "run")) as one:
        assert pending(started(one)) == []
        assert json.loads("\n".join(one.lines("run.json")))["planned"] == {"cases": 1, "trials": 1}


@pytest.mark.parametrize("loads", [True, False])
def test_code_that_grades_is_imported_before_a_target_is_called(tmp_path, loads):
    (tmp_path / "grade.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('imported').touch()\ndef grade(output): return True\n",
        encoding="utf-8",
    )
    with open_run(tmp_path, SUITE.replace("contains: hi", "{type: python, value: 'grade.py:grade'}")) as one:
        started(one, loads_code=loads)
    assert (tmp_path / "imported").exists() is loads


TOKENS = TokenUsage(1, 2, 3)


def asked(model="tiny", *, judge=None, forced=None, user=None, at=None, secrets=frozenset(), **given):
    """Return a finished trial of a target with that model."""
    spec = TargetSpec("a", "keyed", Keyed(model, base_url=at), secrets=secrets)
    subject = trial(judge=judge and TargetSpec("j", "keyed", Keyed(judge)))
    suite = replace(subject.suite, forced_judge=forced and TargetSpec("f", "keyed", Keyed(forced)))
    player = SimulatedUser("x", model=TargetSpec("u", "keyed", Keyed(user))) if user else None
    case = replace(subject.case, user=player)
    return finished(trial=replace(subject, case=case, target=spec, suite=suite), **given)


JUDGED = {"judge_token_usage": TOKENS}


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([asked()], []),
        ([asked(token_usage=TOKENS, cost_usd=0.1)], []),
        ([asked(token_usage=TOKENS)], ["no price is known for tiny (1 trial); `price:` on a target sets it"]),
        (
            [asked(token_usage=TOKENS)] * 3,
            ["no price is known for tiny (3 trials); `price:` on a target sets it"],
        ),
        (
            [asked(token_usage=TOKENS, at="http://localhost:8000/v1")],
            ["no price is known for tiny at http://localhost:8000/v1 (1 trial); `price:` on a target sets it"],
        ),
        (
            [asked(token_usage=TOKENS, at="http://me:pw@host/se-cret-9/v1?k=1", secrets=frozenset({"se-cret-9"}))],
            ["no price is known for tiny at http://host/[redacted]/v1 (1 trial); `price:` on a target sets it"],
        ),
        ([asked(judge="small", judge_cost_usd=0.1, **JUDGED)], []),
        (
            [asked(judge="small", **JUDGED)],
            ["no price is known for small (1 trial); `price:` on a target sets it"],
        ),
        (
            [asked(user="small", user_token_usage=TOKENS)],
            ["no price is known for small (1 trial); `price:` on a target sets it"],
        ),
        (
            [asked(judge="small", forced="big", **JUDGED, token_usage=TOKENS)],
            ["no price is known for tiny (1 trial), big (1 trial); `price:` on a target sets it"],
        ),
    ],
)
def test_a_price_that_is_not_known_is_told_once(results, said):
    found = Unpriced()
    for result in results:
        found.add(result)
    assert list(found.notes()) == said


ROW = '{{"test_id":"{0}","target":"t","status":"errored","cost_usd":{1},"key":"{0}","error":{{"code":"{2}"}}}}\n'


def test_only_pending_trials_count_and_a_call_counts_once(tmp_path):
    torn = spent_line("t", "a", None, 9.0, "calls")[:-3] + b"0}\n"  # its checksum is wrong
    spent = [
        spent_line("t", "a", TokenUsage(3, 4), 0.5, "calls"),
        spent_line("t", "a", None, 0.25, "calls"),
        spent_line("t", "a", TokenUsage(3, 4), None, "unpriced"),
        spent_line("t", "b", None, 1.0, "done"),
        spent_line("t", "b", None, 1.0),  # written by an earlier version
    ]
    (tmp_path / JOURNAL).write_bytes(HEADER + b"".join([*spent, torn]))
    rows = [("calls", 0.75, "interrupted"), ("row", 2, "interrupted"), ("row", 1, "interrupted"), ("new", 4, "timeout")]
    (tmp_path / HISTORY).write_text("".join(ROW.format(*row) for row in rows))
    assert interrupted_trials(tmp_path, {"calls", "unpriced", "row", "new"}) == {
        "calls": InterruptedTrial(2, 0.75),
        "unpriced": InterruptedTrial(1, None),
        "row": InterruptedTrial(0, 3.0),
    }


@pytest.mark.parametrize(
    ("before", "versions", "after"),
    [
        ({}, {}, None),
        ({}, {"claude": {"2.1", "2.0"}}, {"claude": ["2.0", "2.1"]}),
        ({"agent_versions": {"claude": ["2.0"]}}, {"claude": {"2.0"}}, None),
        ({"agent_versions": {"claude": ["2.0"]}}, {"codex": {"1"}}, {"claude": ["2.0"], "codex": ["1"]}),
        ({"agent_versions": "edited"}, {"codex": {"1"}}, {"codex": ["1"]}),
        ({"agent_versions": {"claude": [["edited"], 7]}}, {"claude": {"2.0"}}, {"claude": ["2.0"]}),
    ],
)
def test_versions_of_agents_are_those_of_all_processes(before, versions, after):
    found = with_agent_versions({"run_id": "x", **before}, versions)
    assert found == (None if after is None else {"run_id": "x", "agent_versions": after})


def driven(one: Any, **options: Any) -> tuple[RunFinished, tuple[int, int]]:
    async def main() -> tuple[RunFinished, tuple[int, int]]:
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
    with open_run(tmp_path, TWO) as one:
        rows: list[int] = []
        sink = one.run.sink

        def counting(event: Any) -> None:
            if isinstance(event, TrialFinished):
                rows.append(len(set(one.journal.finished())))
            sink(event)

        structs.force_setattr(one.run, "sink", counting)
        ended, counts = driven(one)
        assert (shown(one), rows) == ([("a", "passed"), ("b", "failed")], [1, 2])
        assert one.names() == ["RunStarted", "TrialFinished", "TrialFinished", "RunFinished"]
        assert (ended.unstarted, counts) == (0, (2, 2))


def test_an_answer_is_in_the_journal_before_its_row(tmp_path):
    with open_run(tmp_path, SUITE) as one:
        driven(one)
        one.journal.close()
        kinds = ["row" if '"row"' in line else "answer" for line in one.lines("journal.jsonl") if '"key"' in line]
        assert kinds[0] == "answer"


def test_of_a_plan_only_the_trials_that_are_asked_for_run(tmp_path):
    with open_run(tmp_path, TWO) as one:

        def demand(scheduler: OnDemandScheduler) -> None:
            scheduler.ask([trial for trial in one.run.prepared.plan if trial.case.id == "b"])
            scheduler.end()

        _, counts = driven(one, demand=demand)
        assert (shown(one), counts) == ([("b", "failed")], (1, 1))


def test_what_is_shown_holds_no_secret_and_names_the_trial_that_was_planned(tmp_path):
    suite = "name: s\nenv: {API_KEY: s3cr3t-and-long}\n" + SUITE.replace("name: s\n", "").replace(
        "input: hi", "input: 'hi s3cr3t-and-long'"
    )
    with open_run(tmp_path, suite) as one:
        driven(one)
        (event,) = (event for event in one.events if isinstance(event, TrialFinished))
        assert "s3cr3t-and-long" not in str(event.result.output)
        assert "s3cr3t-and-long" in str(event.planned.case.input)
