"""One case, with what its suite adds (SPEC sections 4 and 7.4). Merging and skipping are in `tests/cases/valid`."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv.authoring.fields.tags import read_tags
from doubles.loading import case_of, found_in, parsed, reading_of, suite_of

HEAD = "target: echo\njudge: mock:yes\n"


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("smoke", ("smoke",)),
        ("7", ("7",)),
        ("[a, 1, true]", ("a", "1", "true")),
        ("{area: refunds, level: 1.50}", ("area:refunds", "level:1.50")),
        ("", ()),
        ("[]", ()),
    ],
)
def test_tags(tmp_path, text, tags):
    reading = reading_of(tmp_path)
    assert read_tags(parsed(f"[{text}]").items[0] if text else None, reading) == tags
    assert not reading.report.count


@pytest.mark.parametrize("text", ["[[a]]", "[~]", "{a: [b]}"])
def test_what_is_no_tag(tmp_path, text):
    reading = reading_of(tmp_path)
    assert read_tags(parsed(text), reading) == ()
    assert [one.code for one in reading.report.diagnostics] == ["bad-value"]


def test_all_that_is_wrong_with_a_case_is_told_at_once(tmp_path):
    text = f"""{HEAD}tests:
  - id: a
    threshold: 2
    input: [{{role: usr, content: x}}]
    expected_output: [x]
    tags: [[a]]
    vars: [x]
    criteria: [x]
    target: nobody
    assert:
      - contains: ''
"""
    assert found_in(tmp_path, text) == [
        ("bad-value", 5),
        ("bad-message", 6),
        ("bad-message", 7),
        ("bad-value", 8),
        ("bad-value", 9),
        ("bad-value", 10),
        ("unknown-target", 11),
        ("missing-value", 13),
    ]


def test_a_misspelt_key_is_not_also_missing(tmp_path):
    text = f"{HEAD}tests:\n  - idd: a\n    inputs: x\n    asert: [{{contains: x}}]\n"
    assert {code for code, _ in found_in(tmp_path, text)} == {"unknown-key"}


def test_a_case_that_leans_on_a_broken_default_is_not_also_said_to_check_nothing(tmp_path):
    text = f"{HEAD}assert: [{{contians: x}}]\ntests:\n  - {{id: a, input: x}}\n  - {{id: b, input: x}}\n"
    assert found_in(tmp_path, text) == [("unknown-assertion", 3)]


def test_defaults_that_no_variable_changes_are_read_once(tmp_path):
    text = f"{HEAD}assert: [{{contains: x}}]\ntests:\n  - {{id: a, input: x}}\n  - {{id: b, input: '{{{{ v }}}}', vars: {{v: x}}}}\n"
    first, second = suite_of(tmp_path, text).cases
    assert first.assertions[0] is second.assertions[0]


def test_defaults_with_placeholders_are_read_for_each_case(tmp_path):
    text = f"{HEAD}assert: [{{contains: '{{{{ v }}}}'}}]\ntests:\n"
    text += "".join(f"  - {{id: {v}, input: x, vars: {{v: {v}}}}}\n" for v in "ab")
    assert [case.assertions[0].assertion.value for case in suite_of(tmp_path, text).cases] == ["a", "b"]


def test_a_default_that_lacks_a_variable_is_told_for_the_case_that_lacks_it(tmp_path):
    text = f"{HEAD}assert: [{{contains: '{{{{ v }}}}'}}]\ntests:\n  - {{id: a, input: x, vars: {{v: 1}}}}\n  - {{id: b, input: x}}\n"
    assert found_in(tmp_path, text) == [("undefined-variable", 3)]


def test_ids_descriptions_and_metadata_are_not_rendered(tmp_path):
    case = case_of(
        tmp_path,
        "id: '{{ a }}'\ndescription: '{{ b }}'\nmetadata: {c: '{{ c }}'}\ninput: '{{ d }}'\nvars: {d: x}\nassert: [{contains: x}]",
    )
    assert (case.id, case.description, case.metadata) == ("{{ a }}", "{{ b }}", {"c": "{{ c }}"})


def test_the_default_input_is_put_before_every_cases(tmp_path):
    text = f"{HEAD}input: Be kind.\ntests:\n  - {{id: a, input: Hello, assert: [{{contains: x}}]}}\n"
    (case,) = suite_of(tmp_path, text).cases
    assert [message.text for message in case.input] == ["Be kind.", "Hello"]


def test_files_are_attached_to_text_alone(tmp_path):
    text = f"""{HEAD}input_files: a.md
