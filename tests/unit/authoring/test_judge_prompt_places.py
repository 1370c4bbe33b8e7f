"""A mistake in the file of a judge prompt is placed in that file."""

from agentv.app.authored.validate import validate

SUITE = """\
target: echo
judge: echo
tests:
  - id: a
    input: hi
    assert:
      - {type: llm-rubric, value: polite, prompt: judge.md}
      - {type: closed-qa, value: polite, prompt: broken.md}
      - {type: llm-rubric, value: polite, prompt: "{{ rubrics }} {{ output }} {{ inline }}"}
"""


def test_a_name_and_a_syntax_error_are_placed_in_the_file_and_say_who_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.eval.yaml").write_text(SUITE)
    (tmp_path / "judge.md").write_text("{{ rubrics }}\n\n  Read {{ nope }} and {{ output }}\n")
    (tmp_path / "broken.md").write_text("{{ rubrics }}\n{% if %} {{ output }}\n")
    found = {
        one.code + one.message.partition(" ")[0]: (one.span.file.rpartition("/")[2], one.span.line, one.span.column)
        for one in validate(("a.eval.yaml",), {})
        if one.span is not None
    }
    assert found["undefined-variable'nope'"] == ("judge.md", 3, 8)
    assert found["undefined-variable'inline'"] == ("a.eval.yaml", 9, 51)
    assert found["bad-templatenot"] == ("broken.md", 2, 1)
    named = [one.notes for one in validate(("a.eval.yaml",), {}) if "nope" in one.message]
    assert named == [("named in a.eval.yaml:7",)]
