"""Descriptors that forks and standard streams do not share."""

from __future__ import annotations

import fcntl
import os
import sys

import pytest

from agentv.store.files.private_files import open_private
from agentv.user_code.processes.descriptors import close_private, keep_private


def in_fork(work) -> int:
    """The exit status of a fork that does some work: 1 where it raises."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001  # the status tells of it
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads, on newer Pythons


def test_what_a_fork_writes_there_is_lost(tmp_path):
    own = keep_private(open_private(tmp_path / "journal", os.O_WRONLY | os.O_CREAT))
    assert in_fork(lambda: os.write(own, b"of the fork")) == 0
    os.write(own, b"ours")
    close_private(own)
    assert (tmp_path / "journal").read_bytes() == b"ours"


def test_a_fork_that_lives_on_does_not_hold_the_lock(tmp_path):
    own = keep_private(open_private(tmp_path / "journal", os.O_WRONLY | os.O_CREAT))
    fcntl.flock(own, fcntl.LOCK_EX)
    held, hold = os.pipe()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(hold)
        os.write(tell, b"x")
        os.read(held, 1)
        os._exit(0)
    os.read(told, 1)
    close_private(own)
    with (tmp_path / "journal").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(hold)
    os.waitpid(child, 0)
    for one in (held, told, tell):
        os.close(one)


def test_a_number_that_was_given_back_is_nobodys(tmp_path):
    own = keep_private(open_private(tmp_path / "journal", os.O_WRONLY | os.O_CREAT))
    close_private(own)
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    assert other == own
    assert in_fork(lambda: os.write(other, b"of the fork")) == 0
    os.close(other)
    assert (tmp_path / "other").read_bytes() == b"of the fork"


def test_a_pipe_that_is_ours_ends_although_a_fork_lives(tmp_path):
    read, write = os.pipe()
    write = keep_private(write)
    child = os.fork()
    if child == 0:
        os.close(read)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(100)"])
    close_private(write)
    assert os.read(read, 1) == b""
    os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(read)
