import os
import time

from agentv.extensions.agents.adapters.trials import changed_since, failed, file_clock


def test_changes_are_seen_whatever_the_times_of_files_say(tmp_path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "a").write_text("x")
    (tmp_path / ".git").mkdir()
    moment = file_clock() + 100_000_000
    time.sleep(0.2)
    (tmp_path / ".git" / "index").write_text("x")
    assert not changed_since(str(tmp_path), moment)
    (tmp_path / "dir" / "a").write_text("y")
    os.utime(tmp_path / "dir" / "a", (0, 0))
    assert changed_since(str(tmp_path), moment)


def test_a_change_at_once_is_seen(tmp_path):
    for number in range(50):
        root = tmp_path / str(number)
        root.mkdir()
        moment = file_clock()
        (root / "a").mkdir()
        assert changed_since(str(root), moment)


STACK = "\n".join(f"    at step{number} (node:internal/modules/esm/loader:{number}:20)" for number in range(60))
CRASH = (
    f"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chalk' imported from /p/cli.js\n{STACK}\n\nNode.js v24.1.0\n"
)


def test_a_crash_of_node_is_told_by_the_line_that_says_why():
    assert "Cannot find package 'chalk'" in failed("agent-stopped", "it ended", stderr=CRASH.encode()).message
    assert failed("agent-stopped", "it ended", stderr=b"a\nno key").message == "it ended; stderr: a\nno key"
    assert failed("agent-stopped", "it ended").message == "it ended"
