"""The log of a prompt: no attempt is lost, and nothing else counts as one."""

import errno
import json
import os
import subprocess
import sys
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.suite.exam import ExamRow
from agentv.prompts.appending import LOCK_TRIES, TORN, Appending, append
from agentv.prompts.disk import Disk
from agentv.prompts.gates import prompt_sha256
from agentv.prompts.reading import LOG, last_exam_row, read_log
from agentv.prompts.rows import exam_row_of, line_of
from doubles.faulty_disk import CountingDisk, FullDisk, failing_disk, refusing_disk

SHA = "ab" * 32
FILES = {"prompt.md": SHA}
ROW = ExamRow("2026-11-22T08:00:00Z", True, 2, 2, run_id="r", prompt_sha256=prompt_sha256(FILES), files=FILES)
FAILED = ExamRow("2026-11-22T09:00:00Z", False, 3, 1, ("b", "trigger: clean up"), errored=1, partial=True)
EVA = b'{"ts": "yesterday", "all_passed": false, "total": 2, "passed": 1, "failed_cases": ["a"]}\n'


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    return tmp_path


def never(_seconds: float) -> None:
    raise AssertionError("nobody holds the lock")


def put(prompt: Path, data: bytes) -> Path:
    (prompt / LOG).write_bytes(data)
    return prompt


def logged(prompt: Path) -> bytes:
    return (prompt / LOG).read_bytes()


def told(prompt: Path) -> list[tuple[int, int, str, bool]]:
    found = read_log(str(prompt)).diagnostics
    return [(one.span.line, one.span.column, one.message, one.severity == "warning") for one in found]


# -- reading --------------------------------------------------------------------------------------


def test_a_row_holds_the_keys_in_their_order(prompt):
    append(str(prompt), ROW)
    keys = "ts all_passed total passed failed_cases run_id prompt_sha256 files model judge errored partial"
    assert list(json.loads(logged(prompt))) == keys.split()


def test_rows_of_eva_and_of_newer_versions_are_read(prompt):
    put(prompt, EVA + b'{"ts":"t","all_passed":true,"total":1,"passed":1,"failed_cases":[],"files":null,"cost":3}\n')
    first, second = read_log(str(prompt)).rows
    assert first == ExamRow("yesterday", False, 2, 1, ("a",), line=1)
    assert (second.files, second.prompt_sha256, second.line) == ({}, None, 2)


WRONG = {
    b"<<<<<<< HEAD": (1, "a merge conflict marker"),
    b"[1, 2]": (1, "a row must be a JSON object, found [1, 2]"),
    b'{"ts": "t",, "a": 1}': (12, "not JSON: Expecting property name enclosed in double quotes"),
    b"\xff{}": (1, "not UTF-8 (byte 1 of the line)"),
    b'{"ts": "t"}': (1, "a row needs 'all_passed'"),
    EVA.replace(b"2,", b'"2",'): (42, "'total' must be a whole number of at least 0, found \"2\""),
    EVA.replace(b"2,", b"-1,"): (42, "'total' must be a whole number of at least 0, found -1"),
    EVA.replace(b"2,", b"true,"): (42, "'total' must be a whole number of at least 0, found true"),
    EVA.replace(b'["a"]', b"[1]"): (67, "'failed_cases' must be a list of texts, found [1]"),
    EVA.replace(b"}", b', "prompt_sha256": "AB"}'): (90, "'prompt_sha256' must be 64 hexadecimal digits, found \"AB\""),
    EVA.replace(b"}", b', "files": {"a": 1}}'): (90, "'files' must be an object of sha256 digests, found {\"a\": 1}"),
    EVA.replace(b"2,", b"9" * 5000 + b","): (1, "not valid JSON"),
    b"[" * 100_000: (1, "not valid JSON"),
    EVA.replace(b"false", b"true"): (21, "'all_passed' is true, but 1 of 2 did not pass"),
    EVA.replace(b'"passed": 1', b'"passed": 3'): (21, "3 of 2 passed"),
    EVA.replace(b"false", b"true").replace(b'"passed": 1', b'"passed": 2'): (
        21,
        "'all_passed' is true, but 1 of 2 did not pass",
    ),
    EVA.replace(b"}", b', "total": 3}'): (90, "'total' appears twice"),
    EVA.replace(b"}", b', "ts": "yesterday"}'): (90, "'ts' appears twice"),
    EVA.replace(b"}", b', "files": {"a.md": "%b", "a.md": "%b"}}' % (SHA.encode(), SHA.encode())): (
        176,
        "'a.md' appears twice",
    ),
    EVA.replace(b"}", b', "prompt_sha256": "%b", "files": {"a": "%b"}}' % (SHA.encode(), SHA.encode())): (
        90,
        "'prompt_sha256' does not match 'files'",
    ),
    EVA.replace(b"}", b', "prompt_sha256": "%b"}' % SHA.encode()): (90, "'prompt_sha256' does not match 'files'"),
    EVA.replace(b"}", b', "run_id": "r"}'): (2, "with a 'run_id', 'ts' must be an ISO 8601 time, found \"yesterday\""),
    EVA.replace(b"}", b', "run_id": "r"}').replace(b"yesterday", b""): (
        2,
        "with a 'run_id', 'ts' must be an ISO 8601 time, found \"\"",
    ),
    EVA.replace(b"}", b', "run_id": "r"}').replace(b"yesterday", b"2026-11-22"): (
        2,
        "with a 'run_id', 'ts' must be an ISO 8601 time, found \"2026-11-22\"",
    ),
}


