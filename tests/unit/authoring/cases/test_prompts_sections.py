"""The sections of a prompt's text, with their places."""

from pathlib import Path

import pytest
from msgspec.structs import astuple

from agentv.authoring.cases.prompts import Section, sections_of
from agentv.authoring.prompt_library import prompt_file_of
from agentv.authoring.source.nodes import span_of
from agentv.authoring.source.report import Report


def read(text: str) -> tuple[tuple[Section, ...], Report]:
    report = Report()
    return sections_of("/prompt.md", text, report), report


def sections(text: str) -> list[tuple[str, str]]:
    found, report = read(text)
    assert report.diagnostics == ()
    return [(section.role, section.text.text) for section in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  \n\n  one\n\ntwo  \n \n", [("user", "  one\n\ntwo  ")]),
        ("<user>a</user>", [("user", "a")]),
        ("<user>\n\n a\n\n\n</user>\n", [("user", " a")]),
        ("<system>a</system>\n<user>b</user>\n<assistant>c</assistant>", [("system", "a"), ("user", "b"), ("assistant", "c")]),
        ("<user>a</user>\n<assistant>b</assistant>\n<user>c</user>\n", [("user", "a"), ("assistant", "b"), ("user", "c")]),
        ("<user>a </user> is text\n</user>", [("user", "a </user> is text")]),
        ("<user>\n<system>\nx\n</system>\n</user>", [("user", "<system>\nx\n</system>")]),
        ("<?xml version='1.0'?>\n<prompt>\n<user>a</user>\n</prompt>\n<!-- end -->", [("user", "a")]),
        ("<prompt a='b'><user>a</user></prompt>", [("user", "<prompt a='b'><user>a</user></prompt>")]),
        ("<prompt>\n\t<user>\n\ta\n\t</user>\n</prompt>", [("user", "\ta")]),
        ("<prompt>\n<task>a</task>\n</prompt>", [("user", "<prompt>\n<task>a</task>\n</prompt>")]),
        ("x\n  <user>\n  a\n  </user>", [("user", "x\n  <user>\n  a\n  </user>")]),
        ("<user>a</user> b", [("user", "<user>a</user> b")]),
        ("<user> is a tag", [("user", "<user> is a tag")]),
        ("<users>a</users>", [("user", "<users>a</users>")]),
        ("<user name='b'>\na\n</user>", [("user", "<user name='b'>\na\n</user>")]),
    ],
)  # fmt: skip
def test_the_messages_that_a_text_makes(text: str, expected: list[tuple[str, str]]) -> None:
    assert sections(text) == expected


def test_places_count_in_the_file() -> None:
    found, _ = read("<system>\r\n\r\n  Be brief.\r\n</system>\r\n<user>Hi\r\nyou</user>\r\n")
    spans = [astuple(span_of(section.text.at))[1:] for section in found]
    assert spans == [(3, 1, 3, 12), (5, 7, 6, 4)]


def test_a_long_prompt_of_tags_is_read_at_once() -> None:
    for text in ("<user>\n" * 20_000, "<user> x\n" * 20_000 + "<system>\na\n</system>\n"):
        _, report = read(text)
        assert [one.code for one in report.diagnostics] == ["bad-prompt-file"]


def test_the_prompt_of_a_directory(tmp_path: Path) -> None:
    assert prompt_file_of(tmp_path) is None
    for name in ("prompt.txt", "prompt.md", "prompt.xml"):
        (tmp_path / name).write_text("x")
        found = prompt_file_of(tmp_path)
        assert found is not None
        assert found.name == name
