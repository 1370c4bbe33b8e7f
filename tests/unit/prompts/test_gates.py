"""The gates: only a complete, passed exam of exactly this text makes a prompt ready."""

import hashlib
import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.suite.exam import DESCRIPTION, STATUSES, ExamRow, PromptMeta, normalised
from agentv.model.suite.library import TextChange
from agentv.prompts.gates import (
    GateEvidence,
    changes,
    comparable,
    current_digests,
    digests,
    next_status,
    previous_status,
    prompt_sha256,
    refusals,
    status_evidence,
)

NOW = {"prompt.md": "aa", DESCRIPTION: "bb"}
THEN = {"prompt.md": "cc", "old.md": "dd"}
NOW_SHA, THEN_SHA = prompt_sha256(NOW), prompt_sha256(THEN)


def row(files=NOW, *, passed=True, **more) -> ExamRow:
    kept = {"prompt_sha256": prompt_sha256(files), "files": files} | more
    return ExamRow("2026-11-22T08:00:00Z", passed, 3, 3 if passed else 2, () if passed else ("b",), **kept)


PASSED, FAILED = row(), row(passed=False)
OLD, OLD_FAILED = row(THEN), row(THEN, passed=False)
PARTIAL = row(partial=True)
ERRORED = row(passed=False, errored=1)
EVA = row({}, prompt_sha256=None)
EMPTY = ExamRow("t", True, 0, 0, prompt_sha256=NOW_SHA, files=NOW)


def codes(to, *rows, status="draft", findings=0) -> list[str]:
    return [one.code for one in refusals(status, to, GateEvidence(rows, NOW, findings))]


@pytest.mark.parametrize(
    ("rows", "tested", "ready"),
    [
        ([PASSED], [], []),
        ([FAILED], [], ["exam-not-passed"]),
        ([], ["no-evidence"], ["no-evidence"]),
        ([PARTIAL], ["no-evidence"], ["no-evidence"]),
        ([EVA], ["no-evidence"], ["no-evidence"]),
        ([ERRORED], ["no-evidence"], ["no-evidence", "exam-not-passed"]),
        ([PASSED, ERRORED], [], ["no-evidence", "exam-not-passed"]),
        ([EMPTY], ["no-evidence"], ["no-evidence"]),
        ([OLD], ["stale-evidence"], ["stale-evidence"]),
        ([OLD_FAILED], ["stale-evidence"], ["stale-evidence", "exam-not-passed"]),
        ([PASSED, OLD], [], ["stale-evidence"]),
        ([PASSED, FAILED], [], ["exam-not-passed"]),
        ([PASSED, PARTIAL], [], ["no-evidence"]),
        ([PASSED, EVA], [], ["no-evidence"]),
        ([OLD, PARTIAL], ["stale-evidence"], ["stale-evidence", "no-evidence"]),
        ([FAILED, PASSED], [], []),
        ([OLD_FAILED, EVA, PARTIAL, PASSED], [], []),
    ],
)
def test_what_opens_the_gates(rows, tested, ready):
    assert codes("tested", *rows) == tested
    assert codes("ready", *rows) == codes("ready", *rows, status="tested") == ready


def test_doctors_findings_shut_both_gates():
    assert codes("tested", PASSED, findings=1) == codes("ready", PASSED, findings=2) == ["doctor-findings"]
    (refusal,) = refusals("draft", "tested", GateEvidence((PASSED,), NOW, 2))
    assert refusal.message == "doctor finds 2 things to fix"


def test_only_whole_passed_exams_of_this_text_ever_make_a_prompt_ready():
    kinds = [PASSED, FAILED, OLD, OLD_FAILED, PARTIAL, EVA, EMPTY, ERRORED]
    for rows in itertools.chain.from_iterable(itertools.product(kinds, repeat=size) for size in range(4)):
        assert (codes("ready", *rows) == []) == (bool(rows) and rows[-1] is PASSED)
        assert (codes("tested", *rows) == []) == (PASSED in rows or FAILED in rows)


def test_a_step_back_asks_for_no_evidence():
    assert codes("draft", status="ready") == codes("tested", status="ready", findings=3) == []
    assert codes("ready", status="ready", findings=3) == []


def test_stale_evidence_says_what_changed():
    (refusal,) = refusals("tested", "ready", GateEvidence((OLD,), NOW))
    assert refusal.message == "it changed after its exam of 2026-11-22T08:00:00Z"
    assert refusal.notes == ("the description: added", "old.md: removed", "prompt.md: edited")


def test_an_exam_that_was_not_passed_says_which_cases_were_not():
    (refusal,) = refusals("tested", "ready", GateEvidence((FAILED,), NOW))
    assert refusal.notes == ("1 of 3 did not pass", "b")
    errored = refusals("tested", "ready", GateEvidence((ERRORED,), NOW))[-1]
    assert errored.notes == ("1 of 3 did not pass, 1 of them errored", "b")


def test_without_an_exam_that_can_be_read_no_text_is_called_removed():
    found = refusals("draft", "ready", GateEvidence((PASSED,), {}, 1))
    assert [one.code for one in found] == ["doctor-findings", "no-evidence"]
    assert not any("removed" in note for one in found for note in one.notes)


