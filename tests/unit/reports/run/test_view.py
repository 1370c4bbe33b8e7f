import csv
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from agentv.extensions.view.pages.entries import teaser
from agentv.extensions.view.pages.whole import trial_data
from agentv.model.run.grade import Check, Grade
from agentv.model.run.trial import SamplingStop, Score
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.values.response import TargetResponse
from agentv.model.values.values import Span
from agentv.reports.annotations import run_diagnostics
from agentv.reports.csv_rows import render_csv
from agentv.reports.junit import JUnitRun, render_junit
from agentv.reports.notebook import render_table
from agentv.reports.run.trial_view import check, reason
from agentv.reports.run.view import RunView
from agentv.reports.stored_run import ShowOptions, render_trial
from doubles.trials import FILE, LabelOnly, entry, errored_score, finished, graded, scored, trial
from doubles.views import view_of


def findings(*scores, status="failed"):
    (shown,) = view_of(finished(status, scores=scores)).trials(status if status != "passed" else "noted")
    return [
        (one.state, f"{one.scored}: {one.text}" if one.scored else one.text, one.evidence) for one in shown.findings
    ]


@pytest.mark.parametrize(
    "score", [graded(0.9, True, Check("a", True), Check("b", False)), scored(False), errored_score(weight=0)]
)
def test_a_passed_trial_with_a_failed_check_is_noted(score):
    view = view_of(finished(scores=[scored(), score]))
    assert (view.passed, view.noted) == (1, 1)
    assert [one.test_id for one in view.trials("noted")] == ["case-1"]


def test_every_failed_check_is_a_finding_with_its_evidence():
    score = graded(0.4, False, Check("a", False, "saw x"), Check("b", True, "saw y"), Check("c", False))
    assert findings(score, scored()) == [("failed", "a", "saw x"), ("failed", "c", None)]


def test_a_missed_gate_is_a_finding_although_the_grade_passed():
    assert findings(graded(0.6, True, required=0.7)) == [("failed", "scored 0.60, required 0.70: ", None)]
    assert findings(graded(0.6999, True, required=0.7)) == [("failed", "scored 0.6999, required 0.7000: ", None)]
    assert findings(graded(0.7, True, required=0.7), scored(False, text="x")) == [("failed", "x", None)]


def samples(aggregate, *scores, gates=()):
    return [
        finished(
            "passed" if score >= 0.8 else "failed",
            trial=trial("a", repeat=len(scores), sample=number, aggregate=aggregate),
            score=score,
            scores=[scored(score >= 0.8, required=required) for required in gates],
        )
        for number, score in enumerate(scores, 1)
    ]


def test_a_failed_sample_says_that_its_case_passed():
    (failed,) = view_of(*samples("pass_any", 0.0, 1.0)).trials("failed")
    assert reason(failed) == "score 0.00, needs 0.80; the case passed (1 of 2 samples, pass_any)"
    (failed,) = view_of(*samples("mean", 0.75, 1.0, 1.0)).trials("failed")
    assert reason(failed).endswith("; the case passed (2 of 3 samples, mean)")


def test_a_check_of_a_set_stands_at_the_assertion_that_it_is_of():
    inner = entry("contains", "'x'", line=21)
    nested = AssertionEntry("assert-set", Holding((inner,)), AssertionSettings(name="nested"), Span(FILE, 20, 1, 20, 2))
    others = (entry("contains", "'y'", line=19), nested)
    outer = AssertionEntry("assert-set", Holding(others), AssertionSettings(name="outer"), Span(FILE, 18, 1, 18, 2))
    said = ["contains: 'y': no y", "not: nested: contains: 'x': no x", "nested: of its own", "nothing known"]
    grade = Grade(0.0, False, tuple(Check(text, False) for text in said))
    (shown,) = view_of(finished("failed", scores=[Score(outer, grade, 0.1)])).trials("failed")
    assert [one.source for one in shown.findings] == [(FILE, 19), (FILE, 21), (FILE, 20), (FILE, 18)]


@dataclass(frozen=True)
class Holding(LabelOnly):
    """An assertion set that only has a label."""

    assert_: tuple[AssertionEntry, ...] = ()

    def __init__(self, inner):
        object.__setattr__(self, "assert_", inner)
        object.__setattr__(self, "looks_for", "")


