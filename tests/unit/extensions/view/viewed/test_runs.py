"""The list of runs, and how many rows those in progress have."""

import fcntl
from contextlib import contextmanager

import pytest

from agentv.app.results.project import Project
from agentv.errors import StoreError
from agentv.extensions.view.viewed.opened import OpenRuns
from agentv.extensions.view.viewed.runs import RowCounts, RunList
from doubles.read_files import bytes_read
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


def test_only_what_was_appended_is_read_and_another_file_is_read_whole(tmp_path):
    index, counts = tmp_path / "index.jsonl", RowCounts()
    assert counts.count(index) == 0
    index.write_bytes(b"{}\n" * 100_000 + b'{"half')
    assert counts.count(index) == 100_000
    with index.open("ab") as file:
        file.write(b'": 1}\n{}\n')
    found = []
    assert bytes_read(lambda: found.append(counts.count(index))) < 10_000
    assert found == [100_002]
    index.write_bytes(b"{}\n")  # shorter
    assert counts.count(index) == 1
    other = tmp_path / "new"
    other.write_bytes(b"{}\n" * 5)
    other.rename(index)
    assert counts.count(index) == 5
    (tmp_path / "directory").mkdir()
    with pytest.raises(StoreError):
        counts.count(tmp_path / "directory")
