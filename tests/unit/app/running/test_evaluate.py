"""The end of a run: files and messages after its trials, and the list before it."""

import asyncio
import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.app.planning.preparation import prepare
from agentv.app.running.artifacts import redacted_stream
from agentv.app.running.drive import drive
from agentv.app.running.evaluate import Outcome, evaluate, finish
from agentv.app.running.exam_attempt import ExamAttempt
from agentv.app.running.notebook import UPDATE_INTERVAL_S, CellProgress
from agentv.app.running.start import start
from agentv.app.settings import EvalSettings
from agentv.cli.listing import listed_cases
from agentv.errors import ExitStatus
from agentv.model.redaction import Redactor
from agentv.model.run.events import RunStarted, TrialFinished
from agentv.model.run.matrix import Counts
from agentv.model.run.runs import ListedCase, ListedTotals
from agentv.model.run.summary import GateResult, PartialRun, SequentialComparison
from doubles.listed_runs import SUMMARY
from doubles.loading import repository
from doubles.open_runs import open_run
from doubles.trials import finished

SUITE = "name: s\ntarget: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n"


def outcome_of(one: Any, **changes: Any) -> Outcome:
    """Return the outcome of a run whose last event has these changes."""

    async def main() -> Outcome:
        begun = await start(one.run, one.journal)
        finished, counts = await drive(begun)
        await begun.connections.close()
        return finish(begun, structs.replace(finished, **changes), counts)

    return asyncio.run(main())


def test_an_interrupted_run_says_so_by_its_status(tmp_path):
    with open_run(tmp_path, SUITE) as one:
        outcome = outcome_of(one, interrupted=True)
        assert (outcome.interrupted, outcome.status) == (True, ExitStatus.INTERRUPTED)


def test_exports_are_written_and_named(tmp_path):
    path = str(tmp_path / "report.json")
    with open_run(tmp_path, SUITE, exports=(path,)) as one:
        assert outcome_of(one).exports == (path,)
        assert (tmp_path / "report.json").exists()


def test_an_export_that_cannot_be_written_is_a_problem_and_no_crash(tmp_path):
    (tmp_path / "there").mkdir()
    with open_run(tmp_path, SUITE, exports=(str(tmp_path / "there" / "report.json"),)) as one:
        (tmp_path / "there").rmdir()
        outcome = outcome_of(one)
        assert outcome.exports == ()
        assert outcome.problem is not None
        assert outcome.status is ExitStatus.ERRORED


def test_a_budget_is_part_of_the_summary_and_of_the_notes(tmp_path):
    with open_run(tmp_path, SUITE, budget_usd=1.0) as one:
        outcome = outcome_of(one)
        assert (outcome.budget.usd, outcome.budget.used_up, outcome.uncounted) == (1.0, False, False)
        assert any(note.startswith("budget: ") for note in outcome.notes)


SECRET = "sk-shop-1234567890abcdef"


def update(text, **more):
    return {"method": "session/update", "params": {"update": {"content": {"type": "text", "text": text}, **more}}}


def lines(*objects):
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


def texts(data):
    return "".join(
        json.loads(line)["params"]["update"]["content"]["text"] for line in data.splitlines() if b"params" in line
    )


@pytest.mark.parametrize("size", [1, 3, 7, 12, 23])
def test_a_secret_in_pieces_is_taken_out_of_all_of_them(size):
    said = f"The key is {SECRET}, and the rest."
    data = lines(*(update(said[at : at + size]) for at in range(0, len(said), size)))
    clean = redacted_stream(data, Redactor([SECRET]))
    assert texts(clean) == "The key is [redacted], and the rest."
    assert len(clean.splitlines()) == len(data.splitlines())


def test_a_secret_in_two_pieces_is_taken_out_of_both_and_other_letters_stay():
    data = lines(update(f"caf\xe9 {SECRET[:9]}"), update(f"{SECRET[9:]} \ud800"))
    clean = redacted_stream(data.replace(b"caf\\u00e9", "caf\xe9".encode()), Redactor([SECRET]))
    assert texts(clean) == "caf\xe9 [redacted] \ud800"
    assert "caf\xe9 [redacted]".encode() in clean


def test_pieces_of_different_places_are_not_one_text():
    data = lines(update(SECRET[:6]), {"method": "x", "params": {"other": SECRET[6:12]}})
    assert redacted_stream(data, Redactor([SECRET])) == data


