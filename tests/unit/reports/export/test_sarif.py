from __future__ import annotations

import json

from agentv.errors import Diagnostic
from agentv.model.values.span import Span
from agentv.reports.diagnostics.explanations import ExampleFile, Explanation
from agentv.reports.export.sarif import render_sarif

RULE = Explanation("known", "It is known.", "Why.", (ExampleFile("a.yaml", "a: 1\n"),), "a.yaml:1", "Write b.", ())


def log(*found: Diagnostic):
    return json.loads(render_sarif(found, {"known": RULE}, root="/repo", version="1.2.3"))


def diagnostic(code="known", span=None, severity="error", **fields):
    return Diagnostic(code, "what is wrong", span, severity, **fields)


def test_a_result_stands_at_its_place():
    span = Span("/repo/evals/a.eval.yaml", 3, 5, 4, 9)
    (result,) = log(diagnostic(span=span, hint="mend it", notes=("tried x",)))["runs"][0]["results"]
    assert result == {
        "ruleId": "known",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "what is wrong\nmend it\ntried x"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "evals/a.eval.yaml", "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 3, "startColumn": 5, "endLine": 4, "endColumn": 9},
                }
            }
        ],
    }


def address(path: str):
    (result,) = log(diagnostic(span=Span(path, 1, 1, 1, 2)))["runs"][0]["results"]
    return result["locations"][0]["physicalLocation"]["artifactLocation"]


def test_addresses_are_percent_encoded():
    assert address("/repo/a b/ä#?:%.yaml")["uri"] == "a%20b/%C3%A4%23%3F%3A%25.yaml"


def test_a_file_outside_the_repository_has_an_absolute_address():
    assert address("/repository/a b.yaml") == {"uri": "file:///repository/a%20b.yaml"}


def test_nothing_in_a_message_steers_a_terminal():
    (result,) = log(Diagnostic("c", "\x1b[2J\u202e"))["runs"][0]["results"]
    assert result["message"]["text"] == r"\x1b[2J\u202e"
