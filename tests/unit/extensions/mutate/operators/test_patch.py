from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.extensions.mutate.operators.patch import Hunk, read_patch

LINE = st.sampled_from(
    ["a\n", "b\n", "--- x\n", "@@ -1 +1 @@\n", "diff --git a/x b/x\n", "\\ no\n", "\x0c\r\n", "é\n", "\n"]
)
TEXT = st.builds(lambda lines, end: "".join(lines) + end, st.lists(LINE, max_size=12), st.sampled_from(["", "end"]))


def diff(folder, before, after):
    """The patch of git between two texts."""
    (folder / "a").write_bytes(before.encode())
    (folder / "b").write_bytes(after.encode())
    command = ["git", "diff", "--no-index", "--no-color", "--text", "a", "b"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout.decode()


@given(TEXT, TEXT)
def test_a_patch_of_git_applies_and_each_hunk_can_be_reverted(tmp_path_factory, before, after):
    patch = diff(tmp_path_factory.mktemp("diff"), before, after)
    files = read_patch(patch)
    assert files is not None
    if not files:
        assert before == after
        return
    (file,) = files
    assert file.applied(before) == after
    for hunk in file.hunks:
        reverted = hunk.reverted(after)
        assert reverted is not None
        assert reverted != after
    if len(file.hunks) == 1:
        assert file.hunks[0].reverted(after) == before


def test_a_hunk_that_does_not_fit_is_not_applied():
    hunk = Hunk(0, 0, (("-", "old\n"), ("+", "new\n")))
    assert hunk.reverted("other\n") is None
    (file,) = read_patch("diff --git a/x b/x\nindex 1..2 100755\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
    assert (file.applied("other\n"), file.applied("old\n"), file.mode) == (None, "new\n", "100755")


@pytest.mark.parametrize(
    "text", ["no patch", "diff --git a/x b/x\n@@ -1,3 +1 @@\n-a\n", "diff --git a/x b/x\n@@ -1 +1 @@\n?"]
)
def test_what_is_no_patch_is_none(text):
    assert read_patch(text) is None
