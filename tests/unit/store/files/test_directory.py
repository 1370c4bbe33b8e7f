import json
from datetime import UTC, datetime

import pytest

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.store.files import directory as directories
from agentv.store.files.directory import RunDirectory, holds_run, read_document
from agentv.store.files.whole_file import check_place, write_whole

NOW = datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)


def create(root, **given):
    return RunDirectory.create(root, NOW, **given)


@pytest.mark.parametrize("name", ["run.json", "index.jsonl", "journal.jsonl"])
def test_a_directory_that_holds_a_run_is_refused(tmp_path, name):
    (tmp_path / name).write_text("{}\n")
    assert holds_run(tmp_path)
    with pytest.raises(StoreError, match=r"already contains a run: resume it with --resume, or use another --out"):
        create(tmp_path, out=tmp_path)
    assert (tmp_path / name).read_text() == "{}\n"


def test_a_second_writer_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(directories, "LOCK_S", 0.2)
    with create(tmp_path) as directory:
        with pytest.raises(StoreError, match="is in use: another process is writing a run there"):
            RunDirectory.open(directory.path)
        with pytest.raises(StoreError, match="is in use"):
            create(tmp_path, out=directory.path)
    with RunDirectory.open(directory.path) as again:
        assert again.run_id == directory.run_id


def test_a_refused_directory_is_not_left_locked(tmp_path):
    (tmp_path / "run.json").write_text("[]")
    for _ in range(2):
        with pytest.raises(StoreError, match="it contains no JSON object"):
            RunDirectory.open(tmp_path)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "is not a run: it has no run.json"),
        ("{", "cannot read"),
        ("{}", "it has no run_id"),
        ('{"schema_version": 2, "run_id": "x"}', "was written by a newer agentv"),
    ],
)
def test_what_is_no_run_is_not_opened(tmp_path, record, words):
    if record is not None:
        (tmp_path / "run.json").write_text(record)
    with pytest.raises(StoreError, match=words):
        RunDirectory.open(tmp_path)


def test_rewriting_keeps_unknown_keys_and_replaces_known_ones(tmp_path):
    with create(tmp_path) as directory:
        path = directory.path / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "note": "mine", "files": {"old": 1}}))
        directory.write("run.json", {"files": {"new": 2}})
        shown = read_document(path)
        assert shown == {"schema_version": 1, "run_id": directory.run_id, "note": "mine", "files": {"new": 2}}
        assert sorted(file.name for file in directory.path.iterdir()) == ["journal.jsonl", "run.json"]


def test_secrets_are_not_written(tmp_path):
    with create(tmp_path, redactor=Redactor(["hunter22"])) as directory:
        directory.write("run.json", {"targets": [{"url": "https://x?key=hunter22"}]})
        assert read_document(directory.path / "run.json")["targets"] == [{"url": "https://x?key=[redacted]"}]


def test_a_file_in_the_way_says_so(tmp_path):
    (tmp_path / "a").write_text("x")
    with pytest.raises(StoreError, match="a file exists in its place"):
        create(tmp_path, out=tmp_path / "a")
    with pytest.raises(StoreError, match="a part of its path is a file"):
        create(tmp_path, out=tmp_path / "a" / "b")


def test_a_removed_directory_says_so(tmp_path):
    with create(tmp_path) as directory:
        for file in directory.path.iterdir():
            file.unlink()
        directory.path.rmdir()
        with pytest.raises(StoreError, match=r"cannot write .*run.json: it does not exist"):
            directory.write("run.json", {})


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"{}", b"\xff", b'{"schema_version": 1, "run_id": "x"'])
def test_a_damaged_record_is_set_aside_where_there_are_answers(tmp_path, damaged):
    with create(tmp_path) as directory:
        path = directory.path
        (path / "journal.jsonl").write_text('{"format":"agentv-journal","version":1}\n')
    (path / "run.json").write_bytes(damaged)
    with RunDirectory.open(path) as directory:
        assert directory.run_id == path.name
        assert "moved it to run.json.damaged" in directory.repaired[0]
    assert (path / "run.json.damaged").read_bytes() == damaged
    with RunDirectory.open(path) as directory:
        assert (directory.run_id, directory.repaired) == (path.name, ())


def test_the_pieces_are_the_file(tmp_path):
    write_whole(tmp_path / "a.csv", ["a,b\r\n", "1,\u00fc\r\n"])
    assert (tmp_path / "a.csv").read_bytes() == "a,b\r\n1,ü\r\n".encode()
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_an_older_file_stays_where_a_piece_cannot_be_had(tmp_path):
    (tmp_path / "a.md").write_text("older")

    def pieces():
        yield "newer"
        raise StoreError("a row is broken")

    with pytest.raises(StoreError, match="a row is broken"):
        write_whole(tmp_path / "a.md", pieces())
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"a.md": "older"}


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.md").symlink_to(tmp_path / "elsewhere" / "b.md")
    write_whole(tmp_path / "a.md", ["text"])
    assert (tmp_path / "a.md").is_symlink()
    assert (tmp_path / "elsewhere" / "b.md").read_text() == "text"


def test_what_the_system_refuses_is_told(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*/none/a\.md: it does not exist"):
        write_whole(tmp_path / "none" / "a.md", ["text"])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("directory.md", "it is a directory"),
        ("/dev/null", "it is not a regular file"),
        ("file/a.md", "a part of its path is a file"),
        ("none/a.md", "it does not exist"),
        ("n" * 300 + ".md", "too long"),
        ("/proc/a.md", "it does not exist"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused(tmp_path, name, told):
    (tmp_path / "directory.md").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=told):
        check_place(tmp_path / name)
