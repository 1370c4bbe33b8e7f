import os
import time

import pytest

from agentv.extensions.agents.adapters.workspace_files import (
    NoFileError,
    OutsideWorkspaceError,
    changed_since,
    inside,
    read_text,
    write_text,
)


def test_only_regular_files_are_read_and_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for act in (lambda: read_text(tmp_path, "pipe"), lambda: write_text(tmp_path, "pipe", "x")):
        with pytest.raises(NoFileError):
            act()
    with pytest.raises(NoFileError):
        read_text(tmp_path, ".")
    with pytest.raises(OutsideWorkspaceError):
        read_text(tmp_path, "a\0b")


@pytest.mark.parametrize("path", ["..", "../x", "/etc/passwd", "link/x", "/proc/self/environ", "dir/../../x"])
def test_what_leads_out_is_outside(tmp_path, path):
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(OutsideWorkspaceError):
        inside(str(root), path)
    with pytest.raises(OutsideWorkspaceError):
        write_text(str(root), path, "x")


def test_changes_are_seen_whatever_the_times_of_files_say(tmp_path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "a").write_text("x")
    (tmp_path / ".git").mkdir()
    moment = time.time() + 0.1
    time.sleep(0.2)
    (tmp_path / ".git" / "index").write_text("x")
    assert not changed_since(str(tmp_path), moment)
    (tmp_path / "dir" / "a").write_text("y")
    os.utime(tmp_path / "dir" / "a", (0, 0))
    assert changed_since(str(tmp_path), moment)
