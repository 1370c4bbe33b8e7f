from doubles.loading import found_in

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


def test_a_comment_on_the_line_silences(tmp_path):
    assert found(tmp_path, CASE.format(behind=f" # agentv: ignore[{WARNS}]")) == []


def test_a_comment_above_silences(tmp_path):
    above = CASE.format(behind="").replace("    criteria", f"    # agentv: ignore[{WARNS}]\n    criteria")
    assert found(tmp_path, above) == []


def test_comments_above_may_be_several_lines(tmp_path):
    lines = f"    # agentv: ignore[{WARNS}]\n    # since a person reads them\n    criteria"
    assert found(tmp_path, CASE.format(behind="").replace("    criteria", lines)) == []


def test_a_comment_behind_something_is_not_about_the_next_line(tmp_path):
    before = CASE.format(behind="").replace("input: x", f"input: x # agentv: ignore[{WARNS}]")
    assert found(tmp_path, before) == [("unused-ignore", 4), (WARNS, 5)]


def test_a_text_is_no_comment(tmp_path):
    for quoted in (f'"is # agentv: ignore[{WARNS}]"', f"'is # agentv: ignore[{WARNS}]'"):
        assert found(tmp_path, CASE.format(behind="").replace("is kind", quoted)) == [(WARNS, 5)]


def test_an_error_is_not_silenced(tmp_path):
    text = CASE.format(behind="\n    asert: [] # agentv: ignore[unknown-key]")
    assert ("unknown-key", 6) in found(tmp_path, text)
    assert ("unused-ignore", 6) in found(tmp_path, text)


def test_a_comment_that_names_nothing_is_told(tmp_path):
    for written in ("ignore", "ignore[]", "ignore[ ]"):
        assert found(tmp_path, CASE.format(behind=f" # agentv: {written}")) == [(WARNS, 5), ("unused-ignore", 5)]
