"""The evaluated texts: stored once, complete or not at all, under the digest of their bytes."""

import errno
import hashlib

import pytest

from agentv.errors import StoreError
from agentv.prompts.disk import Disk, replace_file, store_texts, stored_text, texts_directory
from doubles.faulty_disk import FullDisk, failing_disk, refusing_disk

TEXTS = {"prompt.md": b"Greet {{ name }}.\n", "eval.yml": b"cases: []\n"}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def names(home) -> set[str]:
    return {one.name for one in texts_directory(home).iterdir()}


def test_a_text_that_a_power_cut_has_shortened_is_none_and_is_written_again(tmp_path):
    store_texts(tmp_path, TEXTS)
    digest = sha(TEXTS["prompt.md"])
    (texts_directory(tmp_path) / digest).write_bytes(b"")
    assert stored_text(tmp_path, digest) is None
    store_texts(tmp_path, TEXTS)
    assert stored_text(tmp_path, digest) == TEXTS["prompt.md"]


@pytest.mark.parametrize("digest", ["../../secret", "\0", ""])
def test_what_is_no_digest_finds_nothing(tmp_path, digest):
    store_texts(tmp_path, TEXTS)
    (tmp_path / "secret").write_text("x")
    assert stored_text(tmp_path, digest) is None


def test_whatever_call_fails_once_no_text_is_kept_in_part(tmp_path):
    place = 0
    while True:
        home = tmp_path / str(place)
        disk = failing_disk(place)
        try:
            store_texts(home, TEXTS, disk)
        except StoreError:
            found = names(home) if texts_directory(home).exists() else set()
            assert found <= {".gitignore", *map(sha, TEXTS.values())}, disk.calls
        else:
            assert place >= len(disk.calls), disk.calls[place]
            break
        place += 1
    assert place > 10


def test_a_full_disk_and_one_that_may_not_be_written_are_told(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*exams: no space left on the disk"):
        store_texts(tmp_path, TEXTS, FullDisk(10))
    with pytest.raises(StoreError, match="the file system is read-only"):
        store_texts(tmp_path, TEXTS, refusing_disk(errno.EROFS, "make_directory"))


def test_two_processes_that_keep_the_same_text_do_not_meet(tmp_path):
    class Other(Disk):
        def replace(self, new, path):
            if not path.exists():
                store_texts(tmp_path, TEXTS)
            super().replace(new, path)

    store_texts(tmp_path, TEXTS, Other())
    assert names(tmp_path) == {".gitignore", *map(sha, TEXTS.values())}


def test_an_interrupt_leaves_nothing_of_a_new_file(tmp_path):
    def fill(_descriptor):
        raise KeyboardInterrupt

    (tmp_path / "log").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        replace_file(Disk(), tmp_path / "log", fill)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("log", "old")]
