"""JSON Lines: checked in one pass, read again when they run."""

import json
from pathlib import Path

import pytest

from agentv.authoring.cases.collector import SHOWN
from agentv.authoring.cases.data_files.rows import KEPT_NAMES
from agentv.authoring.source.json_text import nested_too_deep
from agentv.authoring.source.yaml import DEPTH_LIMIT
from doubles.loading import outcome, repository


def line(number: int, **more) -> str:
    return json.dumps({"id": f"c{number}", "input": f"Say {number}", "assert": [{"contains": "Say"}], **more}) + "\n"


def suite(folder: Path, text: str | bytes, sidecar: str = "target: echo\n"):
    suites, found = outcome(repository(folder, {"suite.jsonl": text, "suite.yaml": sidecar}) / "suite.jsonl")
    return (suites[0] if suites else None), [(one.code, one.span.line, one.span.column) for one in found]


def test_a_short_file_is_read_once(tmp_path):
    found, _ = suite(tmp_path, line(1) + "\n" + line(2))
    (tmp_path / "suite.jsonl").unlink()
    assert [(case.id, case.span.line) for case in found.cases] == [("c1", 1), ("c2", 3)]


def test_a_bom_at_the_begin_is_fine_and_anywhere_else_is_not(tmp_path):
    assert suite(tmp_path, "\ufeff" + line(1))[1] == []
    assert suite(tmp_path, line(1) + "\ufeff" + line(2))[1] == [("bad-json", 2, 1)]


def test_no_more_warnings_are_told_than_anybody_reads(tmp_path):
    found, told = suite(tmp_path, "".join(line(number, criteria="Says it") for number in range(SHOWN + 20)))
    assert len(found.cases) == SHOWN + 20
    assert [code for code, _, _ in told] == ["more-bad-lines"] + ["criteria-not-judged"] * SHOWN


def test_no_more_duplicates_are_told_than_anybody_reads(tmp_path):
    _, told = suite(tmp_path, "".join(line(number % 300) for number in range(600)))
    assert [code for code, _, _ in told] == ["duplicate-id"] * (SHOWN + 1)
    assert told[0][1] == 1  # how many there are
    assert [at for _, at, _ in told[1:]] == list(range(301, 301 + SHOWN))


def test_a_remark_far_down_a_file_has_its_line_and_column(tmp_path):
    _, told = suite(tmp_path, "".join(line(number) for number in range(2000)) + line(2000, criteria="Says it"))
    assert told == [("criteria-not-judged", 2001, line(2000, criteria="").index('"criteria"') + 1)]


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT, False),
        ("[" * (DEPTH_LIMIT + 1), True),
        ('"' + "[" * 500 + '"', False),
        ('"\\"' + "[" * 500 + '"', False),
        ('"\\\\"' + "{" * 500, True),
        ("[]" * 500, False),
    ],
)
def test_depth_is_measured_without_recursion(text, deep):
    assert nested_too_deep(text) is deep


def data_suite(folder: Path, rows: str):
    """The outcome of a suite that pulls in these rows."""
    files = {"a.eval.yaml": "target: echo\ntests: rows.jsonl\n", "rows.jsonl": rows}
    suites, found = outcome(repository(folder, files) / "a.eval.yaml")
    return (suites[0] if suites else None), found


def test_of_very_many_different_unknown_keys_some_are_listed_and_all_are_kept(tmp_path):
    count = KEPT_NAMES + 50
    rows = "".join(line(number, **{f"ß{number}z{number}": number}) for number in range(count))
    found, told = data_suite(tmp_path, rows)
    assert [one.code for one in told] == ["extra-keys"]
    assert told[0].message.endswith(" and more than 990 more")
    assert [list(case.metadata.values()) for case in found.cases] == [[number] for number in range(count)]


def test_an_unknown_key_of_data_is_part_of_what_the_case_is(tmp_path):
    hashes = []
    for topic in ("lamps", "chairs"):
        (tmp_path / topic).mkdir()
        found, _ = data_suite(tmp_path / topic, line(1, topic=topic))
        hashes += [case.sha256 for case in found.cases]
    assert len(set(hashes)) == 2
