import json
import shutil
import subprocess
import sys
from contextlib import closing, suppress
from zlib import crc32

import pytest
from msgspec import structs
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.redaction import Redactor
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import Amount
from agentv.store.files.directory import RunDirectory
from agentv.store.journal.answers import elapsed_in
from agentv.store.journal.journal import Journal
from agentv.store.journal.journal_files import BUFFERED_BYTES
from agentv.store.journal.journal_reader import JournalReader, spent_in
from agentv.store.journal.verification import stored_summary
from doubles.stores import call
from doubles.thorough import examples
from doubles.trials import NOW, ROOT, finished, trial
from doubles.waiting import until


def fill(directory, *ids):
    with Journal(directory, ROOT) as journal:
        for key in ids:
            journal.keep(call(key, key), TargetResponse(f"answer of {key}"))
            journal.finish(finished(trial=trial(key, key=key)))


def reopened(directory):
    with Journal(directory, ROOT) as journal:
        journal.load_answers()
        return [key for key in "abc" if journal.stored_answer(call(key))], list(journal.finished()), journal


def test_an_answer_of_an_earlier_process_is_written_again_only_where_it_is_not_held(directory):
    fill(directory, "k")
    path = directory.path / "journal.jsonl"
    with Journal(directory, ROOT) as journal:
        journal.load_answers()
        before = path.read_bytes()
        journal.keep(call("k"), TargetResponse("yes", earlier=True))
        assert path.read_bytes() == before
        for key, answer in (("other", TargetResponse("yes", earlier=True)), ("k", TargetResponse("no"))):
            journal.keep(call(key), answer)
            assert json.loads(path.read_text().splitlines()[-1])["key"] == key


def test_the_journal_says_what_it_is(directory, journal):
    journal.keep(call("k"), TargetResponse("yes"))
    header, line = (directory.path / "journal.jsonl").read_text().splitlines()
    assert json.loads(header) == {"format": "agentv-journal", "version": 1}
    keys = [
        "crc32",
        "key",
        "case",
        "output",
        "messages",
        "token_usage",
        "cost_usd",
        "duration_ms",
        "finish_reason",
        "metadata",
    ]
    assert list(json.loads(line)) == keys


def test_an_answer_is_with_the_system_at_once(directory):
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from agentv.model.values.response import RUN_INTERRUPTED, Failure, TargetResponse\n"
        "from agentv.store.files.directory import RunDirectory\n"
        "from agentv.ports import Call, TargetRequest\n"
        "from agentv.store.journal.journal import Journal\n"
        "journal = Journal(RunDirectory.open(Path(sys.argv[1])), '/')\n"
        "journal.keep(Call('k', 't', TargetRequest('c', '', ())), TargetResponse('kept'))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    directory.close()
    assert subprocess.run([sys.executable, "-c", program, str(directory.path)], check=False).returncode == -9
    with RunDirectory.open(directory.path) as again, Journal(again, ROOT) as journal:
        journal.load_answers()
        assert journal.stored_answer(call("k")) == TargetResponse("kept")


def test_many_rows_are_written_without_waiting(directory, journal):
    journal.finish(finished(output="x" * BUFFERED_BYTES))
    assert (directory.path / "index.jsonl").stat().st_size > BUFFERED_BYTES


def test_a_run_goes_on_where_it_stopped(directory):
    fill(directory, "a", "b")
    fill(directory, "c")
    keys, rows, journal = reopened(directory)
    assert keys == rows == ["a", "b", "c"]
    assert journal.repaired == ()


@pytest.mark.parametrize("name", ["journal.jsonl", "index.jsonl"])
def test_wherever_a_file_was_torn_whole_lines_are_left_and_more_can_follow(directory, name):
    fill(directory, "a", "b")
    path = directory.path / name
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in range(0, len(whole), examples(7, 29)):
        path.write_bytes(whole[:size])
        fill(directory)
        kept = path.read_bytes()
        left = [line for line in lines if whole.index(line) + len(line) <= size]
        assert kept == b"".join(left or lines[: name == "journal.jsonl"])
        fill(directory, "c")
        keys, rows, _ = reopened(directory)
        assert (keys if name == "journal.jsonl" else rows)[-1] == "c"


@pytest.mark.parametrize(
    ("name", "torn"),
    [
        ("journal.jsonl", b'{"crc32":"0000'),
        ("journal.jsonl", b'{"crc32":"00000000","key":"b"}\n'),
        ("index.jsonl", b'{"test_id":'),
        ("index.jsonl", b"\x00\x00\x00"),
        ("index.jsonl", b'{"test_id":\n'),
    ],
)
def test_what_was_cut_is_reported(directory, name, torn):
    fill(directory, "a")
    path = directory.path / name
    with path.open("ab") as file:
        file.write(torn)
    keys, rows, journal = reopened(directory)
    assert keys == rows == ["a"]
    assert journal.repaired == (f"{path}: removed {len(torn)} bytes of an incomplete line",)