def test_samples_that_are_not_needed_are_not_waited_for():
    early = {"repeat": 20, "alpha": 0.05}
    view = RunView(40)
    for number in (1, 2, 3):
        last = SamplingStop("below", 3, 0, 0.0, 0.68) if number == 3 else None
        view.add(finished("failed", trial=trial(sample=number, **early), stopped=last))
    assert (view.planned, view.done) == (23, 3)


def test_a_failed_sample_of_a_case_that_passed_says_after_how_many():
    early = {"repeat": 12, "alpha": 0.05}
    results = [finished(trial=trial(sample=number, **early)) for number in range(1, 12)]
    (shown,) = view_of(finished("failed", trial=trial(sample=12, **early)), *results).trials("failed")
    assert reason(shown).endswith("; the case passed (11 of 12 samples)")


def test_a_grade_that_passed_is_no_failure_whatever_its_checks_say():
    passed = replace_grade(graded(0.5, True, Check("b", False)), needs=0.5, has_own_threshold=True)
    failed = replace_grade(graded(0.5, False, Check("a", False)), needs=0.6, has_own_threshold=True)
    assert findings(passed, failed) == [
        ("failed", "scored 0.50, needs 0.60: a", None),
        ("noted", "passed at 0.50, needs 0.50; but: b", None),
    ]
    view = view_of(finished("failed", score=0.5, scores=[passed, failed]))
    (group,) = view.failure_groups()
    assert group.cause == "contains: '30 days': scored 0.50, needs 0.60: a"
    (diagnostic,) = run_diagnostics(view)
    assert diagnostic.notes == ("failed: contains: '30 days': scored 0.50, needs 0.60: a",)
    junit = "".join(render_junit([finished("failed", score=0.5, scores=[passed, failed])], JUnitRun("r", "/repo")))
    assert '<failure type="contains"' in junit
    assert "noted: contains: '30 days': passed at 0.50, needs 0.50; but b" in junit


def replace_grade(score, **changes):
    return replace(score, grade=replace(score.grade, **changes))


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("llm-rubric: Is polite", "Is polite", "llm-rubric: Is polite"),
        ("turn 2: llm-rubric: Is polite", "Is polite", "turn 2: llm-rubric: Is polite"),
        ("llm-rubric: Is pol\u2026", "Is polite and brief", "llm-rubric: Is polite and brief"),
        ("tone", "Is polite", "tone: Is polite"),
    ],
)
def test_nothing_is_named_twice(name, text, shown):
    (finding,) = view_of(finished("failed", scores=[scored(False, text=text, name=name)])).trials("failed")[0].findings
    assert check(finding) == shown


def test_a_cut_answer_is_noted_in_every_view():
    note = "the answer was cut at its token limit (finish_reason: length)"
    cut = finished("passed", score=1.0, finish_reason="length")
    view = view_of(cut)
    (shown,) = view.trials("noted")
    assert reason(shown) == f"score 1.00 reaches 0.80, but {note}"
    assert view.noted == 0, "no check of it failed"
    (diagnostic,) = run_diagnostics(view)
    assert (diagnostic.severity, note in diagnostic.message) == ("warning", True)
    assert note in "".join(render_junit([cut], JUnitRun("r", "/repo")))
    line = next(csv.DictReader(render_csv([cut], root="/repo")))
    assert (line["finish_reason"], line["note"]) == ("length", note)
    assert teaser(cut) == note
    assert trial_data(cut, "/repo")["notes"] == [note]
    assert note in render_trial(cut, ShowOptions(here="/repo"))
    assert note in render_table([cut], [])
    failed = finished("failed", score=0.0, finish_reason="max_tokens")
    assert reason(view_of(failed).trials("failed")[0]).endswith("(finish_reason: max_tokens)")
    turns = (TargetResponse("a", finish_reason="length"), TargetResponse("b", finish_reason="stop"))
    (shown,) = view_of(finished("passed", finish_reason="stop", turns=turns)).trials("noted")
    assert shown.cut == "the answer to turn 1 was cut at its token limit (finish_reason: length)"