@pytest.mark.parametrize(("line", "place"), WRONG.items(), ids=[one[1] for one in WRONG.values()])
def test_a_line_that_is_no_row_is_told_at_its_place_and_passed_over(prompt, line, place):
    put(prompt, EVA + line.rstrip(b"\n") + b"\n" + EVA)
    assert told(prompt) == [(2, *place, False)]
    assert [row.line for row in read_log(str(prompt)).rows] == [1, 3]
    (found,) = read_log(str(prompt)).diagnostics
    assert (found.code, found.severity, found.span.line) == ("bad-log", "error", 2)


def test_a_torn_last_line_is_told_as_such_wherever_it_breaks_off(prompt):
    for end in range(1, len(EVA) - 1):
        put(prompt, EVA + EVA[:end])
        assert [(line, torn) for line, _, _, torn in told(prompt)] == [(2, True)]
        assert last_exam_row(str(prompt)).line == 1


def test_a_last_line_that_is_whole_and_no_row_is_not_torn(prompt):
    put(prompt, EVA + b'{"ts": "t"}')
    assert told(prompt) == [(2, 1, "a row needs 'all_passed'", False)]


def test_the_end_of_a_line_that_is_no_row_is_never_taken_for_one(prompt):
    row = line_of(ROW)
    put(prompt, EVA + b"x" + row + b"\n" * ((1 << 16) - len(row)))  # the first chunk read starts inside the line
    assert last_exam_row(str(prompt)) == read_log(str(prompt)).rows[-1]


def at(ts: str, run: str) -> bytes:
    return line_of(replace(FAILED, ts=ts, run_id=None, model=run))


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        ([at("2026-11-22T08:00:00Z", "b"), at("2026-11-21T08:00:00Z", "a")], "ab"),
        ([at("2026-11-22T08:00:00Z", "a"), at("2026-11-22T08:00:00Z", "b")], "ab"),
        (
            [at("2026-11-22T08:00:00+02:00", "a"), at("2026-11-22T05:00:00Z", "_"), at("2026-11-22T07:00:00", "b")],
            "_ab",
        ),
        ([at("2026-11-22T08:00:00Z", "b"), at("later", "c"), at("2026-11-21T08:00:00Z", "a")], "abc"),
        (
            [at("first", "a"), at("2026-11-22T08:00:00Z", "c"), at("2026-11-21", "d"), at("1999-01-01 10:00", "b")],
            "abcd",
        ),
        (
            [at("2026-11-22T08:00:00Z", "b"), at("2026-11-21T08:00:00Z", "a"), at("2027-11-21T08:00:00Z", "x")[:-9]],
            "ab",
        ),
        ([at("2026-11-22T08:00:00Z", "a"), b'{"ts": "2027-11-21T08:00:00Z"}\n'], "a"),
        ([at("9999-12-31T23:59:59-23:00", "b"), at("0001-01-01T00:00:00+23:00", "a")], "ab"),
    ],
)
def test_the_most_recent_row_is_the_newest_by_its_time_wherever_a_merge_has_put_it(prompt, lines, order):
    put(prompt, b"".join(lines))
    assert "".join(row.model for row in read_log(str(prompt)).rows) == order
    assert last_exam_row(str(prompt)) == read_log(str(prompt)).rows[-1]


def test_a_row_that_is_longer_than_what_is_read_at_once_is_found(prompt):
    long = replace(FAILED, failed_cases=tuple(f"case {number}" for number in range(20_000)))
    append(str(prompt), ROW)
    append(str(prompt), long)
    assert last_exam_row(str(prompt)) == replace(long, line=2)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_a_log_that_is_no_file_is_neither_read_nor_written_nor_waited_for(prompt, make):
    make(prompt / LOG)
    for act in (read_log, last_exam_row, lambda directory: append(directory, ROW)):
        with pytest.raises(StoreError, match=r"cannot (read|write) .*eval\.jsonl: it is (a directory|not a file)"):
            act(str(prompt))