@pytest.mark.parametrize("bad", [b'{"test_id":\n', b"[]\n", b'{"test_id": "x"}\n', b"\xff\n", b"null\n"])
def test_a_broken_row_in_the_middle_is_named(directory, bad):
    fill(directory, "a", "b")
    path = directory.path / "index.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + bad + second)
    with Journal(directory, ROOT) as journal, pytest.raises(StoreError, match=r"index.jsonl:2: not a row of a run"):
        list(journal.finished())


def test_a_row_of_a_newer_format_is_named(directory):
    fill(directory, "a")
    path = directory.path / "index.jsonl"
    path.write_text(path.read_text().replace('"schema_version":1', '"schema_version":2'))
    with (
        Journal(directory, ROOT) as journal,
        pytest.raises(StoreError, match=r"index.jsonl:1: written by a newer agentv"),
    ):
        list(journal.finished())


def test_a_changed_answer_in_the_middle_is_passed_over_and_counted(directory):
    fill(directory, "a", "b", "c")
    path = directory.path / "journal.jsonl"
    path.write_text(path.read_text().replace("answer of b", "answer of x"))
    with Journal(directory, ROOT) as journal:
        assert journal.load_answers() == 2
        assert [journal.stored_answer(call(key)) is not None for key in "abc"] == [True, False, True]
        assert journal.damaged == 1


CHANGED = [
    (b'"status":"passed"', b'"status":"failed"'),
    (b'"test_id":"b"', b'"test_id":"a"'),
    (b'"key":"b"', b'"key":"a"'),
    (b'"key":"b"', b'"key":"\xff"'),
    (b'{"test_id":"b"', b'["test_id":"b"'),
]


@pytest.mark.parametrize(("written", "changed"), CHANGED)
def test_a_row_that_was_changed_is_set_aside_and_told(directory, written, changed):
    fill(directory, "a", "b", "c")
    index = directory.path / "index.jsonl"
    first, second, third = index.read_bytes().splitlines(keepends=True)
    other = second.replace(written, changed, 1)
    assert other != second
    index.write_bytes(first + other + third)
    _, rows, journal = reopened(directory)
    assert rows == ["a", "c"]
    assert "index.jsonl: 1 row was changed after it was written" in journal.repaired[0]
    assert index.read_bytes() == first + third
    assert (directory.path / "rejected.jsonl").read_bytes() == other
    fill(directory, "b")
    assert reopened(directory)[1] == ["a", "c", "b"]


def test_a_row_of_another_run_is_set_aside(tmp_path, directory):
    fill(directory, "a")
    with RunDirectory.create(tmp_path, NOW, out=tmp_path / "other") as other:
        fill(other, "z")
        foreign = (other.path / "index.jsonl").read_bytes()
    with (directory.path / "index.jsonl").open("ab") as index:
        index.write(foreign)
    assert reopened(directory)[1] == ["a"]


@pytest.mark.parametrize("left", [lambda lines: [], lambda lines: lines[:1]])
def test_rows_without_checksums_are_refused(directory, left):
    fill(directory, "a", "b")
    path = directory.path / "journal.jsonl"
    answers = [line for line in path.read_bytes().splitlines(keepends=True) if b'"row":' not in line]
    path.write_bytes(b"".join(left(answers)))
    with pytest.raises(
        StoreError, match=r"index.jsonl contains rows, but journal.jsonl was removed, emptied or replaced"
    ):
        reopened(directory)


def test_a_journal_that_was_cut_before_the_checksum_of_a_row_gives_its_answers_back(directory):
    fill(directory, "a", "b")
    path = directory.path / "journal.jsonl"
    answers = [line for line in path.read_bytes().splitlines(keepends=True) if b'"row":' not in line]
    path.write_bytes(b"".join(answers[:2]))
    kept, finished_rows, journal = reopened(directory)
    assert (kept, finished_rows) == (["a"], [])
    assert "2 rows were changed after they were written" in journal.repaired[0]


@pytest.mark.parametrize("header", [b"something else\n", b'{"format":"agentv-journal","version":2}\n'])
def test_another_journal_is_refused(directory, header):
    (directory.path / "journal.jsonl").write_bytes(header + header)
    with pytest.raises(StoreError, match="is not a journal of format 1"):
        Journal(directory, ROOT)


