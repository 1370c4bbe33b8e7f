import pytest
from msgspec.structs import replace

from agentv.app.compare.comparing import CompareRequest, compare
from agentv.app.labelled_runs import shown_run
from agentv.app.results.stored import open_run
from agentv.extensions.labels.labelling import open_session
from agentv.model.run.comparison import ComparisonSettings
from doubles.judged_runs import ASKED, judged_run

BASE = [number % 5 > 0 for number in range(60)]
CANDIDATE = [number % 10 > 0 for number in range(60)]


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def give(run, says, sample=60):
    session = open_session(run, None, sample, 0, "ada")
    for drawn in session.drawn:
        session.label(drawn, "pass" if says(int(drawn.answer.case[1:]), drawn.answer.passed) else "fail")


def corrected(base, candidate):
    return compare(CompareRequest((base, candidate)), ComparisonSettings()).corrected


def test_the_rates_of_a_comparison_are_those_of_each_run_and_their_difference(tmp_path):
    base = judged_run(tmp_path, BASE, run="base", answer="first {}")
    candidate = judged_run(tmp_path, CANDIDATE, run="candidate", answer="second {}")
    give(base, lambda _, passed: passed)
    give(candidate, lambda number, passed: passed and number % 4 > 0)
    found = corrected(base, candidate)
    for run, rate in ((base, found.base), (candidate, found.candidate)):
        assert rate == shown_run(open_run(run, action="show")).summary.corrected.run
    assert found.difference == found.candidate.rate - found.base.rate < 0
    low, high = found.interval
    assert low < found.difference < high
    turned = corrected(candidate, base)
    assert turned.difference == -found.difference
    assert turned.interval == (pytest.approx(-high, abs=0.01), pytest.approx(-low, abs=0.01))


def test_a_run_that_labels_do_not_correct_says_why_and_leaves_no_difference(tmp_path):
    other = replace(ASKED, rubric_sha256="c" * 64)
    base = judged_run(tmp_path, BASE, run="base", answer="first {}")
    candidate = judged_run(tmp_path, CANDIDATE, run="candidate", answer="second {}", asked=other)
    give(base, lambda _, passed: passed)
    found = corrected(base, candidate)
    assert (found.difference, found.interval) == (None, None)
    assert found.base.labels == 60
    assert isinstance(found.candidate, str)


def test_two_runs_with_the_same_answers_are_compared_draw_by_draw(tmp_path):
    base = judged_run(tmp_path, BASE, run="base", answer="one {}")
    candidate = judged_run(tmp_path, BASE, run="candidate", answer="one {}")
    give(base, lambda number, passed: passed and number % 4 > 0, sample=30)
    found = corrected(base, candidate)
    assert found.base.interval[1] - found.base.interval[0] > 0.1
    assert (found.difference, found.interval) == (0.0, (0.0, 0.0))