# -- appending ------------------------------------------------------------------------------------


LONG = b'{"ts": "' + b"x" * 300_000
POWER_CUT = b"\0" * 300


@pytest.mark.parametrize("torn", [EVA[:1], EVA[:20], EVA[:-2], LONG, POWER_CUT], ids=len)
def test_a_torn_line_is_set_aside_and_told(prompt, torn):
    for times in (1, 2):
        put(prompt, EVA + torn)
        (note,) = append(str(prompt), ROW)
        assert note.startswith("the last line of .eval.jsonl is incomplete")
        assert note.endswith(f"moved to {TORN}")
        assert logged(prompt) == EVA + line_of(ROW)
        assert (prompt / TORN).read_bytes() == (torn + b"\n") * times
        assert append(str(prompt), ROW) == ()


@pytest.mark.parametrize("before", [EVA.rstrip(), EVA + b"  ", b"\xef\xbb\xbf", b"\xef\xbb\xbf" + EVA.rstrip()])
def test_a_line_without_its_end_gets_it_first(prompt, before):
    put(prompt, before)
    assert append(str(prompt), ROW) == ()
    assert logged(prompt) == before + b"\n" + line_of(ROW)
    assert told(prompt) == []


def test_a_torn_line_that_cannot_be_moved_keeps_no_row_from_being_written(prompt):
    put(prompt, EVA + b'{"ts"')
    (prompt / TORN).mkdir()
    (note,) = append(str(prompt), ROW)
    assert "it was left there: cannot move it to" in note
    assert logged(prompt) == EVA + b'{"ts"\n' + line_of(ROW)
    assert [row.line for row in read_log(str(prompt)).rows] == [1, 3]


def test_a_row_is_one_call_of_the_system(prompt):
    put(prompt, EVA.rstrip())
    disk = CountingDisk()
    append(str(prompt), ROW, Appending(disk))
    assert disk.calls.count("write") == 1
    assert disk.calls.index("lock") < disk.calls.index("write") < disk.calls.index("sync")


def test_every_text_can_stand_in_a_row(prompt):
    hostile = replace(FAILED, failed_cases=("a\nb\r\u2028\0", "\ud800", "é😀"), model='"')
    append(str(prompt), hostile)
    assert logged(prompt).count(b"\n") == 1
    assert last_exam_row(str(prompt)) == replace(hostile, line=1)


texts = st.text()
exam_rows = st.builds(
    lambda ts, cases, passed, *, hashed, files, **more: ExamRow(
        ts,
        not cases and bool(passed),
        passed + len(cases),
        passed,
        tuple(cases),
        prompt_sha256=prompt_sha256(files) if hashed else None,
        files=files,
        **more,
    ),
    st.datetimes(timezones=st.just(UTC)).map(str),
    st.lists(texts),
    st.integers(0, 5),
    run_id=st.none() | texts,
    hashed=st.booleans(),
    files=st.dictionaries(texts, st.just(SHA)),
    model=st.none() | texts,
    partial=st.booleans(),
)


@given(exam_rows)
def test_any_sitting_survives_its_line(exam_row):
    line = line_of(exam_row)
    assert line.count(b"\n") == 1
    assert exam_row_of(line.rstrip(b"\n"), 7) == replace(exam_row, line=7)
    assert [*json.loads(line)][:5] == ["ts", "all_passed", "total", "passed", "failed_cases"]  # the row format of eva


@given(exam_rows, st.data())
def test_a_line_that_is_cut_off_anywhere_is_never_a_row(exam_row, data):
    line = line_of(exam_row)
    assert not isinstance(exam_row_of(line[: data.draw(st.integers(0, len(line) - 2))], 1), ExamRow)


# -- locks, and systems that refuse them --------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_where_files_cannot_be_locked_the_row_is_written_and_that_is_told(prompt, code):
    (note,) = append(str(prompt), ROW, Appending(refusing_disk(code, "lock")))
    assert "without a lock, because files cannot be locked there" in note
    assert logged(prompt) == line_of(ROW)


def test_where_files_cannot_be_synchronised_the_row_counts_and_a_disk_that_fails_is_told(prompt):
    assert append(str(prompt), ROW, Appending(refusing_disk(errno.EINVAL, "sync"))) == ()
    with pytest.raises(StoreError, match="Input/output error"):
        append(str(prompt), FAILED, Appending(refusing_disk(errno.EIO, "sync")))
    assert logged(prompt) == line_of(ROW)


