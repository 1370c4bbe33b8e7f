from __future__ import annotations

import json

from agentv.reports.diagnostics.explanations import (
    ExampleFile,
    Explanation,
    codes_json,
    explanation_json,
    render_codes,
    render_explanation,
    render_markdown,
)

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
    found = json.loads(explanation_json(ONE))
    assert found["code"] == "some-code"
    assert found["wrong"][1] == {"path": "a.yaml", "text": "a: 1\nb: 2\n"}
    assert found.keys() == {"code", "meaning", "why", "wrong", "message", "fix", "right"}


def test_codes_are_listed_by_group_with_a_line_each():
    groups = {"In files": {"a": "One.", "longer": "Two."}, "In a run": {"b": "Three."}}
    assert render_codes(groups) == "In files\n  a       One.\n  longer  Two.\n\nIn a run\n  b       Three."
    assert json.loads(codes_json(groups))[2] == {"code": "b", "group": "In a run", "meaning": "Three."}
