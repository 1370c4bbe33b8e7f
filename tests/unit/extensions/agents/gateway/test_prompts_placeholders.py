"""Differences between two runs of the same agent that must not count as a different prompt."""

import pytest

from agentv.extensions.agents.gateway.prompts import Placeholders

PLACEHOLDERS = Placeholders(
    {"/srv/w/17/workspace": "[workspace]", "/srv/w/17/home": "[home]", "agentv-trial-x1": "[token]"}
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cwd /srv/w/17/workspace/a.py", "cwd [workspace]/a.py"),
        ("~/.claude/projects/-srv-w-17-workspace/1.jsonl", "~/.claude/projects/[workspace]/1.jsonl"),
        ("key agentv-trial-x1", "key [token]"),
        ("session 0b54e1aa-90a2-4d31-9c2c-6d0ffb6bd2aa", "session 9b54e1aa-10a2-4d31-9c2c-6d0ffb6bd2af"),
        ("Today's date is 2026-11-23.", "Today's date is 2025-01-02."),
        ("Today is Monday, November 23, 2026.", "Today is Friday, January 2, 2026."),
        ("Date:   Mon Nov 23 12:54:42 2026 +0000", "Date:   Sun Nov 1 12:00:42 2026 +0000"),
        ("-rw-r--r-- 1 me me 12 Nov 23 12:54 a.py", "-rw-r--r-- 1 me me 12 Jan  2 08:00 a.py"),
        ("at 2026-11-23T12:54:42.123Z", "at 2027-01-01T00:00:00Z"),
        ("at 12:54:42", "at 1:00 PM"),
        ("epoch 1795438442123", "epoch 1795438999000"),
        ("in /tmp/tmpab12/x.py", "in /tmp/tmpzz99/x.py"),
        ("http://127.0.0.1:40121/anthropic", "http://127.0.0.1:39999/anthropic"),
        ("commit 4f3e2d1c4f3e2d1c4f3e2d1c4f3e2d1c4f3e2d1c", "commit 0f3e2d1c4f3e2d1c4f3e2d1c4f3e2d1c4f3e2d1c"),
        ("toolu_01AbCdEfGh", "toolu_09ZzCdEfGh"),
        ("1 passed in 0.03s", "1 passed in 1.27s"),
        ("killed pid 17", "killed pid 4242"),
        ("Wall time: 0.0123 seconds", "Wall time: 2 seconds"),
    ],
)
def test_what_is_new_for_each_run_is_left_out(first, second):
    assert PLACEHOLDERS.in_text(first) == PLACEHOLDERS.in_text(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("order 17 is lost", "order 18 is lost"),
        ("2 failed, 1 passed", "1 failed, 2 passed"),
        ("ID: order", "ID: refund"),
        ("/tmp/tmpab12/x.py", "/tmp/tmpab12/y.py"),
        ("claude-sonnet-4", "claude-sonnet-5"),
        ("session_timeout_seconds", "message_timeout_seconds"),
        ("Maybe 17 items", "Maybe 18 items"),
    ],
)
def test_what_says_something_is_not(first, second):
    assert PLACEHOLDERS.in_text(first) != PLACEHOLDERS.in_text(second)