def test_without_a_lock_nothing_is_cut_off(prompt):
    put(prompt, EVA + b'{"ts"')
    disk = refusing_disk(errno.ENOLCK, "lock", "truncate")
    notes = append(str(prompt), ROW, Appending(disk))
    assert len(notes) == 2
    assert "is incomplete; it was left there, because the log is not locked" in notes[1]
    assert logged(prompt) == EVA + b'{"ts"\n' + line_of(ROW)


def test_a_lock_that_another_process_never_lets_go_loses_no_row(prompt):
    pauses = []
    held = Appending(refusing_disk(errno.EWOULDBLOCK, "lock"), pauses.append)
    (note,) = append(str(prompt), ROW, held)
    assert len(pauses) == LOCK_TRIES
    assert "another process has held the lock for 10 s" in note
    assert logged(prompt) == line_of(ROW)


def test_a_lock_is_waited_for(prompt):
    import fcntl

    pauses = []
    with (prompt / LOG).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def let_go(seconds):
            pauses.append(seconds)
            fcntl.flock(other, fcntl.LOCK_UN)

        assert append(str(prompt), ROW, Appending(pause=let_go)) == ()
    assert len(pauses) == 1


def test_a_log_that_git_replaces_meanwhile_is_opened_anew(prompt):
    put(prompt, EVA)

    class Checkout(Disk):
        def lock(self, descriptor):
            super().lock(descriptor)
            if not (prompt / "done").exists():
                (prompt / "done").touch()
                (prompt / "new").write_bytes(EVA + EVA)
                (prompt / "new").replace(prompt / LOG)

    append(str(prompt), ROW, Appending(Checkout()))
    assert logged(prompt) == EVA + EVA + line_of(ROW)


def test_a_log_that_is_removed_over_and_over_is_given_up(prompt):
    class Remover(Disk):
        def lock(self, descriptor):
            (prompt / LOG).unlink()

    with pytest.raises(StoreError, match="other programs keep replacing it"):
        append(str(prompt), ROW, Appending(Remover()))


@pytest.mark.parametrize("room", [0, 1, 50])
def test_a_full_disk_leaves_the_log_as_it_was(prompt, room):
    put(prompt, EVA)
    with pytest.raises(StoreError, match=r"cannot write .*/\.eval\.jsonl: no space left on the disk"):
        append(str(prompt), ROW, Appending(FullDisk(room)))
    assert logged(prompt) == EVA


def test_a_write_that_falls_short_is_carried_on(prompt):
    class Short(Disk):
        def write(self, descriptor, data):
            return super().write(descriptor, data[:7])

    append(str(prompt), ROW, Appending(Short()))
    assert logged(prompt) == line_of(ROW)


def test_whatever_call_fails_once_the_log_holds_the_old_rows_and_the_new_one_only_if_none_is_told(prompt):
    place, refused = 0, []
    while True:
        put(prompt, EVA + b'{"ts"')
        disk = failing_disk(place)
        try:
            append(str(prompt), ROW, Appending(disk, never))
        except StoreError:
            refused.append(disk.calls[place])
            assert [row.line for row in read_log(str(prompt)).rows] == [1], disk.calls
        else:
            assert len(read_log(str(prompt)).rows) == 2, disk.calls
        if place >= len(disk.calls):
            break
        place += 1
    assert set(refused) == {"open", "stat", "stat_at", "lock", "read", "write", "sync"}


WRITER = """
import sys
from agentv.model.suite.exam import ExamRow
from agentv.prompts.appending import append
directory, name, count = sys.argv[1:]
sys.stdin.readline()
for number in range(int(count)):
    assert append(directory, ExamRow("2026-11-22T08:00:00Z", True, 1, 1, run_id=f"{name}-{number}", model="x" * 3000)) == ()
"""


def test_several_processes_that_append_at_once_tear_nothing(prompt):
    count = 40
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(prompt), str(name), str(count)], stdin=subprocess.PIPE)
        for name in range(3)
    ]
    for one in writers:
        one.communicate(b"go\n", timeout=60)
    assert [one.returncode for one in writers] == [0, 0, 0]
    log = read_log(str(prompt))
    assert log.diagnostics == ()
    found = [row.run_id for row in log.rows]
    for name in range(3):  # none is lost, and each process's rows are in order
        assert [one for one in found if one.startswith(f"{name}-")] == [f"{name}-{number}" for number in range(count)]
    assert not (prompt / TORN).exists()