@pytest.mark.parametrize(
    ("one", "why"),
    [(PARTIAL, "was partial"), (EVA, "examined text"), (EMPTY, "no case"), (ERRORED, "errored, and none was graded")],
)
def test_an_exam_that_does_not_count_says_why(one, why):
    (refusal,) = refusals("draft", "tested", GateEvidence((one,), NOW))
    assert why in refusal.notes[0]


def test_a_prompts_life():
    assert [next_status(one) for one in STATUSES] == ["tested", "ready", None]
    assert [previous_status(one) for one in STATUSES] == [None, "draft", "tested"]


@pytest.mark.parametrize(
    ("status", "rows", "edited", "evidence", "failed"),
    [
        ("ready", [PASSED], False, PASSED, None),
        ("ready", [OLD], True, OLD, None),
        ("ready", [OLD, FAILED], True, OLD, FAILED),
        ("ready", [PASSED, OLD], False, PASSED, None),
        ("ready", [PASSED, OLD_FAILED], False, PASSED, None),
        ("ready", [PASSED, FAILED], False, PASSED, FAILED),
        ("ready", [FAILED, PASSED], False, PASSED, None),
        ("ready", [PASSED, PARTIAL], False, PASSED, None),
        ("ready", [FAILED], False, None, None),
        ("ready", [PARTIAL, EVA, EMPTY], False, None, None),
        ("ready", [], False, None, None),
        ("tested", [FAILED], False, FAILED, None),
        ("tested", [OLD_FAILED], True, OLD_FAILED, None),
        ("tested", [PASSED, FAILED], False, FAILED, None),
        ("tested", [], False, None, None),
        ("draft", [OLD], False, OLD, None),
        ("draft", [], False, None, None),
    ],
)
def test_how_a_prompt_stands_to_its_status(status, rows, edited, evidence, failed):
    found = status_evidence(PromptMeta("p", status=status), rows, NOW)
    assert (found.edited, found.evidence, found.failed_since) == (edited, evidence, failed)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_hash_is_that_of_the_sorted_pairs():
    found = digests({"b": b"2", "a": b"1"})
    assert found == {"a": sha(b"1"), "b": sha(b"2")}
    assert prompt_sha256(found) == sha(f'[["a","{sha(b"1")}"],["b","{sha(b"2")}"]]'.encode())
    assert prompt_sha256(dict(sorted(found.items()))) == prompt_sha256(found)


@given(st.dictionaries(st.text(), st.binary()), st.dictionaries(st.text(), st.binary()))
def test_the_hash_is_the_same_where_nothing_changed_and_only_there(one, other):
    first, second = digests(one), digests(other)
    assert (prompt_sha256(first) == prompt_sha256(second)) == (one == other) == (changes(first, second) == ())


def test_changes_are_named_by_path():
    found = changes({"a": "1", "b": "2", DESCRIPTION: "3"}, {"b": "9", "c": "4", DESCRIPTION: "5"})
    assert found == (
        TextChange("a", "removed"),
        TextChange("b", "edited"),
        TextChange("c", "added"),
        TextChange(DESCRIPTION, "edited"),
    )
    assert [str(one) for one in found] == ["a: removed", "b: edited", "c: added", "the description: edited"]


@pytest.mark.parametrize(
    ("data", "same"),
    [(b"a\r\nb\rc\n", b"a\nb\nc\n"), (b"\xef\xbb\xbfa\n", b"a\n"), (b"a\n", b"a\n"), (b"\0\r\n\xef", b"\0\r\n\xef")],
)
def test_line_ends_and_byte_order_marks_do_not_count(data, same):
    assert normalised(data) == same


def test_todays_digests_are_of_the_files_that_a_row_names(tmp_path):
    prompt = tmp_path / "library" / "greeting"
    prompt.mkdir(parents=True)
    (prompt / "prompt.md").write_bytes(b"\xef\xbb\xbfhi\r\n")
    (tmp_path / "shared.md").write_bytes(b"shared\n")
    recorded = digests({"prompt.md": b"hi\n", "../../shared.md": b"shared\n", DESCRIPTION: b"Greets."})
    assert current_digests(str(prompt), recorded, "Greets.", {}) == recorded
    (tmp_path / "shared.md").unlink()
    found = changes(recorded, current_digests(str(prompt), recorded, None, {}))
    assert [str(one) for one in found] == ["../../shared.md: removed", "the description: removed"]


def test_a_row_may_name_anything(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    hostile = dict.fromkeys(["/dev/zero", "pipe", ".", "\0", "x" * 5000, "gone"], sha(b""))
    assert current_digests(str(tmp_path), hostile, None, {}) == {}


def test_targets_are_compared_where_a_row_records_them_and_they_can_be_read():
    old, row = {"a": "1"}, {"a": "1", "targets.yaml#m": "2"}
    assert comparable(old, {"a": "1", "targets.yaml#m": "3"}) == {"a": "1"}
    assert comparable(row, {"a": "1"}) == row
    assert changes(row, {"a": "1", "targets.yaml#m": "3"}) == (TextChange("targets.yaml#m", "edited"),)
    assert [str(one) for one in changes(row, {"a": "1", "targets.yaml#k": "3"})] == ["the target 'k': added"]
