"""Conversion of a run's rows to a row of a prompt's log."""

from datetime import UTC, datetime

import pytest
from msgspec import structs

from agentv.app.planning.preparation import prepare
from agentv.app.running.exam_attempt import append_to_log, exam_attempts
from agentv.app.settings import EvalSettings
from agentv.errors import StoreError
from agentv.model.run.row import Row
from agentv.prompts import appending
from doubles.loading import repository

EXAM = """\
cases:
  - {name: a, inputs: {name: Ann}, assert: [contains: Ann]}
  - {name: b, inputs: {name: Bo}, assert: [contains: Bo], repeat: 2}
"""
FILES = {
    "prompts/greeter/prompt.md": "Greet {{ name }}",
    "prompts/greeter/meta.yaml": "description: greets\n",
    "prompts/greeter/eval.yml": EXAM,
    ".agentv/targets.yaml": "targets: [{name: pupil, provider: echo}]\ndefaults: {target: pupil}\n",
}
NOW = datetime(2026, 11, 22, 8, 35, 0, 125_000, UTC)


@pytest.fixture
def prepared(tmp_path):
    def read(exam=EXAM, **settings):
        repository(tmp_path, {**FILES, "prompts/greeter/eval.yml": exam})
        paths = (str(tmp_path / "prompts"),)
        return prepare(EvalSettings(paths=paths, process_env={}, **settings))

    return read


def rows(prepared, *statuses: str) -> list[Row]:
    """Return a row per trial of the plan, as far as there are statuses."""
    return [
        Row(
            test_id=trial.case.id,
            target=trial.target.name,
            status=status,
            key=trial.key,
            score=1.0 if status == "passed" else 0.0,
        )
        for trial, status in zip(prepared.plan, statuses, strict=False)
    ]


def sat(prepared, found, *, interrupted=False):
    (one,) = exam_attempts(prepared, found, run_id="r", now=NOW, why=["it was interrupted"] if interrupted else [])
    return one


@pytest.mark.parametrize(
    ("statuses", "passed", "failed", "errored", "partial"),
    [
        (("failed", "passed", "passed"), 1, ("a",), 0, False),
        (("errored", "passed", "passed"), 1, ("a",), 1, False),
        (("passed", "passed", "errored"), 1, ("b",), 1, False),
        (("passed", "passed"), 1, ("b",), 0, True),
        (("passed", "passed", "skipped"), 1, ("b",), 0, True),
        ((), 0, ("a", "b"), 0, True),
    ],
)
def test_nothing_but_passed_samples_pass_a_case(prepared, statuses, passed, failed, errored, partial):
    run = prepared()
    found = sat(run, rows(run, *statuses)).exam_row
    assert not found.all_passed
    assert (found.total, found.passed, found.failed_cases) == (2, passed, failed)
    assert (found.errored, found.partial) == (errored, partial)


def test_of_several_rows_of_one_trial_the_last_counts_and_others_rows_count_for_nothing(prepared):
    run = prepared()
    earlier = rows(run, "errored", "failed", "passed")
    others = [Row(test_id="a", target="pupil", status="failed", key="another-key", score=0.0)]
    assert sat(run, [*earlier, *rows(run, "passed", "passed", "passed"), *others]).exam_row.all_passed


def test_an_interrupted_run_is_partial_even_where_all_that_ran_passed(prepared):
    run = prepared()
    assert sat(run, rows(run, "passed", "passed", "passed"), interrupted=True).exam_row.partial


@pytest.mark.parametrize(
    "settings",
    [{"filter": "a"}, {"limit": 1}, {"shard": "1/2"}, {"repeat": 1}, {"threshold": 0.0}, {"variables": {"name": "A"}}],
    ids=str,
)
def test_less_than_the_exam_is_partial(prepared, settings):
    run = prepared(**settings)
    assert sat(run, rows(run, *["passed"] * run.counts[1])).exam_row.partial


@pytest.mark.parametrize("settings", [{"filter": "*"}, {"repeat": 3}, {"workers": 1}, {"targets": ("pupil",)}], ids=str)
def test_what_leaves_the_exam_whole_is_not_partial(prepared, settings):
    run = prepared(**settings)
    assert not sat(run, rows(run, *["passed"] * run.counts[1])).exam_row.partial


JUDGED = """\
defaults: {model: pupil, judge: 'mock:SCORE=5 REASON=good'}
triggering: {should_trigger: [greet me], should_not_trigger: []}
cases:
  - {name: a, inputs: {name: Ann}, rubric: 'Is it warm?'}
"""


def test_another_judge_or_model_than_the_exam_names_makes_it_partial(prepared):
    for settings in ({"judge": "mock:SCORE=5 REASON=other"}, {"targets": ("mock:x",)}):
        run = prepared(JUDGED, **settings)
        assert sat(run, rows(run, "passed", "passed")).exam_row.partial, settings


def test_a_log_that_cannot_be_written_is_told(prepared, monkeypatch):
    run = prepared()
    given = sat(run, rows(run, "passed", "passed", "passed"))

    def refuse(directory, exam_row):
        raise StoreError("the disk is full")

    monkeypatch.setattr(appending, "append", refuse)
    assert append_to_log(given).error == "the disk is full"
    monkeypatch.setattr(appending, "append", lambda directory, exam_row: ("a torn line was set aside",))
    noted = append_to_log(given)
    assert (noted.error, noted.notes) == (None, ("a torn line was set aside",))


def test_a_row_is_appended_even_where_the_texts_cannot_be_kept(prepared, tmp_path):
    run = prepared()
    given = sat(run, rows(run, "passed", "passed", "passed"))
    (tmp_path / ".agentv" / "exams").write_text("in the way")
    [note] = append_to_log(given).notes
    assert "; 'agentv prompt diff' cannot show what changed" in note
    assert (tmp_path / "prompts" / "greeter" / ".eval.jsonl").read_text().count("\n") == 1


def test_a_run_without_cases_is_no_attempt_and_so_no_pass(prepared):
    run = prepared()
    empty = structs.replace(
        run, plan=structs.replace(run.plan, settings=structs.replace(run.plan.settings, chosen=lambda case: False))
    )
    assert list(exam_attempts(empty, [], run_id="r", now=NOW)) == []


def test_an_exam_of_which_nothing_is_selected_is_no_attempt_and_a_note_says_so(prepared, tmp_path):
    other = {"prompts/other/prompt.md": "Greet", "prompts/other/eval.yml": EXAM.replace("name: a", "name: z")}
    repository(tmp_path, {**other, "prompts/other/meta.yaml": "description: greets\n"})
    run = prepared(filter="z")
    (one,) = exam_attempts(run, rows(run, "passed"), run_id="r", now=NOW)
    assert (one.exam_row.all_passed, one.exam.directory) == (True, str(tmp_path / "prompts/other"))
    assert "no case of the exam of greeter is selected; it does not run" in run.notes
    assert not any("exam of other" in note for note in run.notes)