def test_what_has_no_secret_keeps_its_bytes():
    data = b'{"a" : "\\u00e4"}\n{"a": "b"}\n{"torn": "'
    assert redacted_stream(data, Redactor([SECRET])) == data
    assert redacted_stream(data, Redactor()) is data


LISTING_SUITE = """\
target: echo
judge: 'mock:{"score": 1}'
prompts: [{id: brief, prompt: "{{ t }}"}, {id: long, prompt: "At length {{ t }}"}]
tests:
  - {id: a, vars: {t: x}, tags: [smoke], assert: [{contains: x}, Is polite, Is short]}
  - id: b
    vars: {t: x}
    repeat: 3
    assert:
      - assert-set: [{llm-rubric: Is polite}, {contains: x}, {not-llm-rubric: Is rude}]
      - {type: script, command: "true", target: {max_calls: 4}}
"""


@pytest.fixture
def project(tmp_path):
    repository(tmp_path, {"a.eval.yaml": LISTING_SUITE})
    with chdir(tmp_path):
        yield tmp_path


def listed(**options: Any) -> tuple[list[ListedCase], ListedTotals]:
    totals = ListedTotals()
    prepared = prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, **options))
    return list(listed_cases(prepared, totals)), totals


def shown(cases: list[ListedCase]) -> list[tuple[str, str | None, str, int]]:
    return [(one.test_id, one.prompt_id, one.target, one.trials) for one in cases]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"filter": "b*"}, {"b"}),
        ({"tags": ("smoke",)}, {"a"}),
        ({"exclude_tags": ("smoke",)}, {"b"}),
        ({"limit": 1}, {"a"}),
        ({"sample": 1, "seed": 3}, None),
        ({"repeat": 2}, {"a", "b"}),
    ],
)
def test_every_flag_that_chooses_is_respected(project, options, ids):
    cases, totals = listed(**options)
    prepared = prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, **options))
    assert (totals.cases, totals.trials) == prepared.counts
    if ids is not None:
        assert {one.test_id for one in cases} == ids


def test_what_a_resumed_run_has_is_not_listed(project):
    evaluate(prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, out="run")), lambda _event: None)
    index = project / "run" / "index.jsonl"
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(line for line in lines if json.loads(line)["test_id"] == "a"))
    cases, _ = listed(resume="run")
    assert shown(cases) == [("b", "brief", "echo", 3), ("b", "long", "echo", 3)]
    assert listed(resume="run", filter="a")[0] == []
    index.write_text(lines[0])
    assert len(listed(resume="run")[0]) == 3


def rows(directory, *costs: tuple[float | None, float | None], suite="a") -> None:
    directory.mkdir(parents=True)
    common = {"test_id": "a", "target": "echo", "suite": suite, "status": "passed", "key": "k"}
    (directory / "index.jsonl").write_text(
        "".join(json.dumps({**common, "cost_usd": cost, "judge_cost_usd": judged}) + "\n" for cost, judged in costs)
    )


def test_the_price_is_the_mean_of_the_last_run_that_tells(project):
    results = project / ".agentv" / "results"
    rows(results / "20260101T000000Z-0000", (9.0, None))
    rows(results / "20260102T000000Z-0000", (0.2, None), (0.3, 0.1), (None, 5.0))
    rows(results / "20260103T000000Z-0000", (None, None))
    rows(results / "20260104T000000Z-0000", (7.0, None), suite="another")
    cases, totals = listed(targets=("echo", "mock:hi"))
    assert totals.cost_usd == pytest.approx(8 * 0.3)
    assert totals.unpriced == 8
    assert len(cases) == 8


@pytest.mark.parametrize("damage", [b"", b"\xff", b"no json\n", b'{"schema_version": 99}\n'])
def test_no_price_is_no_zero(project, damage):
    rows(project / ".agentv" / "results" / "20260101T000000Z-0000", (0.5, None))
    (project / ".agentv" / "results" / "20260101T000000Z-0000" / "index.jsonl").write_bytes(damage)
    _, totals = listed()
    assert (totals.cost_usd, totals.unpriced) == (None, 8)


class Cell:
    """A notebook cell's output: what it shows, and how often that changed."""

    def __init__(self) -> None:
        self.shown = []

    def display(self, data):
        self.shown.append(data["text/plain"])
        return self

    def update(self, data, *, raw):
        assert raw
        self.shown[-1] = data["text/plain"]
        self.changes = getattr(self, "changes", 0) + 1


