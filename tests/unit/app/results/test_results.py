from __future__ import annotations

import json
import shutil

import pytest

from agentv.app.results.listing import compared_run
from agentv.app.results.selecting import side_by_side
from agentv.app.results.stored import open_run
from agentv.app.results.totals import compared_totals_of
from agentv.errors import UsageError
from agentv.model.run.selection import Selection
from agentv.sdk import evaluate
from doubles.stored_runs import write_run, write_summary
from doubles.trials import finished, trial

AGENTS = """def right(prompt): return "yes"
def wrong(prompt):
    if "c" in prompt: raise RuntimeError("broken")
    return "yes" if "a" in prompt else "no"
"""
SUITE = {
    "name": "s",
    "targets": ["python:agents.py:right", "python:agents.py:wrong"],
    "tests": [{"id": name, "input": name[0], "assert": [{"equals": "yes"}]} for name in ("a", "b[x]", "c", "d")],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("project")
    (path / ".agentv").mkdir()
    (path / "agents.py").write_text(AGENTS)
    (path / "a.eval.yaml").write_text(json.dumps(SUITE))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        evaluate("a.eval.yaml")
        yield open_run("last", action="show")


def ids(found):
    return [case.case_id for case in found.cases]


def test_columns_disagree_by_their_verdicts_not_by_their_samples(tmp_path):
    def samples(case, target, *statuses, aggregate="pass_any"):
        given = {"target": target, "repeat": len(statuses), "aggregate": aggregate}
        return [finished(one, trial=trial(case, sample=at, **given)) for at, one in enumerate(statuses, 1)]

    rows = [
        *samples("same", "a", "passed", "failed"),
        *samples("same", "b", "passed", "passed"),
        *samples("other", "a", "failed", "failed"),
        *samples("other", "b", "passed", "failed"),
        *samples("not run", "a", "passed"),
        *samples("not run", "b", "skipped"),
    ]
    write_run(tmp_path / "run", rows, {})
    found = side_by_side(open_run(str(tmp_path / "run"), action="show"), Selection(), different=True)
    assert (ids(found), found.matching) == (["other"], 1)


def test_names_select_answers_and_a_limit_cases(run):
    found = side_by_side(run, Selection(targets=("*:wrong",), cases=("b[x]",)))
    assert (ids(found), found.targets) == (["b[x]"], ("python:agents.py:wrong",))
    assert (len(side_by_side(run, Selection(), 1).cases), side_by_side(run, Selection(), 1).matching) == (1, 4)
    assert ids(side_by_side(run, Selection(), 0)) == []
    with pytest.raises(UsageError, match=r"no trial of the run .* matches --target 'x'"):
        side_by_side(run, Selection(targets=("x",)))


def test_a_killed_run_and_one_of_an_earlier_version_are_compared_when_they_are_shown(run, tmp_path):
    totals = compared_totals_of(run.path, run.record)
    assert [one.verdict for one in totals.matrix.comparisons] == ["inconclusive"]
    killed = tmp_path / "killed"
    shutil.copytree(run.path, killed)
    (killed / "summary.json").unlink()
    assert compared_totals_of(killed, run.record).matrix == totals.matrix
    assert compared_run(killed).summary.matrix == totals.matrix
    earlier = tmp_path / "earlier"
    shutil.copytree(run.path, earlier)
    written = json.loads((earlier / "summary.json").read_text())
    assert written.pop("matrix")["targets"] == ["python:agents.py:right", "python:agents.py:wrong"]
    write_summary(earlier, written)
    assert compared_totals_of(earlier, run.record).matrix == totals.matrix
