"""Artifacts of a trial for its page."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentv.extensions.view.viewed.shown_work import MOST_BYTES, MOST_LINES, shown_work
from agentv.model.run.work import StoredWork
from agentv.store.files.traces import write
from doubles.traces import WORK
from doubles.trials import finished


def of(**stored):
    return replace(finished("passed"), stored=StoredWork(**stored))


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    (path / "artifacts" / "a").mkdir(parents=True)
    return path


def test_a_trial_without_artifacts_shows_nothing(run):
    assert shown_work(run, finished("passed")) is None
    assert shown_work(run, of(sandbox="bwrap")) is None


def test_a_trace_and_a_diff(run):
    write(WORK, run / "artifacts" / "a")
    (run / "artifacts" / "a" / "diff.patch").write_text("+one\n-two\n")
    work = shown_work(run, of(trace_path="artifacts/a/trace.json", diff_path="artifacts/a/diff.patch"))
    assert (work.trace, work.problem) == (WORK, "")
    assert (work.diff.text, work.diff.lines, work.diff.total, work.diff.path) == (
        "+one\n-two\n",
        2,
        2,
        "artifacts/a/diff.patch",
    )


@pytest.mark.parametrize(
    ("content", "lines", "total"),
    [
        (b"+line\n" * (MOST_LINES + 7), MOST_LINES, MOST_LINES + 7),
        (b"+" + b"x" * 999 + b"\n", 1, 1),
        ((b"+" + b"x" * 998 + b"\n") * 5000, 1000, 5000),
        (b"+" + b"x" * (MOST_BYTES + 1) + b"\n+b\n", 1, 2),
        (b"\xff\xfe no newline at the end", 1, 1),
        (b"", 0, 0),
    ],
)
def test_a_diff_is_bounded(run, content, lines, total):
    (run / "artifacts" / "a" / "diff.patch").write_bytes(content)
    diff = shown_work(run, of(diff_path="artifacts/a/diff.patch")).diff
    assert (diff.lines, diff.total) == (lines, total)
    assert len(diff.text.encode()) <= MOST_BYTES


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({"trace_path": "../x"}, "'../x' is outside the run's directory"),
        ({"diff_path": "/etc/passwd"}, "'/etc/passwd' is outside the run's directory"),
        ({"trace_path": "artifacts/gone/trace.json"}, "cannot read trace.json: No such file or directory"),
        ({"diff_path": "artifacts/gone/diff.patch"}, "No such file or directory"),
        ({"diff_path": "a\0b"}, "is no path"),
    ],
)
def test_what_cannot_be_read_is_told(run, stored, said):
    work = shown_work(run, of(**stored))
    assert said in work.problem
    assert (work.trace, work.diff) == (None, None)
