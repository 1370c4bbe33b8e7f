import json

import pytest

from agentv.app.results import totals
from agentv.app.results.selecting import choose
from agentv.app.results.stored import open_run
from agentv.app.results.totals import totals_of
from agentv.errors import UsageError
from agentv.model.run.matrix import Counts
from agentv.model.run.selection import Selection
from agentv.sdk import evaluate

SUITE = {
    "name": "greetings",
    "target": "echo",
    "threshold": 1,
    "tests": [
        {"id": "hello", "input": "hello", "expected_output": "hello!", "assert": [{"contains": "hello"}]},
        {"id": "bye", "tags": ["smoke"], "input": "bye", "assert": [{"contains": "hello"}]},
        {"id": "ciao", "input": "ciao", "assert": [{"contains": "hello"}]},
    ],
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE))
    evaluate("a.eval.yaml")
    return open_run("last", action="show")


def ids(chosen):
    return {one.trial.case.id for one in chosen.run.results()}


def test_chosen_trials_are_read_and_no_others(run):
    chosen = choose(run, Selection(statuses=("failed",)))
    assert ids(chosen) == {"bye", "ciao"}
    assert (chosen.counts, chosen.wanted) == (Counts(2, 0, 2, 0, 0), 2)


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(cases=("by", "x*")), "--case 'by'"),
        (Selection(cases=("bye", "x*")), "--case 'x*'"),  # beside one that is there
        (Selection(("failed",), tags=("a",), suites=("b",)), "--suite 'b'"),
    ],
)
def test_a_name_that_nothing_has_is_refused(run, selection, said):
    with pytest.raises(UsageError, match="no trial of the run") as refused:
        choose(run, selection)
    assert str(refused.value).endswith(f"matches {said}")


@pytest.mark.parametrize(
    ("selection", "hint"),
    [
        (Selection(cases=("helo",)), "did you mean 'hello'?"),
        (Selection(suites=("greeting",)), "did you mean 'greetings'?"),
        (Selection(targets=("ecco",), cases=("hello",)), "did you mean 'echo'?"),
        (Selection(tags=("smok",)), "did you mean 'smoke'?"),
        (Selection(cases=("zzz",)), None),
    ],
)
def test_the_nearest_name_is_said(run, selection, hint):
    with pytest.raises(UsageError) as refused:
        choose(run, selection)
    assert refused.value.hint == hint


def test_totals_of_a_large_run_that_was_killed_are_computed_once(run, monkeypatch):
    (run.path / "summary.json").unlink()
    small, timed = totals_of(run.path, run.record)
    monkeypatch.setattr(totals, "_LARGE", 1)
    large, _ = totals_of(run.path, run.record)
    assert (large, timed) == (small, False)
    assert (large.cases, large.duration_ms) == (Counts(3, 1, 2, 0, 0), 0.0)
    monkeypatch.setattr(totals, "summarize", None)
    assert totals_of(run.path, run.record)[0] == small
