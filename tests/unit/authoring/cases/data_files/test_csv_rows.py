"""CSV: rows and the places of their cells."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.authoring.cases.data_files import csv_rows
from agentv.authoring.cases.data_files.csv_rows import read_rows
from agentv.authoring.source.report import Report


def rows(folder, data: str | bytes):
    path = folder / "cases.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    report = Report()
    return list(read_rows(str(path), report)), report.diagnostics


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        ("a,b\r\n1,\r\n", [["a", "b"], ["1", ""]]),
        ("a\n\n  \nb", [["a"], ["b"]]),
        ('"a,b","c""d",""\n', [["a,b", 'c"d', ""]]),
        ('"a\nb",c\n"d\n\n""e",f\n', [["a\nb", "c"], ['d\n\n"e', "f"]]),
        ("\ufeffa,b\n", [["a", "b"]]),
        ("a,\ufeffb\n", [["a", "\ufeffb"]]),
        (" a , b \n", [[" a ", " b "]]),
        ("", []),
    ],
)
def test_what_a_file_says(tmp_path, text, read):
    found, told = rows(tmp_path, text)
    assert [row.texts for row in found] == read
    assert told == ()


def test_every_cell_knows_where_it_stands(tmp_path):
    (row,), _ = rows(tmp_path, 'a,"b\nc",,"d""e"\n')
    assert [(cell.text, cell.at[1:]) for cell in row.cells("f")] == [
        ("a", (1, 1, 1, 2)),
        ("b\nc", (1, 3, 2, 3)),
        ("", (2, 4, 2, 5)),
        ('d"e', (2, 5, 2, 11)),
    ]


def test_rows_know_their_first_line(tmp_path):
    found, _ = rows(tmp_path, 'h\n"1\n2\n3"\n\nx\n')
    assert [(row.line, row.number) for row in found] == [(1, 0), (2, 1), (6, 2)]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ('5" screen,b', 2, "inside a cell"),
        ('a, "b"', 4, "white space"),
        ('"a"b,c', 4, "after a closing quote"),
        ('"a\nb"c,d', 3, "after a closing quote"),
        ('a,b"c"', 4, "inside a cell"),
    ],
)
def test_a_stray_quote_spoils_its_row_alone(tmp_path, text, column, message):
    found, told = rows(tmp_path, f"h,h\n{text}\nfine,x\n")
    assert told == ()
    assert [row.problem is None for row in found] == [True, False, True]
    assert message in found[1].problem.message
    assert found[1].problem.span.column == column


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b'a\n"b\nc\n', "bad-csv", 2),
        (b'a\nx,"\n', "bad-csv", 2),
        (b"a\n\xff\n", "not-utf-8", 2),
        (b"a\nb\0\n", "bad-csv", 2),
        ("a,b\n".encode("utf-16"), "not-utf-8", 1),
    ],
)
def test_what_ends_a_file_is_told_where_it_stands(tmp_path, data, code, line):
    _, told = rows(tmp_path, data)
    assert [(one.code, one.span.line) for one in told] == [(code, line)]


@pytest.mark.parametrize("text", ["h\n" + "x" * 40, 'h\n"' + "x\n" * 40])
def test_a_row_is_not_read_into_memory_without_end(tmp_path, monkeypatch, text):
    monkeypatch.setattr(csv_rows, "LARGEST", 30)
    found, told = rows(tmp_path, text)
    assert len(found) == 1
    assert [(one.code, one.span.line) for one in told] == [("bad-csv", 2)]


def test_a_cell_of_megabytes_is_a_cell(tmp_path):
    found, told = rows(tmp_path, '"' + "x\n" * 2_000_000 + '"\n')
    assert told == ()
    assert len(found[0].texts[0]) == 4_000_000


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=6)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(2, 4).flatmap(lambda width: st.lists(st.lists(TEXTS, min_size=width, max_size=width), max_size=4)))
def test_what_the_csv_module_writes_is_read(tmp_path, table):
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(table)
    found, told = rows(tmp_path, written.getvalue().encode())
    assert told == ()
    assert [row.texts for row in found] == table
    assert [[cell.text for cell in row.cells("f")] for row in found] == table


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=40) | st.text('a,"\n', max_size=30).map(str.encode))
def test_any_bytes_are_rows_or_are_told_what_is_wrong(tmp_path, data):
    found, _ = rows(tmp_path, data)
    for row in found:
        if row.problem is None:
            assert row.texts == [cell.text for cell in row.cells("f")]


def test_a_quote_that_stays_open_over_many_lines_is_told_where_it_begins(tmp_path):
    found, told = rows(tmp_path, 'q,a\n1,"' + "a\n" * 50_000)
    assert [row.texts for row in found] == [["q", "a"]]
    (one,) = told
    assert (one.code, one.span.line, one.span.column) == ("bad-csv", 2, 3)


def test_a_cell_of_many_lines_is_one_cell(tmp_path):
    text = "é\n" * 5_000
    found, told = rows(tmp_path, f'q,a\n1,"{text}"\n2,b\n')
    assert not told
    assert [row.texts for row in found] == [["q", "a"], ["1", text], ["2", "b"]]
    assert found[2].line == 5_003