assert: [{{contains: x}}]
tests:
  - {{id: text, input: Hello}}
  - {{id: messages, input: [{{role: user, content: Hello}}]}}
"""
    text_case, messages = suite_of(tmp_path, text, {"a.md": "attached"}).cases
    assert "attached" in text_case.input[0].text
    assert messages.input[0].text == "Hello"


def digest(folder: Path, text: str, files: dict[str, str] | None = None) -> str:
    return case_of(folder, text, files or {}).sha256


CASE = "id: a\ninput: Hello\nvars: {v: 1}\nassert: [{contains: x}]"


@pytest.mark.parametrize(
    "other",
    [
        CASE.replace("id: a", "id: b"),
        CASE.replace("Hello", "Bye"),
        CASE.replace("v: 1", "v: 2"),
        CASE.replace("contains: x", "contains: y"),
        CASE.replace("contains: x", "icontains: x"),
        CASE.replace("contains: x", "not-contains: x"),
        CASE.replace("{contains: x}", "{contains: x, weight: 2}"),
        CASE.replace("{contains: x}", "{assert-set: [{contains: x}]}"),
        CASE + "\nthreshold: 0.5",
        CASE + "\nexpected_output: Hi",
        CASE + "\ncriteria: x\nmetadata: {a: 1}",
    ],
)
def test_the_digest_tells_cases_apart(tmp_path, other):
    assert digest(tmp_path / "a", CASE) != digest(tmp_path / "b", other)


def test_the_digest_of_nested_sets_sees_what_is_inside(tmp_path):
    inner = "id: a\ninput: Hello\nassert: [{assert-set: [{assert-set: [{contains: %s}]}]}]"
    assert digest(tmp_path / "a", inner % "x") != digest(tmp_path / "b", inner % "y")


def test_the_digest_is_the_same_wherever_the_repository_lies(tmp_path):
    text = """id: a
input: [{role: user, content: [{type: file, value: ./a.md}]}]
assert:
  - {type: llm-rubric, prompt: ./judge.md}
  - {type: script, command: [cat]}
  - {type: python, value: 'grader.py:f'}
  - {type: own}
description: only shown"""
    files = {
        "a.md": "attached",
        "judge.md": "Judge {{ output }}",
        "grader.py": "def f(output): return True\n",
        ".agentv/assertions/own.py": "def assertion(ctx): return True\n",
    }
    here, there = digest(tmp_path / "here", text, files), digest(tmp_path / "else" / "where", text, files)
    assert here == there
    moved = text.replace("only shown", "shown otherwise").replace("\n", "\n\n")
    assert digest(tmp_path / "third", moved, files) == here
    assert digest(tmp_path / "fourth", text, {**files, "a.md": "changed"}) != here
    assert digest(tmp_path / "fifth", text, {**files, "judge.md": "Judge: {{ output }}"}) != here


@pytest.mark.parametrize(
    ("entry", "judged"),
    [
        ("{contains: x}", False),
        ("{type: llm-rubric, value: x}", True),
        ("Is kind", True),
        ("{python: 'True'}", True),
        ("{script: 'true'}", True),
        ("{type: own}", True),
        ("{assert-set: [{contains: x}]}", False),
        ("{assert-set: [{contains: x}, Is kind]}", True),
    ],
)
def test_criteria_that_nothing_judges_are_a_warning(tmp_path, entry, judged):
    text = f"{HEAD}tests:\n  - id: a\n    input: x\n    criteria: y\n    assert: [{entry}]\n"
    found = found_in(tmp_path, text, {".agentv/assertions/own.py": "def assertion(ctx): return True\n"})
    assert found == ([] if judged else [("criteria-not-judged", 6)])


def test_criteria_that_are_empty_once_rendered_check_nothing(tmp_path):
    text = f"{HEAD}tests:\n  - {{id: a, input: x, vars: {{c: ''}}, criteria: '{{{{ c }}}}'}}\n"
    assert found_in(tmp_path, text) == [("checks-nothing", 4)]
