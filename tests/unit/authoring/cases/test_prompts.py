"""The prompts of a suite. The forms that they take and what is wrong with them are in `tests/cases/*/prompt*`."""

import pytest

from agentv.model.values.message import prompt_text
from doubles.loading import found_in, outcome, repository, suite_of

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


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("one\n---\ntwo\n", ["one", "two"]),
        ("---\none\n---\n\n---\ntwo\n---", ["one", "two"]),
        ("one\n----\ntwo --- three", ["one\n----\ntwo --- three"]),
        ("one\r\n --- \r\ntwo", ["one", "two"]),
    ],
)
def test_a_text_file_may_hold_several_prompts(tmp_path, text, parts):
    assert [said for _, said in asked(tmp_path, "p.txt", {"p.txt": text})] == parts


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


def test_a_long_file_is_read_again_with_its_prompts(tmp_path, monkeypatch):
    monkeypatch.setattr("agentv.authoring.cases.streamed.HELD", 3)
    lines = "".join(f'{{"id": "{n}", "vars": {{"text": "x{n}"}}, "assert": [{{"contains": "x"}}]}}\n' for n in range(4))
    files = {"s.jsonl": lines, "s.yaml": "target: echo\nprompts: ['Say {{ text }}', 'Write {{ text }}']\n"}
    ((suite,), _) = outcome(repository(tmp_path, files) / "s.jsonl")
    assert len(suite.cases) == 8
    for _ in range(2):
        assert [(case.id, prompt_text(case.input)) for case in suite.cases][-2:] == [("3", "Say x3"), ("3", "Write x3")]


def test_a_case_that_names_two_prompts_of_the_suite_is_told_what_is_wrong_with_each_once(tmp_path):
    text = "target: echo\nprompts: ['{{ a }}', '{{ b }}']\ntests:\n" + "".join(
        f"  - {{id: c{number}, assert: [{{contains: x}}]}}\n" for number in range(3)
    )
    assert found_in(tmp_path, text) == [("undefined-variable", 2), ("undefined-variable", 2)]
