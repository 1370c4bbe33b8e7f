"""Places of evidence in an answer: what the assertion matched, or none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agentv.assertions.text.matching import (
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    IContains,
    IContainsAny,
    Regex,
    StartsWith,
)
from agentv.extensions.view.pages.evidence_spans import EvidenceSpans
from agentv.model.run.grade import AskedJudge, Check, Grade
from agentv.model.run.trial import Score
from doubles.trials import entry


def marked(kind, assertion, output, *, negate=False, shown=10**6, clock=lambda: 0.0):
    """The texts that are marked, cut out as a browser does."""
    grade = assertion.grade(SimpleNamespace(output=output))
    grade = grade.negated() if negate else grade
    score = Score(entry(kind, "", negate=negate), grade, 0.0)
    spans = EvidenceSpans(output, shown, clock)
    units = output.encode("utf-16-le", "surrogatepass")
    found = [span for check in grade.checks for span in spans.of(score, check)]
    return [units[2 * begin : 2 * end].decode("utf-16-le", "surrogatepass") for begin, end in found]


@pytest.mark.parametrize(
    ("kind", "assertion", "output", "found"),
    [
        ("contains", Contains("30 days"), "🎉 within 30 days 🎉", ["30 days"]),
        ("contains", Contains("tent"), "within 30 days", []),
        ("contains", Contains("é\ud800"), "aé\ud800b", []),  # a check quotes half a pair as a question mark
        ("contains", Contains("day"), "\ud800 🎉 day", ["day"]),
        ("contains", Contains("day"), "one day, two day, three", ["day", "day"]),
        ("contains", Contains(" cat"), "concat cat", []),  # the check shows 'cat': which of them it found is not known
        ("contains", Contains("a  b"), "a b, and a  b", []),
        ("contains", Contains("it's 'so'"), "well, it's 'so'.", ["it's 'so'"]),
        ("contains", Contains("x" * 5000), "x" * 5000, []),
        ("icontains", IContains("STRASSE"), "Die Strasse", ["Strasse"]),
        ("icontains", IContains("strasse"), "Die Straße", []),  # folding changes the length
        ("contains-all", ContainsAll(("a", "tent", "c")), "a b c", ["a", "c"]),
        ("contains-any", ContainsAny(("60 days", "30 days")), "return it within 30 days", ["30 days"]),
        ("contains-any", ContainsAny(("30 days", "return")), "return it within 30 days", []),  # either may be meant
        ("contains-any", ContainsAny(("a', 'b",)), "a', 'b", []),
        ("contains-any", ContainsAny((" cat", "dog")), "concat " + "." * 90 + " a dog here " + "." * 90, ["dog"]),
        ("contains-any", ContainsAny(("w", "v", "z", "hidden")), "." * 90 + "🎉 hidden" + "." * 90, ["hidden"]),
        ("contains-any", ContainsAny(("w", "v", "z", "hidden")), "hidden", []),
        ("icontains-any", IContainsAny(("DAYS", "hours")), "x" * 50 + " Days", ["Days"]),
        ("icontains-any", IContainsAny(("strasse",)), "Die Straße", []),
        ("contains-any", ContainsAny(("x" * 300,)), "y" * 90 + "x" * 300 + "y" * 90, []),
        ("starts-with", StartsWith("Yes"), "  Yes, Yes", ["Yes"]),
        ("ends-with", EndsWith("end", trim=True), "end to end \n", ["end"]),
        ("regex", Regex(r"\d+ days?"), "🎉 in 30 days or 14 days", ["30 days"]),
        ("regex", Regex("DAYS|hours", flags="i"), "30 days, 2 hours", []),  # with and without flags it differs
        ("regex", Regex("x*"), "abc", []),
        ("is-json", Contains("a"), "a", []),  # a text alone is no proof of what was asked
    ],
)
def test_what_was_matched_is_marked_or_nothing(kind, assertion, output, found):
    assert marked(kind, assertion, output) == found


def test_the_opposite_is_marked_where_it_fails():
    assert marked("contains", Contains("days"), "30 days", negate=True) == ["days"]
    assert marked("contains", Contains("tent"), "30 days", negate=True) == []


def test_the_value_of_a_field_is_marked_in_an_answer_that_is_json():
    def found(text, output):
        check = Check(text, False, "found 13")
        score = Score(entry("field-accuracy", ""), Grade(0.0, False, (check,)), 0.0)
        units = output.encode("utf-16-le")
        return [units[2 * a : 2 * b].decode("utf-16-le") for a, b in EvidenceSpans(output, 10**6).of(score, check)]

    output = ' {"🎉": 13, "a": {"b": [13, {"c d": "13 is"}]}, "e": 13, "e": 13} '
    for path, value in (("a.b[0]", "13"), ("$.a.b.0", "13"), ("a.b[1]['c d']", '"13 is"'), ("['🎉']", "13")):
        assert found(f"{path} is 12", output) == [value], path
    nothing = ("e", "a.b[-1]", "a.b[2]", "a.b.c", "x", "$.*")  # a key that stands twice; from the end; nothing there
    assert [found(f"{path} is 12", output) for path in nothing] == [[]] * len(nothing)
    assert found("a is b is 1", '{"a": 1}') == ["1"]
    for output in ('[{"a": 1}]', 'The answer: {"a": 1}', '{"a": 1', "[" * 100_000, ""):
        assert found("a is 1", output) == [], output[:20]


def test_evidence_tells_which_of_several_was_found():
    output = "cat " + "." * 3000 + " cat " + "." * 3000
    check = Check("contains 'cat'", True, "…" + output[2995:3015] + "…")
    score = Score(entry("contains", ""), Grade(1.0, True, (check,)), 0.0)
    assert EvidenceSpans(output, 10**6).of(score, check) == [(3005, 3008)]


def test_a_judge_is_quoted_word_for_word_and_from_one_place():
    judge = AskedJudge("j", "m", "r", "1", "2")

    def found(evidence, output):
        check = Check("Is polite", True, evidence)
        score = Score(entry("rubric", ""), Grade(1.0, True, (check,), asked_judge=judge), 0.0)
        return EvidenceSpans(output, 10**6).of(score, check)

    assert found('"within 30 days"', "return it within 30 days.") == [(10, 24)]
    assert found("within 30 days", "within 30 days, within 30 days") == []
    assert found("it", "return it") == []
    assert found("the answer names 30 days", "within 30 days") == []


def test_a_pattern_that_runs_away_and_an_answer_of_10_mb_take_no_time():
    slow = Score(entry("regex", ""), Grade.of(True, "matches '(a|aa)+$'"), 0.0)
    assert EvidenceSpans("a" * 60 + "!", 10**6).of(slow, slow.grade.checks[0]) == []
    spent = iter(range(1000))
    assert marked("regex", Regex("day"), "30 days", clock=lambda: float(next(spent))) == [], "no time is left"
    assert marked("contains", Contains("end"), "x" * 10_000_000 + "end") == [], "it lies behind what a page holds"
    assert marked("contains", Contains("begin"), "begin" + "x" * 10_000_000) == ["begin"]
    assert marked("contains", Contains("x"), "x" * 10_000_000) == [], "it is everywhere"
