from __future__ import annotations

from agentv.model.values.response import Failure
from agentv.reports.run.annotations import CAUSES, cause_diagnostics, ran_groups, run_diagnostics
from agentv.reports.run.view import RunView
from doubles.trials import finished, scored, trial


def view_of(*results):
    view = RunView(len(results))
    for one in results:
        view.add(one)
    return view


def test_a_failed_check_stands_at_its_assertion():
    score = scored(False, text="contains 'x'", evidence="no\nletter", line=14)
    (found,) = run_diagnostics(view_of(finished("failed", trial=trial("a", line=12), score=0.4, scores=[score])))
    assert (found.code, found.severity) == ("case-failed", "error")
    assert found.span[1:] == (14, 1, 14, 1)
    assert found.message == "a: score 0.40, needs 0.80"
    assert found.notes[-1] == r"no\nletter"


def test_an_errored_trial_has_the_code_of_its_error_and_the_place_of_its_case():
    error = Failure("timeout", "no answer within 3 s")
    (found,) = run_diagnostics(view_of(finished("errored", trial=trial("slow", line=40), error=error)))
    assert (found.code, found.span.line, found.message) == ("timeout", 40, "slow: timeout: no answer within 3 s")


def test_a_cause_is_told_once_at_the_assertion_of_its_first_trial():
    results = [
        finished(
            "failed",
            trial=trial(f"c{one}", line=one + 1),
            score=0.25,
            scores=[scored(False, text="contains 'x'", evidence="no", line=14)],
        )
        for one in range(30)
    ]
    (found,) = cause_diagnostics(view_of(*results))
    assert (found.code, found.span.line, found.message) == (
        "case-failed",
        14,
        "30 cases: failed: contains: '30 days': contains 'x'",
    )
    assert found.notes[:2] == ("first: c0: score 0.25, needs 0.80", "also: c1, c2, c3, c4, c5 and 24 more cases")


def test_ten_causes_are_told_and_cut_answers_once():
    causes = [
        finished("errored", trial=trial(f"c{one}", line=one + 1), error=Failure(f"code-{one}", "it broke"))
        for one in range(CAUSES + 2)
    ]
    cut = [finished("passed", trial=trial(f"d{one}"), score=1.0, finish_reason="length") for one in range(3)]
    view = view_of(*causes, *cut)
    found = cause_diagnostics(view)
    assert [one.severity for one in found] == ["error"] * CAUSES + ["warning"]
    assert found[-1].notes == ("2 more answers cut at the token limit",)
    assert len(ran_groups(view)) == CAUSES + 2
