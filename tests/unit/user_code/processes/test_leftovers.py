from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentv.user_code.processes.leftovers import is_alive, sweep


@pytest.fixture
def dead():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_what_the_dead_left_long_ago_is_removed(tmp_path, dead):
    own, left, young = (tmp_path / name for name in (f".a.{os.getpid()}.new", f".a.{dead}.new", ".a.0999999999.new"))
    link, other = tmp_path / f".a.0{dead}.new", tmp_path / ".b.1.new"
    for path in (own, left, young, other):
        path.touch()
    link.symlink_to(other)
    for path in (own, left, other):
        os.utime(path, (0, 0))
    (tmp_path / f".a.00{dead}.new").mkdir()
    os.utime(tmp_path / f".a.00{dead}.new", (0, 0))
    sweep(tmp_path, r"\.a\.(\d+)\.new")
    assert sorted(tmp_path.iterdir()) == sorted([own, young, other, link])


def test_who_runs_is_alive(dead):
    assert is_alive(os.getpid())
    assert not is_alive(dead)
    assert is_alive(10**30)
