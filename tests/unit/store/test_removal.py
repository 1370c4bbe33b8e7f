from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentv.errors import StoreError
from agentv.store.files.directory import RunDirectory
from agentv.store.removal import remove_run, size_of_run

NOW = datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)


@pytest.fixture
def deletion_run(tmp_path):
    with RunDirectory.create(tmp_path, NOW) as directory:
        path = directory.path
    for name in ("index.jsonl", "summary.json", "history.jsonl", "rejected.jsonl", ".run.json.new"):
        (path / name).write_text("")
    (path / ".view.sqlite.123.new").write_text("")
    for name in ("artifacts", "workspaces"):
        (path / name / "a-1").mkdir(parents=True)
        (path / name / "a-1" / "trace.json").write_text("{}")
    return path


def test_a_run_is_removed_with_its_directory_and_no_other(deletion_run):
    size = sum(path.stat().st_size for path in deletion_run.rglob("*") if path.is_file())
    assert size_of_run(deletion_run) == size > 0
    assert remove_run(deletion_run) == ()
    assert [path.name for path in deletion_run.parent.iterdir()] == [".gitignore"]


def test_a_run_in_a_directory_of_its_own_takes_the_ignore_file_along(tmp_path):
    with RunDirectory.create(tmp_path, NOW, out=tmp_path / "out"):
        pass
    assert remove_run(tmp_path / "out") == ()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["report.html", "notes", ".gitignore"])
def test_what_is_no_part_of_it_stays(deletion_run, name):
    (deletion_run / name).mkdir() if name == "notes" else (deletion_run / name).write_text("*\n!mine\n")
    assert remove_run(deletion_run) == (name,)
    assert [path.name for path in deletion_run.iterdir()] == [name]


def test_a_link_to_a_run_is_refused(deletion_run, tmp_path):
    (tmp_path / "link").symlink_to(deletion_run)
    with pytest.raises(StoreError, match="it is a symlink"):
        remove_run(tmp_path / "link")
    assert (deletion_run / "run.json").exists()


@pytest.mark.parametrize("name", ["index.jsonl", "journal.jsonl", "summary.json", "artifacts"])
def test_a_link_inside_is_removed_and_not_followed(deletion_run, tmp_path, name):
    (tmp_path / "elsewhere").write_text("mine")
    (deletion_run / name).rename(tmp_path / name)
    (deletion_run / name).symlink_to(tmp_path / "elsewhere")
    assert remove_run(deletion_run) == ()
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_run_that_is_being_written_is_refused_whole(deletion_run):
    with RunDirectory.open(deletion_run):
        before = {path.name for path in deletion_run.iterdir()}
        with pytest.raises(StoreError, match="still being written"):
            remove_run(deletion_run)
    assert {path.name for path in deletion_run.iterdir()} == before


@pytest.mark.parametrize("record", [None, "{", "[]", "{}", '{"run_id": "x"}', '{"run_id": 7, "schema_version": 1}'])
def test_what_is_no_run_is_refused(deletion_run, record):
    (deletion_run / "run.json").unlink()
    if record is not None:
        (deletion_run / "run.json").write_text(record)
    with pytest.raises(StoreError, match=r"run\.json"):
        remove_run(deletion_run)
    assert (deletion_run / "index.jsonl").exists()


def test_a_run_whose_removal_was_cut_off_can_be_removed_again(deletion_run, monkeypatch):
    removed = []

    def unlink(path):
        if path.name == "summary.json":
            raise OSError(5, "Input/output error")
        removed.append(path.name)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(StoreError, match="cannot delete"):
            remove_run(deletion_run)
    assert "run.json" not in removed
    assert remove_run(deletion_run) == ()
