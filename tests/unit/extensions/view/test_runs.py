"""The list of runs, and how many rows those in progress have."""

import fcntl
from contextlib import contextmanager

import pytest

from agentv.app.results.project import Project
from agentv.extensions.view.runs import OpenRuns, RunList
from doubles.trials import finished, trial
from doubles.viewed_project import add_run

RUN_ID = "20261121T140322Z-7f3a"


@contextmanager
def going_on(path):
    with (path / "journal.jsonl").open("rb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        yield


@pytest.fixture
def opened(tmp_path):
    path = add_run(tmp_path, RUN_ID, [finished(trial=trial(f"case-{at}")) for at in range(3)])
    found = OpenRuns(Project(tmp_path))
    with going_on(path):
        yield found
    found.close()


def test_a_small_run_in_progress_has_a_pass_rate_at_once(opened):
    (found,) = RunList(opened).all()
    assert (found.state, found.done, found.pass_rate) == ("running", 3, 1.0)
