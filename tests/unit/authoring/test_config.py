"""`.env` files, and the precedence of settings (SPEC sections 2 and 3)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.config import dotenv_of, merged, read_dotenv
from agentv.authoring.source.files import DiskReader
from agentv.authoring.source.report import Report
from doubles.loading import repository


class Held:
    """A Reader of one text."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, path: str) -> bytes:
        return self.content


def variables(text: str | bytes) -> tuple[dict[str, str], list[tuple[str, int]]]:
    report = Report()
    content = text if isinstance(text, bytes) else text.encode()
    found = read_dotenv("/nowhere/.env", Held(content), report)
    return found, [(one.code, one.span.line) for one in report.diagnostics]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("A = 1 ", "1"),
        ("export A=1", "1"),
        ("  A=1", "1"),
        ("A=", ""),
        ("A=two words", "two words"),
        ("A=1 # said aloud", "1"),
        ("A=a#b", "a#b"),
        ("A=#1", "#1"),
        ("A=a=b", "a=b"),
        ("A='x # y'", "x # y"),
        ("A='x' # y", "x"),
        (r"A='a\nb'", r"a\nb"),
        (r'A="a\nb\t\"c\" \\ \$d"', 'a\nb\t"c" \\ $d'),
        (r'A="a\qb"', r"a\qb"),
        ("A='", "'"),
        ("A='it's'", "'it's'"),
        ("A='one\ntwo'", "one\ntwo"),
        ('A="one\r\ntwo"', "one\ntwo"),
        ("A=1\r", "1"),
        ("\ufeffA=1", "1"),
        ("A=1\nA=2", "2"),
    ],
)
def test_a_line(line, value):
    assert variables(line) == ({"A": value}, [])


def test_bytes_that_are_no_text_are_an_error():
    assert variables(b"A=\xff")[1] == [("not-utf-8", 1)]


@given(st.text(max_size=80))
def test_any_text_is_variables_or_warnings(text):
    found, told = variables(text.encode(errors="replace"))
    assert all(name and isinstance(value, str) for name, value in found.items())
    assert {code for code, _ in told} <= {"bad-dotenv"}


def test_the_closest_file_wins(tmp_path: Path):
    repository(tmp_path, {".env": "A=far\nB=far\n", "x/.env": "B=near\nC=near\n", "x/y/z/suite.yaml": ""})
    report = Report()
    found = dotenv_of(str(tmp_path / "x/y/z"), str(tmp_path), DiskReader(), report)
    assert found == {"A": "far", "B": "near", "C": "near"}
    assert not report.count


def test_the_process_wins_over_the_suite_and_the_suite_over_files():
    process, suite, files = {"A": "process"}, {"A": "suite", "B": "suite"}, {"A": "file", "B": "file", "C": "file"}
    assert merged(process, suite, files) == {"A": "process", "B": "suite", "C": "file"}
