"""Excel workbooks of cases: cell values, and hostile files."""

import datetime as dt
import re
import zipfile

import openpyxl

from agentv.authoring.cases.data_files import binary_tables as tables
from doubles.loading import outcome, repository

SUITE = "target: echo\ninput: 'ask {{ q }}'\nassert: [contains: a]\ntests: REFERENCE\n"


def workbook(folder, rows, title: str = "Cases", **others):
    """Write a workbook with one sheet of rows, and further sheets with only a header."""
    folder.mkdir(parents=True, exist_ok=True)
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = title
    for row in rows:
        sheet.append(row)
    for name, more in others.items():
        further = book.create_sheet(name)
        for row in more:
            further.append(row)
    book.save(folder / "cases.xlsx")
    return book


def loaded(folder, reference: str = "cases.xlsx"):
    repository(folder, {"suite.eval.yaml": SUITE.replace("REFERENCE", reference)})
    suites, found = outcome(folder / "suite.eval.yaml")
    return (list(suites[0].cases) if suites else None), [(one.code, one.span.line, one.message) for one in found]


def rewritten(folder, part: str, pattern: str, replacement: str) -> None:
    """Rewrite a part of the workbook's XML."""
    path = folder / "cases.xlsx"
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    text, count = re.subn(pattern, replacement, parts[part].decode())
    assert count, parts[part]
    parts[part] = text.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in parts.items():
            new.writestr(name, data)


SHEET = "xl/worksheets/sheet1.xml"


def test_cells_keep_what_they_say(tmp_path):
    midnight, morning = map(dt.datetime.fromisoformat, ("2024-01-31", "2024-01-31T10:05"))
    rows = [
        ["q", "count", "ratio", "ok", "day", "at", "clock", "took", "text", "gap", "__expected", "__threshold"],
        ["lamp", 3, 0.5, True, dt.date(2024, 1, 31), midnight, dt.time(9, 30), dt.timedelta(hours=30)],
        [],
        ["'=1+1", "007", 1e15, False, None, morning, None, None, " x ", "", "contains: k", 1],
    ]
    workbook(tmp_path, rows)
    cases, found = loaded(tmp_path)
    assert found == []
    assert [(one.id, one.span.line) for one in cases] == [("row-1", 2), ("row-2", 4)]
    assert dict(cases[0].vars) == {
        "q": "lamp",
        "count": 3,
        "ratio": 0.5,
        "ok": True,
        "day": "2024-01-31",
        "at": "2024-01-31",
        "clock": "09:30:00",
        "took": "30:00:00",
        "text": "",
        "gap": "",
    }
    assert (cases[1].vars["count"], cases[1].vars["text"], cases[1].threshold) == ("007", " x ", 1)
    assert type(cases[0].vars["count"]) is int


def test_the_sheet_is_named_or_the_first(tmp_path):
    workbook(tmp_path, [["q"], ["first"]], Second=[["q"], ["second"]])
    cases, found = loaded(tmp_path)
    assert [one.vars["q"] for one in cases] == ["first"]
    assert found == [("other-sheets", 1, "this workbook has 2 sheets; 'Cases' is read, and not 'Second'")]
    for reference in ("cases.xlsx#Second", "cases.xlsx#2", "file://cases.xlsx#Second"):
        cases, found = loaded(tmp_path, reference)
        assert (found, [one.vars["q"] for one in cases]) == ([], ["second"]), reference
    assert loaded(tmp_path, "cases.xlsx#Secnd")[1] == [("bad-table", 1, "this workbook has no sheet 'Secnd'")]
    assert loaded(tmp_path, "case.xlsx#Second")[1][0][0] == "missing-file"


