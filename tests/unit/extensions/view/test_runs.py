"""Open runs."""

import os
from pathlib import Path

from agentv.app.results.project import Project
from agentv.extensions.view.runs import OpenRuns
from doubles.trials import finished, trial
from doubles.viewed_project import add_run


def test_where_no_index_can_be_written_it_is_told_once_where_it_is(tmp_path):
    written = [add_run(tmp_path, f"2026112{at}T140322Z-7f3a", [finished(trial=trial("a"))]) for at in range(3)]
    for path in written[:2]:
        (path / f".view.sqlite.{os.getpid()}.new").mkdir()  # makes writing fail even for root
    runs = OpenRuns(Project(tmp_path))
    told = []
    runs.notify = told.append
    for path in reversed(written):
        assert runs.run(path.name).progress().indexed == 1
        runs._reader.join(20)
    assert len(told) == 1
    assert str(written[1]) in told[0]
    kept = told[0].split(" kept in ")[1].split()[0]
    assert len(list(Path(kept).iterdir())) == 2
    assert [(path / "view.sqlite").exists() for path in written] == [False, False, True]
    runs.close()
    assert not Path(kept).exists()
