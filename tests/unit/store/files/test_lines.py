import errno
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentv.errors import StoreError
from agentv.store.files.lines import LineFile, cut_torn_end, read_lines
from agentv.user_code.files import store_error


@contextmanager
def files_no_larger_than(size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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
    with pytest.raises(StoreError, match="cannot write /dev/full: no space left on the disk"):
        file.append(b"x\n")
    file.close()


def test_a_removed_file_is_noticed(tmp_path):
    (tmp_path / "b").mkdir()
    file = LineFile(tmp_path / "b" / "a")
    (tmp_path / "b" / "a").unlink()
    with pytest.raises(StoreError, match="it was removed during the run"):
        file.sync()
    file.close()


def test_a_link_in_the_place_of_a_file_is_not_written_through(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"mine\n")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cannot open"):
        LineFile(tmp_path / "a")
    assert (tmp_path / "elsewhere").read_bytes() == b"mine\n"


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
    assert cut_torn_end(path, lambda line: b"!" not in line) == len(before) - len(after)
    assert path.read_bytes() == after


def test_lines_are_read_with_their_numbers(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one\n\n  \nfour\nfive")
    assert list(read_lines(path)) == [(1, b"one\n"), (4, b"four\n"), (5, b"five")]
    assert list(read_lines(tmp_path / "none")) == []
    with pytest.raises(StoreError, match="cannot read"):
        list(read_lines(tmp_path))


THREADS = """
import sys
from threading import Barrier, Thread
from typing import Optional

import msgspec

from agentv.store.files.encoding import decodable

sys.setswitchinterval(1e-6)
for turn in range(40):
    inner = [
        msgspec.defstruct(f"Inner{number}", [(f"field{one}", Optional[int], None) for one in range(40)])
        for number in range(20)
    ]
    outer = msgspec.defstruct("Outer", [(kind.__name__, Optional[kind], None) for kind in inner])
    text = ("{" + ",".join(f'"{kind.__name__}":{{"field1":1}}' for kind in inner) + "}").encode()
    together = Barrier(6)
    found = []

    def decode():
        together.wait()
        found.append(msgspec.json.decode(text, type=KIND))

    threads = [Thread(target=decode) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.Inner7.field1 for one in found] == [1] * 6, turn
"""


def test_threads_that_decode_into_one_type_for_the_first_time_do_not_crash():
    script = THREADS.replace("KIND", "decodable(outer)")
    ended = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