def test_cells_that_cannot_be_read_are_named(tmp_path):
    workbook(tmp_path, [["q", "n"], ["d", 4, "stray"], ["e", "#N/A"]])
    assert loaded(tmp_path)[1] == [
        ("bad-table", 2, "sheet 'Cases', cell C2: this cell has no column: the header above it is empty"),
        ("bad-table", 3, "sheet 'Cases', cell B3, column 'n': the cell contains the error #N/A"),
    ]
    workbook(tmp_path / "header", [["q", None, "n"], ["a", "b", 1]])
    assert loaded(tmp_path / "header")[1] == [("bad-table", 1, "column 2 has no name")]
    workbook(tmp_path / "formula", [["q", "__expected"], ["a", '="contains: " & "b"']])
    assert [one[2].partition(": ")[2] for one in loaded(tmp_path / "formula")[1]] == [tables.NO_RESULT]
    workbook(tmp_path / "error", [["q", "#REF!"], ["a", "b"]])
    assert loaded(tmp_path / "error")[1] == [
        ("bad-table", 1, "sheet 'Cases', cell B1, a header: the cell contains the error #REF!")
    ]
    workbook(tmp_path / "empty", [])
    assert [one[0] for one in loaded(tmp_path / "empty")[1]] == ["no-tests"]


def test_formulas_count_by_their_stored_results(tmp_path):
    workbook(tmp_path, [["q", "sum", "none"], ["a", "=1+1", '=""'], ["b", 5, "x"]])
    rewritten(tmp_path, SHEET, r"<f>1\+1</f><v></v>", "<f>1+1</f><v>2</v>")
    rewritten(tmp_path, SHEET, r'<c r="C2"([^>]*)><f>""</f><v></v>', r'<c r="C2"\1 t="str"><f>""</f><v></v>')
    cases, found = loaded(tmp_path)
    assert found == []
    assert [(one.vars["sum"], one.vars["none"]) for one in cases] == [(2, ""), (5, "x")]


def test_a_lie_about_the_size_of_a_sheet_costs_nothing(tmp_path):
    workbook(tmp_path, [["q"], ["a"]])
    rewritten(tmp_path, SHEET, r'<dimension ref="[^"]*"', '<dimension ref="A1:XFD1048576"')
    cases, found = loaded(tmp_path)
    assert (found, len(cases)) == ([], 1)
    rewritten(tmp_path, SHEET, r'<row r="2"([^>]*)><c r="A2"', r'<row r="99999999999"\1><c r="A2"')
    assert [one[0] for one in loaded(tmp_path)[1]] == ["no-tests"]


def test_bombs_passwords_and_damage_are_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LARGEST", 50_000_000)
    workbook(tmp_path / "bomb", [["q"], ["a"]])
    with zipfile.ZipFile(tmp_path / "bomb" / "cases.xlsx", "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/more.xml", b"\0" * 60_000_000)
    assert loaded(tmp_path / "bomb")[1] == [("bad-table", 1, "this workbook unpacks to more than 50 MB")]
    texts = {
        "older": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "password, or in the format of Excel 97 to 2003"),
        "csv": (b"q\na\n", "this is not an Excel workbook"),
    }
    for name, (data, said) in texts.items():
        repository(tmp_path / name, {"cases.xlsx": data})
        ((code, _, message),) = loaded(tmp_path / name)[1]
        assert code == "bad-table"
        assert said in message
    workbook(tmp_path / "whole", [["q"], ["a"]])
    data = (tmp_path / "whole" / "cases.xlsx").read_bytes()
    for place in range(0, len(data), len(data) // 12):
        repository(
            tmp_path / str(place), {"cases.xlsx": data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]}
        )
        _, found = loaded(tmp_path / str(place))
        assert {one[0] for one in found} <= {"bad-table", "no-tests", "undefined-variable"}


def test_entities_do_not_explode(tmp_path):
    workbook(tmp_path, [["q"], ["lamp"]])
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 50 if n else "x" * 50}">' for n in range(9))
    rewritten(tmp_path, SHEET, r"<worksheet ", f"<!DOCTYPE x [{entities}]><worksheet ")
    rewritten(tmp_path, SHEET, "lamp", "&e8;")
    assert [one[0] for one in loaded(tmp_path)[1]] == ["bad-table"]
