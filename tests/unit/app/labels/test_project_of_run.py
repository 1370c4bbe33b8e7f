"""Which labels are of a stored run, and what is said of one that is not finished."""

from __future__ import annotations

import fcntl
import json

import pytest

from agentv.app.results.stored import StoredRun, open_run
from agentv.errors import UsageError

RUN_ID = "20261121T140322Z-7f3a"


def test_a_runs_labels_are_those_of_its_project(tmp_path, monkeypatch):
    working = tmp_path / "working"
    (working / ".agentv" / "results").mkdir(parents=True)
    monkeypatch.chdir(working)
    for path, project in (
        (tmp_path / "support" / ".agentv" / "results" / RUN_ID, tmp_path / "support"),
        (tmp_path / "downloaded" / RUN_ID, working),
    ):
        assert StoredRun(path, str(tmp_path), RUN_ID, {}, None).project == project


def test_only_commands_with_the_option_partial_advise_it(tmp_path):
    run = tmp_path / RUN_ID
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"schema_version": 1, "run_id": RUN_ID}))
    (run / "index.jsonl").touch()
    with (run / "journal.jsonl").open("wb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        for action, advised in (("label", False), ("check", False), ("show", True), ("export", True)):
            with pytest.raises(UsageError) as raised:
                open_run(str(run), action=action)
            assert ("--partial" in str(raised.value) + str(raised.value.__dict__)) == advised, action
