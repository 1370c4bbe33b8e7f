from __future__ import annotations

import errno
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentv.errors import StoreError
from agentv.store.lines import LineFile, cut_torn_end, read_lines, store_error


@contextmanager
def files_no_larger_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_appended_to_what_is_there(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    file = LineFile(path)
    file.append(b"two\nthree\n")
    file.sync()
    file.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert file.size == 14


def test_a_line_that_does_not_fit_leaves_no_half_of_it(tmp_path):
    file = LineFile(tmp_path / "a")
    file.append(b"fits\n")
    with files_no_larger_than(8), pytest.raises(StoreError, match=r"cannot write .*/a: "):
        file.append(b"does not fit\n")
    file.append(b"later\n")
    file.close()
    assert (tmp_path / "a").read_bytes() == b"fits\nlater\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_a_full_disk_is_called_so():
    file = LineFile(Path("/dev/full"))
    with pytest.raises(StoreError, match="cannot write /dev/full: no space is left on the disk"):
        file.append(b"x\n")
    file.close()


def test_a_removed_file_is_noticed(tmp_path):
    file = LineFile(tmp_path / "a")
    (tmp_path / "a").unlink()
    with pytest.raises(StoreError, match="it was removed during the run"):
        file.sync()
    file.close()


def test_a_file_that_cannot_be_opened_says_why(tmp_path):
    with pytest.raises(StoreError, match=r"cannot open .*: it is a directory"):
        LineFile(tmp_path)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_refusals_are_told_in_words(number, words):
    import os

    error = store_error("write", Path("/x/index.jsonl"), OSError(number, os.strerror(number)))
    assert str(error) == f"cannot write /x/index.jsonl: {words}"


def no_bang(line):
    return b"!" not in line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"one\n", b"one\n"),
        (b"one\ntw", b"one\n"),
        (b"tw", b""),
        (b"one\ntwo!\n", b"one\n"),
        (b"one!\n", b""),
        (b"one!\ntwo\n", b"one!\ntwo\n"),
        (b"one\ntwo!\nthr", b"one\n"),
        (b"\n", b"\n"),
    ],
)
def test_a_torn_end_is_cut(tmp_path, before, after):
    path = tmp_path / "a"
    path.write_bytes(before)
    assert cut_torn_end(path, no_bang) == len(before) - len(after)
    assert path.read_bytes() == after


def test_a_missing_file_has_no_torn_end(tmp_path):
    assert cut_torn_end(tmp_path / "a", no_bang) == 0
    assert not (tmp_path / "a").exists()


def test_lines_are_read_with_their_numbers(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one\n\n  \nfour\nfive")
    assert list(read_lines(path)) == [(1, b"one\n"), (4, b"four\n"), (5, b"five")]
    assert list(read_lines(tmp_path / "none")) == []
    with pytest.raises(StoreError, match="cannot read"):
        list(read_lines(tmp_path))
