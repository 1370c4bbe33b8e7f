"""What was evaluated, and whether the files have changed since."""

import hashlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.suite.exam import DESCRIPTION, normalised
from agentv.prompts.evidence import DigestChange, changes, comparable, current_digests, digests, prompt_sha256


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
    before = {"a": "1", "b": "2", DESCRIPTION: "3"}
    found = changes(before, {"b": "9", "c": "4", DESCRIPTION: "5"})
    assert found == (
        DigestChange("a", "removed"),
        DigestChange("b", "edited"),
        DigestChange("c", "added"),
        DigestChange(DESCRIPTION, "edited"),
    )
    assert [str(one) for one in found] == ["a: removed", "b: edited", "c: added", "the description: edited"]


@pytest.mark.parametrize(
    ("data", "same"),
    [
        (b"a\r\nb\rc\n", b"a\nb\nc\n"),
        (b"\xef\xbb\xbfa\n", b"a\n"),
        (b"a\n", b"a\n"),
        (b"\0\r\n\xef", b"\0\r\n\xef"),
    ],
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
    assert changes(row, {"a": "1", "targets.yaml#m": "3"}) == (DigestChange("targets.yaml#m", "edited"),)
    assert [str(one) for one in changes(row, {"a": "1", "targets.yaml#k": "3"})] == ["the target 'k': added"]
