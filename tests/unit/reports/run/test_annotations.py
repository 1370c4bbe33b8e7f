from __future__ import annotations

from agentv.model.values.response import Failure
from agentv.reports.run.annotations import SHOWN, omitted, run_diagnostics
from agentv.reports.run.view import RunView
from doubles.trials import errored_score, finished, scored, trial


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


def test_an_assertion_that_could_not_judge_is_told_where_it_stands():
    error = Failure("script-failed", "it broke")
    result = finished("errored", trial=trial("a", line=5), error=error, scores=[errored_score(line=9)])
    assert [one.span.line for one in run_diagnostics(view_of(result))] == [9]


def test_trials_that_passed_are_not_told():
    result = finished(trial=trial("fine", line=2), scores=[scored(False, line=3)])
    assert run_diagnostics(view_of(result)) == []


def test_no_more_are_told_than_github_shows():
    results = [finished("failed", trial=trial(f"c{one}", line=one + 1), score=0.0) for one in range(SHOWN + 7)]
    view = view_of(*results)
    assert len(run_diagnostics(view)) == SHOWN
    assert omitted(view) == 7
    assert omitted(view_of(results[0])) == 0