def test_a_thousand_trials_are_one_line_that_changes_a_few_times():
    cell, time = Cell(), [0.0]
    progress = CellProgress(cell.display, lambda: time[0])
    progress.draw()
    assert cell.shown == []
    progress.add(RunStarted(1000))
    result = finished()
    for _ in range(1000):
        time[0] += UPDATE_INTERVAL_S / 100
        progress.add(TrialFinished(result))
        progress.draw()
    progress.draw(now=True)
    assert cell.shown == ["1000/1000 trials: 1000 passed, 0 failed, 0 errored"]
    assert cell.changes <= 12
    progress.draw(now=True)
    assert cell.changes <= 12


PASSED, FAILED, ERRORED = ExitStatus.PASSED, ExitStatus.FAILED, ExitStatus.ERRORED
NO_ROW = ExamAttempt(suite=None, exam=None, exam_row=None, verdicts={}, error="no space left on the disk")


def gate(suite, failed, *, passed=True):
    return GateResult("corrected", suite, passed, "why", failed=failed)


def against(verdict):
    values = {"difference": (0, 0), "interval": (0, 0), "alpha": 0.05, "margin": 0.05, "drawn": 1, "clusters": 1}
    return SequentialComparison("r0", verdict, **values, cases=2, unpaired=0, errored=0, seed=0)


@pytest.mark.parametrize(
    ("cases", "of_summary", "of_outcome", "status"),
    [
        ({"passed": 9}, {}, {}, PASSED),
        ({}, {}, {}, FAILED),
        ({"passed": 9, "failed": 1}, {}, {}, FAILED),
        ({"passed": 9, "errored": 1}, {}, {}, ERRORED),
        ({"failed": 9, "errored": 1}, {}, {}, ERRORED),
        ({"failed": 9, "errored": 1}, {}, {"interrupted": True}, ExitStatus.INTERRUPTED),
        ({"passed": 9}, {}, {"interrupted": True}, ExitStatus.INTERRUPTED),
        ({"passed": 9, "skipped": 1}, {}, {}, ERRORED),
        ({"passed": 9, "skipped": 1}, {"cut": "max-errors"}, {}, ERRORED),
        ({"failed": 1, "skipped": 1}, {"held_back": 1}, {}, FAILED),
        ({"failed": 1, "skipped": 2}, {"held_back": 1}, {}, ERRORED),
        ({"failed": 1, "skipped": 9}, {}, {"fail_fast": True}, FAILED),
        ({"passed": 1, "skipped": 9}, {}, {"fail_fast": True}, ERRORED),
        ({"errored": 1, "skipped": 9}, {}, {"fail_fast": True}, ERRORED),
        ({"passed": 9, "shown": 1}, {}, {}, FAILED),
        ({"passed": 9, "shown": 1}, {}, {"allow_unchecked": True}, PASSED),
        ({"passed": 9}, {}, {"problem": "cannot write a.csv"}, ERRORED),
        ({"failed": 9}, {}, {"problem": "cannot write a.csv"}, ERRORED),
        ({"passed": 9}, {}, {"exam_attempts": (NO_ROW,)}, ERRORED),
        ({"passed": 9}, {"against": against("worse")}, {}, FAILED),
        ({"passed": 9, "skipped": 1}, {"against": against("worse")}, {}, FAILED),
        ({"passed": 9, "skipped": 1}, {"against": against("inconclusive")}, {}, ERRORED),
        ({"passed": 9}, {"gates": (gate("a", 0, passed=False),)}, {}, FAILED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 2),)}, {}, PASSED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 1),)}, {}, FAILED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 1), gate("a", 1))}, {}, FAILED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 1), gate("b", 1))}, {}, PASSED),
        ({"failed": 1, "errored": 1}, {"gates": (gate("a", 1),)}, {}, ERRORED),
        ({}, {"partial": PartialRun(0, 3, ("shard",), trials=0, of_trials=3)}, {}, PASSED),
        ({}, {"partial": PartialRun(1, 3, ("shard",), trials=1, of_trials=3)}, {}, FAILED),
    ],
)
def test_the_exit_status(cases, of_summary, of_outcome, status):
    counts = Counts(sum(cases.values()), **cases)
    summary = replace(SUMMARY, cases=counts, trials=counts, **of_summary)
    assert Outcome("r", Path("r"), summary, **{"interrupted": False, **of_outcome}).status == status
