import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from agentv.app.results.deleting import delete, named_runs, pin, runs_by_age
from agentv.cli.results.delete import command
from agentv.errors import ExitStatus, StoreError, UsageError
from agentv.store.files.directory import RunDirectory
from agentv.store.journal.answers import HEADER

NOW = datetime(2026, 11, 30, tzinfo=UTC)
DAYS = (1, 10, 20, 29)


@pytest.fixture
def results(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for day in DAYS:
        with RunDirectory.create(tmp_path, datetime(2026, 11, day, 12, tzinfo=UTC)):
            pass
    return tmp_path / ".agentv" / "results"


def days(meant):
    return [int(path.name[6:8]) for path in meant.paths]


@pytest.mark.parametrize(
    ("older", "keep", "found"),
    [
        (None, 1, [1, 10, 20]),
        (None, 0, [1, 10, 20, 29]),
        (None, 9, []),
        (timedelta(days=5), 0, [1, 10, 20]),
        (timedelta(days=5), 3, [1]),
        (timedelta(days=99), 0, []),
        (timedelta(hours=12), 0, [1, 10, 20]),
        (timedelta(hours=11), 0, [1, 10, 20, 29]),
    ],
)
def test_old_runs_go_and_the_newest_stay(results, older, keep, found):
    assert days(runs_by_age(older, keep, NOW)) == found


def test_of_a_run_whose_id_says_no_time_its_file_does(results):
    oldest = min(results.glob("2026*"))
    oldest.rename(results / "mine")
    assert (results / "mine") not in runs_by_age(timedelta(days=5), 0, datetime.now(UTC)).paths
    assert (results / "mine") in runs_by_age(timedelta(days=5), 0, datetime.now(UTC) + timedelta(days=6)).paths


def test_a_run_that_is_being_written_or_a_link_is_passed_over(results):
    first, second, third, _ = sorted(results.glob("2026*"))
    elsewhere = results.parent / "elsewhere"
    shutil.move(second, elsewhere)
    second.symlink_to(elsewhere)
    (third / "run.json").write_text("{")
    with RunDirectory.open(first):
        meant = runs_by_age(None, 1, NOW)
    assert meant.paths == ()
    for word, why in zip(("being written", "a symlink", "run.json"), meant.passed_over, strict=True):
        assert word in why
    assert (elsewhere / "run.json").exists()


def test_what_may_not_go_is_refused_before_anything_goes(results, tmp_path):
    *_, last = sorted(results.glob("2026*"))
    (tmp_path / "link").symlink_to(last)
    with pytest.raises(StoreError, match="it is a symlink"):
        named_runs([last.name, "link"])
    with pytest.raises(UsageError, match="cannot delete: no run 'other'"):
        named_runs([last.name, "other"])
    with RunDirectory.open(last), pytest.raises(UsageError, match=f"still being written, in .*{last.name}$"):
        named_runs([last.name])
    assert len(list(results.glob("2026*"))) == len(DAYS)


def test_one_that_cannot_be_deleted_does_not_keep_the_others(results):
    first, second, *_ = sorted(results.glob("2026*"))
    (second / "notes.txt").write_text("mine")
    meant = runs_by_age(None, 0, NOW)
    (first / "run.json").write_text(json.dumps({"run_id": 1}))
    deleted = delete(meant)
    assert (deleted.runs, len(deleted.errors)) == (3, 1)
    assert deleted.left == (f"{second} was not deleted, because it also contains notes.txt",)
    assert {path.name for path in results.glob("2026*")} == {first.name, second.name}


@pytest.mark.parametrize("damage", [None, "{", "[]", '{"run_id": 1}'])
def test_a_run_whose_record_is_gone_or_damaged_can_be_deleted(results, damage):
    first, *_, last = sorted(results.glob("2026*"))
    for path in (first, last):
        (path / "run.json").unlink()
        (path / "journal.jsonl").write_bytes(HEADER)
        if damage is not None:
            (path / "run.json").write_text(damage)
    assert delete(named_runs([first.name])).runs == 1
    meant = runs_by_age(None, 0, NOW)
    assert (len(meant.paths), meant.refused, len(meant.listed())) == (3, False, 3)
    assert delete(meant).runs == 3
    assert list(results.glob("2026*")) == []


def test_what_agentv_may_not_have_written_stays_and_is_no_success(results):
    (max(results.glob("2026*")) / "run.json").write_text("{}")
    meant = runs_by_age(None, 0, NOW)
    assert (len(meant.paths), meant.refused) == (3, True)
    ended = CliRunner().invoke(command, ["--keep", "0", "--yes"], standalone_mode=False)
    assert ended.return_value == ExitStatus.ERRORED


def test_a_pinned_run_stays(results):
    pin(min(path.name for path in results.iterdir() if path.is_dir()))
    found = runs_by_age(None, 1, NOW)
    assert days(found) == [10, 20]
    assert found.passed_over[0].endswith("was not deleted: it is pinned as a baseline")
    assert not found.refused
