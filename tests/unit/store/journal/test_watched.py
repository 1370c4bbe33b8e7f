"""The small files of a run, which nothing but agentv writes to while it goes."""

from __future__ import annotations

import os
import shutil

import pytest

from agentv.store.journal.watched import WatchedFiles

RECORD = b'{"run_id": "r"}\n'
ADDED = "{} was added by another program: it is removed"
CHANGED = "{} was changed or removed: agentv's version is restored"
COUNTED = "{} was changed, added or removed"


@pytest.fixture
def run(tmp_path):
    run = tmp_path / "results" / "run"
    run.mkdir(parents=True)
    (run / "run.json").write_bytes(RECORD)
    (run / "history.jsonl").write_bytes(b"{}\n")
    return run


def test_indexes_of_rows_that_are_about_to_change_are_removed(run):
    for name in ("index.sqlite", "view.sqlite"):
        (run / name).touch()
    WatchedFiles(run, RECORD)
    assert sorted(path.name for path in run.iterdir()) == ["history.jsonl", "run.json"]


def replaced_by_text(path):
    path.write_bytes(b"mine")


def replaced_by_directory(path):
    path.unlink(missing_ok=True)
    path.mkdir()
    (path / "inner").touch()


def replaced_by_link(path):
    path.unlink(missing_ok=True)
    other = path.parent.parent / "theirs"
    other.write_bytes(RECORD)
    path.symlink_to(other)


def replaced_by_link_to_directory(path):
    path.unlink(missing_ok=True)
    other = path.parent.parent / "their directory"
    other.mkdir(exist_ok=True)
    (other / "inner").touch()
    path.symlink_to(other)


def replaced_by_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


WAYS = [replaced_by_text, replaced_by_pipe, replaced_by_directory, replaced_by_link, replaced_by_link_to_directory]


@pytest.mark.parametrize("write", [*WAYS, lambda path: path.unlink()])
def test_a_file_of_agentv_is_restored_whatever_was_put_into_its_place(run, write):
    watched = WatchedFiles(run, RECORD)
    watched.wrote("summary.json", b"{}\n")
    (run / "summary.json").write_bytes(b"{}\n")
    write(run / "run.json")
    assert watched.restore() == (CHANGED.format("run.json"),)
    assert (run / "run.json").read_bytes() == RECORD
    assert not (run / "run.json").is_symlink()
    write(run / "summary.json")
    assert watched.restore() == (CHANGED.format("summary.json"),)
    assert (run / "summary.json").read_bytes() == b"{}\n"
    assert watched.restore() == ()
    theirs = run.parent / "their directory"
    assert not theirs.exists() or (theirs / "inner").exists()


@pytest.mark.parametrize("name", ["summary.json", "index.sqlite", "view.sqlite"])
@pytest.mark.parametrize("write", WAYS)
def test_a_file_that_is_written_at_the_end_alone_is_removed_before(run, name, write):
    watched = WatchedFiles(run, RECORD)
    write(run / name)
    assert watched.restore() == (ADDED.format(name),)
    assert not (run / name).exists()
    assert not (run / name).is_symlink()
    assert watched.restore() == ()
    assert not (run.parent / "theirs").exists() or (run.parent / "theirs").read_bytes() == RECORD


def test_rows_that_were_moved_are_reported_once_where_something_else_changed_them(run):
    watched = WatchedFiles(run, RECORD)
    (run / "rejected.jsonl").write_bytes(b"x\n")
    (run / "history.jsonl").unlink()
    notes = (COUNTED.format("history.jsonl"), COUNTED.format("rejected.jsonl"))
    assert watched.restore() == notes
    assert watched.restore() == ()
    (run / "rejected.jsonl").write_bytes(b"x\ny\n")
    watched.appended("rejected.jsonl")
    assert watched.restore() == ()


def test_a_directory_that_was_removed_is_made_again_for_its_record(run):
    watched = WatchedFiles(run, RECORD)
    shutil.rmtree(run.parent)
    assert watched.restore() == (CHANGED.format("run.json"), COUNTED.format("history.jsonl"))
    assert (run / "run.json").read_bytes() == RECORD
