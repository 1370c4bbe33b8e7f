"""The prompts of a suite. Their forms and errors are in `tests/cases/*/prompt*`."""

import pytest
from msgspec.structs import astuple

from agentv.authoring.cases.prompts import Section, sections_of
from agentv.authoring.prompt_library import prompt_file_of
from agentv.authoring.source.nodes import span_of
from agentv.authoring.source.report import Report
from agentv.model.values.message import prompt_text
from doubles.loading import suite_of

CHAT = "system:\nBe brief.\n\nuser:\nSay {{ text }}"
CASES = "tests:\n  - {id: a, vars: {text: x}, assert: [{contains: x}]}\n"


def asked(folder, prompts: str, files=None, cases=CASES) -> list[tuple[str, str]]:
    suite = suite_of(folder, f"target: echo\nprompts: {prompts}\n{cases}", files or {})
    return [(case.prompt_id, prompt_text(case.input)) for case in suite.cases]


@pytest.mark.parametrize(
    ("prompts", "found"),
    [
        ("'Say {{ text }}'", [("prompt-1", "Say x")]),
        ("{id: brief, prompt: '{{ text }}'}", [("brief", "x")]),
        ("a.txt", [("a.txt", "A x")]),
        ("file://sub/*.md", [("sub/b.md", "B x"), ("sub/c.md", "C x")]),
        ("[/sub/b.md]", [("sub/b.md", "B x")]),
        ("[./sub/b.md]", [("sub/b.md", "B x")]),
        ("['a.txt is a file, and this is not']", [("prompt-1", "a.txt is a file, and this is not")]),
        ("[e.g]", [("prompt-1", "e.g")]),
        ("[{label: all, prompt: 'sub/*.md'}]", [("all#1", "B x"), ("all#2", "C x")]),
    ],
)
def test_what_is_text_and_what_is_a_place(tmp_path, prompts, found):
    files = {"a.txt": "A {{ text }}\n", "sub/b.md": "B {{ text }}", "sub/c.md": "\n\nC {{ text }}\n\n"}
    assert asked(tmp_path, prompts, files) == found


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("'Say {{ text }}'", "Say {{ text }}"),
        ("a.txt", "A {{ text }}"),
        ("[{role: system, content: Be brief.}, {role: user, content: 'Say {{ text }}'}]", CHAT),
        ("chat.json", CHAT),
        ("{file: sections.md, sections: true}", CHAT),
        ("[{role: user, content: [{type: text, value: hi}]}]", 'user:\n[{"type": "text", "value": "hi"}]'),
    ],
)
def test_the_text_of_a_prompt_has_its_placeholders(tmp_path, prompt, text):
    files = {
        "a.txt": "A {{ text }}\n",
        "chat.json": '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say {{ text }}"}]',
        "sections.md": "<system>Be brief.</system>\n<user>Say {{ text }}</user>\n",
    }
    suite = suite_of(tmp_path, f"target: echo\nprompts: [{prompt}]\n{CASES}", files)
    assert list(suite.prompt_texts.values()) == [text]


def test_the_hash_of_a_case_knows_the_text_of_its_prompt_and_not_where_it_stands(tmp_path):
    cases = [
        suite_of(tmp_path / str(number), f"target: echo\nprompts: {prompts}\n{CASES}", {"p.txt": "Say {{ text }}"})
        for number, prompts in enumerate(["['Say {{ text }}']", "[p.txt]", "['Say  {{ text }}']"])
    ]
    inline, file, other = (next(iter(suite.cases)).sha256 for suite in cases)
    assert inline == file != other


def test_the_files_of_prompts_are_known_to_the_run(tmp_path):
    suite = suite_of(tmp_path, f"target: echo\nprompts: [p.txt]\n{CASES}", {"p.txt": "{{ text }}"})
    assert str(tmp_path / "p.txt") in suite.files


def test_a_function_is_called_once_for_the_same_variables(tmp_path):
    code = "calls = []\ndef f(context):\n    calls.append(1)\n    return f'a {len(calls)} {context}'\n"
    cases = "tests: [{id: a, vars: {x: 1}}, {id: b, vars: {x: 1}}, {id: c, vars: {x: 2}}]\n"
    suite = suite_of(tmp_path, f"target: echo\nprompts: [p.py:f]\nassert: [contains: a]\n{cases}", {"p.py": code})
    assert [case.input[0].text.split()[1] for case in suite.cases] == ["1", "1", "2"]
    assert suite.generators == ("p.py:f",)


def sectioned(text: str) -> tuple[tuple[Section, ...], Report]:
    report = Report()
    return sections_of("/prompt.md", text, report), report


def sections(text: str) -> list[tuple[str, str]]:
    found, report = sectioned(text)
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
def test_the_messages_that_a_text_makes(text, expected):
    assert sections(text) == expected


def test_places_count_in_the_file():
    found, _ = sectioned("<system>\r\n\r\n  Be brief.\r\n</system>\r\n<user>Hi\r\nyou</user>\r\n")
    assert [astuple(span_of(section.text.at))[1:] for section in found] == [(3, 1, 3, 12), (5, 7, 6, 4)]


def test_only_line_ends_end_the_lines_of_a_prompt(tmp_path):
    suite = suite_of(tmp_path, f"target: echo\nprompts: [p.txt]\n{CASES}", {"p.txt": "a\u2028b\fc {{ text }}"})
    assert "a\u2028b\fc" in suite.cases[0].input[0].content


def test_a_long_prompt_of_tags_is_read_at_once():
    for text in ("<user>\n" * 20_000, "<user> x\n" * 20_000 + "<system>\na\n</system>\n"):
        _, report = sectioned(text)
        assert [one.code for one in report.diagnostics] == ["bad-prompt-file"]


def test_the_prompt_of_a_directory(tmp_path):
    assert prompt_file_of(tmp_path) is None
    for name in ("prompt.txt", "prompt.md", "prompt.xml"):
        (tmp_path / name).write_text("x")
        assert prompt_file_of(tmp_path).name == name
