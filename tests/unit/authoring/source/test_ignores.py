from __future__ import annotations

from doubles.loading import found_in, outcome, repository

WARNS = "criteria-not-judged"
CASE = """\
target: echo
tests:
  - id: a
    input: x
    criteria: is kind{behind}
    assert: [contains: x]
"""


def found(folder, text, **request):
    return found_in(folder, text, for_run=False, **request)


def test_without_a_comment_it_is_said(tmp_path):
    assert found(tmp_path, CASE.format(behind="")) == [(WARNS, 5)]


def test_a_comment_on_the_line_silences(tmp_path):
    assert found(tmp_path, CASE.format(behind=f" # agentv: ignore[{WARNS}]")) == []


def test_a_comment_above_silences(tmp_path):
    above = CASE.format(behind="").replace("    criteria", f"    # agentv: ignore[{WARNS}]\n    criteria")
    assert found(tmp_path, above) == []


def test_comments_above_may_be_several_lines(tmp_path):
    lines = f"    # agentv: ignore[{WARNS}]\n    # since a person reads them\n    criteria"
    assert found(tmp_path, CASE.format(behind="").replace("    criteria", lines)) == []


def test_a_comment_two_lines_above_silences_nothing(tmp_path):
    far = CASE.format(behind="").replace("    input", f"    # agentv: ignore[{WARNS}]\n    input")
    assert found(tmp_path, far) == [("unused-ignore", 4), (WARNS, 6)]


def test_a_comment_behind_something_is_not_about_the_next_line(tmp_path):
    before = CASE.format(behind="").replace("input: x", f"input: x # agentv: ignore[{WARNS}]")
    assert found(tmp_path, before) == [("unused-ignore", 4), (WARNS, 5)]


def test_several_codes_may_be_named(tmp_path):
    text = CASE.replace("criteria", "expected_outcome").format(behind=f" # agentv: ignore[older-spelling, {WARNS}]")
    assert found(tmp_path, text) == []


def test_a_text_is_no_comment(tmp_path):
    for quoted in (f'"is # agentv: ignore[{WARNS}]"', f"'is # agentv: ignore[{WARNS}]'"):
        assert found(tmp_path, CASE.format(behind="").replace("is kind", quoted)) == [(WARNS, 5)]


def test_a_block_of_text_holds_no_comment_but_its_first_line_does(tmp_path):
    inside = CASE.format(behind="").replace("is kind", f"|\n      is kind # agentv: ignore[{WARNS}]")
    assert found(tmp_path, inside) == [(WARNS, 5)]
    behind = CASE.format(behind="").replace("is kind", f"|  # agentv: ignore[{WARNS}]\n      is kind")
    assert found(tmp_path, behind) == []


def test_an_error_is_not_silenced(tmp_path):
    text = CASE.format(behind="\n    asert: [] # agentv: ignore[unknown-key]")
    assert ("unknown-key", 6) in found(tmp_path, text)
    assert ("unused-ignore", 6) in found(tmp_path, text)


def test_a_code_that_does_not_exist_is_named_with_the_nearest(tmp_path):
    text = CASE.format(behind=" # agentv: ignore[criteria-not-jugded]")
    path = repository(tmp_path, {"suite.eval.yaml": text}) / "suite.eval.yaml"
    (unknown,) = (one for one in outcome(path, for_run=False)[1] if one.code == "unknown-code")
    assert unknown.hint == f"did you mean '{WARNS}'?"
    assert text.splitlines()[4][unknown.span.column - 1 : unknown.span.end_column - 1] == "criteria-not-jugded"


def test_a_comment_that_names_nothing_is_told(tmp_path):
    for written in ("ignore", "ignore[]", "ignore[ ]"):
        assert found(tmp_path, CASE.format(behind=f" # agentv: {written}")) == [(WARNS, 5), ("unused-ignore", 5)]


def test_a_run_is_silenced_too_and_says_nothing_of_vain_comments(tmp_path):
    text = CASE.format(behind=f" # agentv: ignore[{WARNS}, older-spelling]")
    assert found_in(tmp_path, text) == []
    assert found(tmp_path, text) == [("unused-ignore", 5)]


def test_a_template_is_silenced_and_its_vain_comments_are_left_alone(tmp_path):
    entry = "  - type: llm-rubric\n    value: kind\n    judge_target: echo # agentv: ignore[older-spelling]\n"
    template = {".agentv/templates/t.yaml": f"assert:\n{entry}  - contains: x # agentv: ignore[older-spelling]\n"}
    text = "target: 'mock:a'\njudge: 'mock:b'\ntests:\n  - {id: a, input: x, assert: [include: t]}\n"
    assert found(tmp_path, text, files=template) == []
    told = {
        ".agentv/templates/t.yaml": template[".agentv/templates/t.yaml"].replace(
            " # agentv: ignore[older-spelling]", ""
        )
    }
    assert found(tmp_path, text, files=told) == [("older-spelling", 4)]


def test_the_comments_of_a_sidecar_count(tmp_path):
    files = {
        "s.jsonl": '{"id": "a", "input": "x", "assert": ["contains: x"], "criteria": "c"}\n',
        "s.yaml": "judge: echo\ntarget: 'mock:x' # agentv: ignore[no-target]\n",
    }
    path = repository(tmp_path, files) / "s.jsonl"
    assert [(one.code, one.span.line) for one in outcome(path, for_run=False)[1]] == [("unused-ignore", 2)]


def test_json_lines_have_no_comments(tmp_path):
    line = f'{{"id": "a", "input": "# agentv: ignore[{WARNS}]", "assert": [{{"contains": "x"}}], "criteria": "c"}}\n'
    path = repository(tmp_path, {"s.jsonl": line, "s.yaml": "target: echo\n"}) / "s.jsonl"
    assert [one.code for one in outcome(path, for_run=False)[1]] == [WARNS]
