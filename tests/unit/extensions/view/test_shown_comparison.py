from pathlib import Path

import pytest

from agentv.app.compare.comparing import CompareRequest, compare
from agentv.app.results.stored import open_run
from agentv.extensions.view.shown_comparison import shown_comparison
from agentv.model.run.comparison import ComparisonSettings
from agentv.reports.comparison import render_comparison
from doubles.stored_runs import scored_trials, write_run
from doubles.trials import finished

GOOD = {f"case-{number}": 1.0 for number in range(8)}
BAD = {name: 0.1 * number for number, name in enumerate(GOOD)}


@pytest.fixture
def shown(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)

    def shown_(base, candidate):
        paths = [write_run(tmp_path / name, results, {}) for name, results in (("a", base), ("b", candidate))]
        return shown_comparison(*(open_run(path, action="compare") for path in paths))

    return shown_


def test_it_says_what_compare_says(shown):
    found = shown(scored_trials(GOOD), [*scored_trials(BAD), *scored_trials({"new": 1.0})])
    printed = render_comparison(compare(CompareRequest((str(Path("a")), str(Path("b")))), ComparisonSettings(limit=0)))
    assert found.verdict == "worse"
    for line in (f"worse: {found.finding}", *found.basis, *found.notes):
        assert line in printed.splitlines()
    assert "1 case only in the candidate: refunds: new" in found.notes
    difference = found.difference
    assert (difference.measure, round(difference.delta, 2)) == ("mean score", -0.65)
    low, high = difference.interval
    assert low < difference.delta < high < 0


def test_runs_that_cannot_be_compared_have_no_verdict(shown):
    found = shown(scored_trials(GOOD), scored_trials({"x": 1.0}, suite="orders"))
    assert (found.verdict, found.finding) == ("", "a and b have no case in common")
    assert found.difference is None


def test_of_runs_whose_cases_all_errored_there_is_neither_a_verdict_nor_a_difference(shown):
    found = shown(scored_trials(GOOD), [finished("errored", trial=one.trial) for one in scored_trials(GOOD)])
    assert (found.verdict, found.difference) == ("", None)
    assert found.finding


def test_a_run_and_itself_have_no_difference(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    run = open_run(write_run(tmp_path / "a", scored_trials(GOOD), {}), action="compare")
    assert shown_comparison(run, run).difference is None
