import json
import re
from xml.etree import ElementTree as ET

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.errors import Diagnostic
from agentv.model.values.values import Span
from agentv.reports.annotations import render_sarif
from agentv.reports.diagnostics import ExampleFile, Explanation
from agentv.reports.junit import OUTPUT_SHOWN, JUnitRun, render_junit
from doubles.trials import finished, scored, trial
from doubles.views import RESULTS

# Jenkins' junit-10.xsd: element → (allowed children, allowed attributes, required attributes)
OUTCOME = (set(), {"type", "message"}, set())
SCHEMA = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": (
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package"}
        | {"file", "log", "url"},
        {"name", "tests", "failures", "errors"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, {"name", "value"}),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name", "time", "classname", "group"},
        {"name"},
    ),
    "failure": OUTCOME,
    "error": OUTCOME,
    "skipped": OUTCOME,
    "system-out": (set(), set(), set()),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def rendered(*results, not_run=0):
    return "".join(render_junit(results, JUnitRun("20261121T140322Z-7f3a", "/repo", not_run)))


def root_of(*results, not_run=0):
    root = ET.fromstring(rendered(*results, not_run=not_run).encode())
    check(root)
    return root


def check(element):
    children, attributes, required = SCHEMA[element.tag]
    assert {one.tag for one in element} <= children
    assert required <= set(element.attrib) <= attributes
    assert TIME.fullmatch(element.get("time", ""))
    assert element.tag in {"failure", "error", "skipped", "system-out"} or not (element.text or "").strip()
    for one in element:
        check(one)


def test_every_outcome_has_its_element():
    root = root_of(*RESULTS, finished("skipped", trial=trial("held back")))
    outcomes = [[one.tag for one in case if one.tag != "system-out"] for case in root.iter("testcase")]
    expected = {"passed": [], "failed": ["failure"], "errored": ["error"]}
    assert outcomes == [*(expected[one.status] for one in RESULTS), ["skipped"]]


def test_a_consumer_reads_what_was_meant():
    (suite,) = junitparser.JUnitXml.fromstring(rendered(*RESULTS).encode())
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("refunds", len(RESULTS), 4, 2, 0)
    assert suite.timestamp == "2026-11-21T14:03:22.123"
    assert suite.time == pytest.approx(0.0123456 * len(RESULTS), abs=1e-3)
    shown = {one.name: one.value for one in suite.properties()}
    assert shown == {"run_id": "20261121T140322Z-7f3a", "eval_path": "evals/refund.eval.yaml", "target": "gpt"}
    case = next(one for one in suite if one.name.startswith("window-closed"))
    (failure,) = case.result
    assert (failure.message, failure.type) == ("score 0.40, needs 0.80", "contains, llm-rubric")
    assert "evals/refund.eval.yaml:14: failed: contains '30 days'" in failure.text
    assert "No. You cannot return it after that." in failure.text
    assert case.system_out.splitlines() == ["target: gpt", "score: 0.4 (needs 0.8)", "answer:", "No."]
    slow = next(one for one in suite if one.name.startswith("slow"))
    assert (slow.result[0].type, slow.result[0].message) == ("timeout", "timeout: no answer after 3 s")


def test_what_was_not_run_is_no_green_report():
    root = root_of(finished(), not_run=3)
    (case,) = [one for one in root.iter("testcase") if one.find("error") is not None]
    assert case.get("name") == "3 trials not run"
    assert (root.get("tests"), root.get("errors")) == ("2", "1")
    assert [one.get("name") for one in root][-1] == "not run"


def test_a_long_answer_is_cut_and_says_so():
    root = root_of(finished(output="x" * (OUTPUT_SHOWN + 1234)))
    assert root.find(".//system-out").text.endswith("x\n[1,234 characters more]")


@given(st.text(), st.text(), st.text(min_size=1))
def test_no_text_breaks_the_document(output, evidence, name):
    hostile = "\x00\x07\x1b[2J]]><![CDATA[ \ufffe\uffff &amp; \ud800 \u202e" + output
    score = scored(False, text=name, evidence=evidence)
    subject = trial(name, target=name, suite=name, tags=(name,))
    root = root_of(finished("failed", trial=subject, output=hostile, scores=[score]))
    assert r"\x00\x07\x1b[2J]]><![CDATA[ \ufffe\uffff &amp; \ud800 \u202e" in root.find(".//system-out").text


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
