import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from agentv.errors import Diagnostic
from agentv.model.values.values import Span
from agentv.reports.diagnostics import (
    WIDEST,
    ExampleFile,
    Explanation,
    codes_data,
    diagnostics_data,
    render_codes,
    render_diagnostics,
    render_explanation,
    render_markdown,
)
from agentv.reports.text import cells

GOLD = Path(__file__).parent / "gold"

REFUND = """\
name: refunds
tests:
  - id: window
    input: May I return it?
    assert:
      - type: contians
        value: 30 days
      -\ttype: equals
      - contains: "日本語" # the house's motto
      - regex: "\x1b[2J"
"""
FILES = {
    "/repo/evals/refund.eval.yaml": REFUND,
    "/repo/evals/cases.jsonl": "{}\r\n"
    '{"id": "a", "input": "' + "x" * 300 + '", "asert": []' + ', "y": 1' * 40 + "}\r\n",
    "/other/shared.yaml": "a: 1\n" * 100_000 + "b: 2\n",
}


def at(line, column, end_column, *, file="/repo/evals/refund.eval.yaml", end_line=None):
    return Span(file, line, column, end_line or line, end_column)


FOUND = [
    Diagnostic(
        "unknown-assertion",
        "no assertion type 'contians'",
        at(6, 15, 23),
        hint="did you mean 'contains'?",
        notes=("searched .agentv/assertions in: evals/, .",),
    ),
    Diagnostic("bad-yaml", "a tab cannot indent", at(8, 8, 9)),
    Diagnostic("bad-yaml", "behind a tab", at(8, 9, 13)),
    Diagnostic("wide", "letters of two columns", at(9, 20, 23), severity="warning"),
    Diagnostic("behind-wide", "what stands behind them", at(9, 25, 44), severity="hint", hint="leave it"),
    Diagnostic("control", "a screen cannot be cleared \x1b[2J from here", at(10, 16, 22), hint="\x07no"),
    Diagnostic("several-lines", "from here to there", at(3, 5, 9, end_line=5), hint="write:\n  id: door"),
    Diagnostic("no-input", "at the end of a line", at(1, 14, 14)),
    Diagnostic("past-end", "behind the end of a line", at(1, 20, 25)),
    Diagnostic("no-line", "past the end of the file", at(99, 1, 2), hint="shown below"),
    Diagnostic(
        "unknown-key", "no key 'asert'", at(2, 326, 333, file="/repo/evals/cases.jsonl"), hint="did you mean 'assert'?"
    ),
    Diagnostic("long-span", "all of it", at(2, 1, 640, file="/repo/evals/cases.jsonl")),
    Diagnostic("far-down", "line one hundred thousand and one", at(100_001, 1, 2, file="/other/shared.yaml")),
    Diagnostic(
        "no-source",
        "the file is gone",
        at(1, 1, 2, file="/repo/gone.yaml"),
        hint="put it back",
        notes=("one\ntwo", "three"),
    ),
    Diagnostic("no-place", "no judge is set", hint="add this to .agentv/targets.yaml:\ndefaults:\n  judge: openai:gpt"),
]


@pytest.mark.parametrize(
    ("name", "here", "color"), [("diagnostics", "/repo", False), ("diagnostics-color", "/repo/evals", True)]
)
def test_gold(name, here, color):
    rendered = render_diagnostics(FOUND, FILES.get, here=here, color=color) + "\n"
    assert rendered == (GOLD / f"{name}.txt").read_text(encoding="utf-8")


def test_json_has_the_keys_of_section_14():
    rows = diagnostics_data(FOUND, here="/repo")
    assert len(rows) == len(FOUND)
    assert rows[0] == {
        "code": "no-place",
        "severity": "error",
        "file": None,
        "line": None,
        "column": None,
        "end_line": None,
        "end_column": None,
        "message": "no judge is set",
        "hint": "add this to .agentv/targets.yaml:\ndefaults:\n  judge: openai:gpt",
    }
    (unknown,) = [row for row in rows if row["code"] == "unknown-assertion"]
    assert unknown == {
        "code": "unknown-assertion",
        "severity": "error",
        "file": "evals/refund.eval.yaml",
        "line": 6,
        "column": 15,
        "end_line": 6,
        "end_column": 23,
        "message": "no assertion type 'contians'",
        "hint": "did you mean 'contains'?",
    }


def test_paths_are_shown_from_the_working_directory_unless_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = [Diagnostic("x", "y", at(1, 1, 2, file=str(tmp_path / "a.yaml")))]
    assert render_diagnostics(found, FILES.get).startswith("a.yaml:1:1: error[x]: y")
    assert diagnostics_data(found)[0]["file"] == "a.yaml"


texts = st.text(st.characters(exclude_characters="\r\n@"), max_size=200)


@given(texts, texts)
def test_carets_stand_under_what_they_mark(left, right):
    found = Diagnostic("x", "y", at(1, len(left) + 1, len(left) + 4, file="/f"))
    _, shown, carets, *_ = render_diagnostics([found], lambda _: f"{left}@@@{right}", here="/").split("\n")
    assert carets.endswith("^^^")
    assert cells(shown[: shown.index("@@@")]) == carets.index("^")
    assert shown.count("@") == carets.count("^") == 3
    assert cells(shown) <= 2 * WIDEST + len("    1 | ")


SAME = ExampleFile(".env", "A=1\n")
ONE = Explanation(
    "some-code",
    "It means this.",
    "It comes from that.",
    (SAME, ExampleFile("a.yaml", "a: 1\nb: 2\n")),
    "a.yaml:1:1: error[some-code]: no\n    1 | a: 1",
    "Write c.",
    (SAME, ExampleFile("a.yaml", "c: 1\n")),
)

TEXT = """\
some-code

It means this.

It comes from that.

Wrong:

    # .env
    A=1

    # a.yaml
    a: 1
    b: 2

Output:

    a.yaml:1:1: error[some-code]: no
        1 | a: 1

The fix:

Write c.

    # a.yaml
    c: 1"""


def test_an_explanation_as_text_shows_what_the_fix_changes():
    assert render_explanation(ONE) == TEXT


def test_without_an_example_words_are_left():
    one = Explanation("some-code", "It means this.", "It comes from that.", (), "", "Write c.", ())
    assert render_explanation(one) == "some-code\n\nIt means this.\n\nIt comes from that.\n\nThe fix:\n\nWrite c."
    assert render_markdown(one) == "It means this.\n\nIt comes from that.\n\n**Fix.** Write c."


def test_json_holds_everything():
    found = json.loads(json.dumps(to_builtins(ONE)))
    assert found["code"] == "some-code"
    assert found["wrong"][1] == {"path": "a.yaml", "text": "a: 1\nb: 2\n"}
    assert found.keys() == {"code", "meaning", "why", "wrong", "message", "fix", "right"}


def test_codes_are_listed_by_group_with_a_line_each():
    groups = {"In files": {"a": "One.", "longer": "Two."}, "In a run": {"b": "Three."}}
    assert render_codes(groups) == "In files\n  a       One.\n  longer  Two.\n\nIn a run\n  b       Three."
    assert codes_data(groups)[2] == {"code": "b", "group": "In a run", "meaning": "Three."}
