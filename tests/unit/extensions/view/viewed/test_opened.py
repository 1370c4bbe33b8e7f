"""Runs that are open."""

import os
from pathlib import Path

import pytest

from agentv.app.results.project import NoSuchRunError, Project
from agentv.extensions.view.viewed import opened
from agentv.extensions.view.viewed.growing import GrowingRun
from agentv.extensions.view.viewed.opened import OpenRuns
from doubles.trials import finished, trial
from doubles.viewed_project import add_run


def test_rows_that_a_moment_is_too_short_for_are_read_in_the_background(tmp_path, monkeypatch):
    path = add_run(tmp_path, "20261121T140322Z-7f3a", [finished(trial=trial(f"case-{at}")) for at in range(50)])
    with (path / "index.jsonl").open("ab") as file:
        file.write(
            (path / "index.jsonl").read_bytes().splitlines()[0].replace(b'"schema_version":1', b'"schema_version":9')
        )
        file.write(b"\n")
    monkeypatch.setattr("agentv.extensions.view.viewed.appended._BATCH_S", 0)
    monkeypatch.setattr(GrowingRun.catch_up, "__defaults__", (0,))
    monkeypatch.setattr(opened, "_PAUSE_S", 0)
    runs = OpenRuns(Project(tmp_path))
    run = runs.run("20261121T140322Z-7f3a")
    assert runs._behind is not None
    runs._behind.join(20)
    assert not runs._behind.is_alive()  # it gives up at the row that it cannot read, and does not try again and again
    assert run.progress().indexed < 1
    with run.index() as index:
        assert index.trials == 50
    runs.close()


def test_few_runs_are_open_at_once_and_a_closed_one_opens_again(tmp_path):
    names = [f"20261121T14032{at}Z-7f3a" for at in range(opened._OPEN + 2)]
    for name in names:
        add_run(tmp_path, name, [finished()])
    runs = OpenRuns(Project(tmp_path))
    first = runs.run(names[0])
    for name in names:
        assert runs.run(name).progress().indexed == 1
    assert len(runs._runs) == opened._OPEN
    assert runs.run(names[0]) is not first
    with pytest.raises(NoSuchRunError):
        runs.run("../results")
    runs.close()


def test_where_no_index_can_be_written_it_is_told_once_where_it_is(tmp_path):
    written = [add_run(tmp_path, f"2026112{at}T140322Z-7f3a", [finished(trial=trial("a"))]) for at in range(3)]
    for path in written[:2]:
        (path / f".view.sqlite.{os.getpid()}.new").mkdir()  # refuses root as well
    runs = OpenRuns(Project(tmp_path))
    told = []
    runs.tell = told.append
    for path in reversed(written):
        assert runs.run(path.name).progress().indexed == 1
        assert runs._behind is not None
        runs._behind.join(20)
    assert len(told) == 1
    assert str(written[1]) in told[0]
    kept = told[0].split(" kept in ")[1].split()[0]
    assert len(list(Path(kept).iterdir())) == 2
    assert [(path / "view.sqlite").exists() for path in written] == [False, False, True]
    runs.close()
    assert not Path(kept).exists()