def test_secrets_are_taken_out_of_answers_and_rows(tmp_path):
    secret = 'hunter"22'
    with RunDirectory.create(tmp_path, NOW, redactor=Redactor([secret])) as directory:
        with Journal(directory, ROOT) as journal:
            journal.keep(call("k"), TargetResponse(f"it is {secret}", metadata={secret: secret}))
            journal.finish(finished(output=f"it is {secret}", trial=trial(f"about {secret}", key="k")))
            journal.load_answers()
            assert journal.stored_answer(call("k")) is None  # not exactly the answer, so the call is made again
        line = json.loads((directory.path / "journal.jsonl").read_text().splitlines()[1])
        assert (line["output"], line["metadata"], line["redacted"]) == (
            "it is [redacted]", {"[redacted]": "[redacted]"}, True,
        )  # fmt: skip
        row = json.loads((directory.path / "index.jsonl").read_text())
        assert (row["output"], row["test_id"], row["key"]) == ("it is [redacted]", "about [redacted]", "k")
        assert (
            b"22" not in (directory.path / "journal.jsonl").read_bytes().replace(b"20261121", b"").split(b"\n")[1][28:]
        )


@pytest.mark.parametrize(
    "write", [lambda journal: journal.keep(call("k"), TargetResponse("x")), lambda journal: journal.finish(finished())]
)
def test_a_directory_that_is_removed_stops_the_run(directory, write):
    journal = Journal(directory, ROOT)
    shutil.rmtree(directory.path)

    def refused():
        with suppress(StoreError):
            write(journal)
            return False
        return True

    until(refused)
    with pytest.raises(StoreError, match="it was removed during the run"):
        journal.close()


def judging(key):
    return structs.replace(call(key, "case"), request=replace(call(key, "case").request, nonces=("n",)))


def test_a_verdict_that_several_trials_share_is_paid_once_over_a_resume(directory):
    verdict = TargetResponse("SCORE=5", cost_usd=0.005)
    with Journal(directory, ROOT) as journal:
        journal.keep(judging("shared"), verdict)
        journal.keep(judging("other"), verdict)
        journal.finish(structs.replace(finished(trial=trial("case", key="first")), judge_cost_usd=0.005))
    with Journal(directory, ROOT) as journal:  # the second trial, and the third one's paid call, have no row yet
        journal.load_answers()
        journal.retire_rows(lambda row: False, lambda finished: finished)
        kept = [journal.stored_answer(judging(key)) for key in ("other", "shared", "other")]
        assert [one.earlier for one in kept] == [False, True, True]


def sealed(body):
    """Return a line with a valid checksum."""
    return b'{"crc32":"%08x",%b\n' % (crc32(body), body[1:])


def test_lines_with_a_right_checksum_that_agentv_did_not_write_are_no_answers(directory):
    fill(directory, "a")
    whole = b'"case":"a","output":"x","messages":[],"token_usage":null,"cost_usd":null'
    whole += b',"duration_ms":null,"finish_reason":null,"metadata":{}'
    path = directory.path / "journal.jsonl"
    lines = [
        sealed(b'{"key":"q\\"","case":"a",' + whole[11:] + b"}"),
        sealed(b'{"case":"a","key":"b",' + whole[11:] + b"}"),  # key after case
        *map(sealed, (b'{"key":1}', b'{"key":"d"}', b'{"row":"\xff","sum":"00000000"}', b'{"row":"e","sum":"x"}')),
        *map(sealed, (b'{"anew":[1]}', b'{"anew":["a"', b"{}", b'{"key":"unended')),
    ]
    path.write_bytes(path.read_bytes() + b"".join(lines))
    reader = JournalReader(path)
    assert reader.damaged == 8
    shown = (reader.answer('q"').output, reader.answer("b").output, reader.answer("a").output)
    assert shown == ("x", "x", "answer of a")
    assert [key for key in ("q", "q\\", 'q\\"', "d", "unended") if reader.answer(key) is not None] == []
    reader.close()
    assert sum(elapsed_in(line) is not None for line in path.read_bytes().splitlines()) == 1
    assert spent_in(path).total == Amount(), "none of them cost anything, and none stops the sum"


def test_the_summary_is_written_after_its_checksum_which_is_no_answer(directory, monkeypatch):
    with Journal(directory, ROOT) as journal:
        journal.keep(call("a", "a"), TargetResponse("answer", cost_usd=0.5))
    spent = spent_in(directory.path / "journal.jsonl")
    with Journal(directory, ROOT) as journal:
        monkeypatch.setattr(RunDirectory, "replace", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            journal.write_summary({"pass_rate": 1.0})
        monkeypatch.undo()
        assert stored_summary(directory.path) is None
        journal.write_summary({"pass_rate": 0.5})
    assert stored_summary(directory.path).verified
    with closing(JournalReader(directory.path / "journal.jsonl")) as reader:
        assert (len(reader), reader.damaged) == (1, 0)
    assert spent_in(directory.path / "journal.jsonl") == spent
