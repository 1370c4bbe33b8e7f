"""What is printed under GitHub Actions, by the installed command: hostile names, answers and files make no command."""

import json

import pytest

ENV = {"GITHUB_ACTIONS": "true", "CI": "true"}
ID = "##[error]forged ::set-output name=a::b"
ANSWER = "first ##[group]x\n  ::error file=a::forged\r::stop-commands::t\n\t ::add-mask::a\u2028::warning::w"
SUITE = {
    "name": "##[section]s",
    "targets": [{"name": "##[debug]t", "provider": "mock", "response": ANSWER}],
    "tests": [
        {"id": ID, "input": ANSWER, "assert": [{"contains": "::x ##[endgroup]"}, {"equals": "\n::debug::y"}]},
        {"id": "two", "input": "a", "assert": [{"contains": "first"}]},
    ],
}
COMMANDS = (
    ("eval", "a.eval.yaml"),
    ("eval", "a.eval.yaml", "--list"),
    ("eval", "a.eval.yaml", "--json"),
    ("eval", "wrong.eval.yaml"),
    ("validate", "."),
    ("validate", "wrong.eval.yaml", "--json"),
    ("results", "show", "last"),
    ("results", "show", "last", "--json"),
    ("results", "list"),
    ("results", "report", "--md", "-"),
    ("results", "report", "--junit", "-"),
    ("compare", "last", "last"),
    ("targets",),
    ("explain", "##[error]x"),
    ("eval", "::error::no such file"),
)


@pytest.fixture
def hostile(project):
    project.write("a.eval.yaml", json.dumps(SUITE, indent=2))
    wrong = "target: echo\ntests:\n  - id: a\n    input: b\n    assert:\n  ::error::x: ##[group]\n"
    project.write("wrong.eval.yaml", wrong)
    project.write("agent.py", "print('::error::from code ##[x]')\n")
    return project


def commands_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


def test_no_line_of_any_command_is_obeyed(hostile):
    for words in COMMANDS:
        ended = hostile.run(*words, env=ENV)
        assert commands_in(ended.stdout + ended.stderr) == [], words
    shown = json.loads(hostile.run("results", "show", "last", "--json", env=ENV).stdout)
    assert json.dumps(ANSWER) in json.dumps(shown)  # it was answered, and is kept as it was


def test_annotations_are_commands_and_nothing_else_is(hostile):
    ended = hostile.run("eval", "a.eval.yaml", "--format", "github", env=ENV)
    obeyed = commands_in(ended.stdout)
    assert obeyed
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in obeyed)
    assert commands_in(ended.stderr) == []
