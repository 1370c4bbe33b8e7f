import json
import os

import pytest

from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from agentv.sdk import evaluate
from agentv.store.files.directory import RunDirectory

SUITE = {
    "name": "greetings",
    "target": "echo",
    "threshold": 1,
    "tests": [
        {"id": "hello", "input": "hello", "assert": [{"contains": "hello"}]},
        {"id": "bye", "input": "bye", "assert": [{"contains": "hello"}]},
    ],
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / ".agentv").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eval.yaml").write_text(json.dumps(SUITE))
    return evaluate("a.eval.yaml")


@pytest.mark.parametrize("named", ["last", "id", "directory"])
def test_a_run_is_opened_by_any_of_its_names(run, named):
    name = {"last": "last", "id": run.directory.name, "directory": str(run.directory)}[named]

    opened = open_run(name, action="show")

    assert opened.run_id == run.directory.name
    assert opened.summary is not None
    assert {one.trial.case.id: one.status for one in opened.results()} == {"hello": "passed", "bye": "failed"}


def test_of_a_trial_with_two_rows_the_newest_is_read(run):
    rows = [json.loads(line) for line in (run.directory / "index.jsonl").read_text().splitlines()]
    again = next(row for row in rows if row["test_id"] == "bye") | {"status": "passed"}
    with (run.directory / "index.jsonl").open("a") as file:
        file.write(json.dumps(again) + "\n")

    assert {one.trial.case.id: one.status for one in open_run("last", action="show").results()} == {
        "hello": "passed",
        "bye": "passed",
    }


def test_a_run_that_is_still_being_written_is_taken_only_where_that_is_asked_for(run):
    with RunDirectory.open(run.directory):
        where = os.path.relpath(run.directory)
        with pytest.raises(UsageError, match=f"^the run {run.directory.name} is still being written, in {where}$"):
            open_run("last", action="show")
        assert open_run("last", action="show", partial=True).run_id == run.directory.name
    assert open_run("last", action="show").run_id == run.directory.name
