import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.data import (
    DEFAULT_FORMATS,
    Field,
    FieldAccuracy,
    FormatError,
    JsonMatch,
    date_pattern,
    read_date,
    within,
)
from agentv.assertions.evidence import LIMIT
from agentv.model.values.message import Message, TextBlock
from agentv.registry.fields import LoadedJson
from doubles.nested_grading import answer, graded

INVOICE = {
    "number": "INV-7",
    "date": "15-JAN-2025",
    "total": 1889,
    "supplier": {"name": "Acme Shipping Company"},
    "lines": [{"text": "Freight", "amount": 10.5}, {"text": "Fee", "amount": 3}],
}


# comparing fields


@pytest.mark.parametrize(
    ("options", "expected", "found", "right"),
    [
        ({}, "a", "a", True),
        ({}, "a", "A", False),
        ({}, 1, 1.0, True),
        ({}, 1, True, False),
        ({}, {"a": [1]}, {"a": [1], "b": 2}, False),
        ({"match": "numeric_tolerance"}, 1889, 1889.5, False),
        ({"match": "numeric_tolerance", "tolerance": 0.5}, 1889, 1889.5, True),
        ({"match": "numeric_tolerance", "tolerance": 0.1}, 1.0, 1.1, True),
        ({"match": "numeric_tolerance", "tolerance": 0.1}, 1.0, 1.10001, False),
        ({"match": "numeric_tolerance", "tolerance": 0.1}, 1.0, "1.05", True),
        ({"match": "numeric_tolerance", "tolerance": 100}, 1.0, "1.05 EUR", False),
        ({"match": "numeric_tolerance", "tolerance": 100}, 1.0, "1e99999999999", False),
        ({"match": "numeric_tolerance", "tolerance": 0.01, "relative": True}, 200, 202, True),
        ({"match": "numeric_tolerance", "tolerance": 0.01, "relative": True}, 200, 202.1, False),
        ({"match": "numeric_tolerance", "tolerance": 0.01, "relative": True}, 0, 0.01, True),
        ({"match": "date"}, "2025-01-15", "15-JAN-2025", True),
        ({"match": "date"}, "2025-01-15", "01/15/2025", True),
        ({"match": "date"}, "2025-01-15", "2025-01-15T23:30:00Z", True),
        ({"match": "date"}, "2025-03-04", "03/04/2025", True),
        ({"match": "date"}, "2025-03-04", "04/03/2025", False),
        ({"match": "date", "formats": ("DD/MM/YYYY",)}, "2025-03-04", "04/03/2025", True),
        ({"match": "date", "formats": ("DD/MM/YYYY",)}, "2025-03-04", "03/04/2025", False),
        ({"match": "date"}, "2025-01-15", "soon", False),
        ({"match": "date"}, "2025-01-15", 20250115, False),
        ({"match": "fuzzy"}, "Acme Shipping Company", "ACME  Shiping Company", True),
        ({"match": "fuzzy"}, "Acme Shipping Company", "Apex Trading Limited", False),
        ({"match": "fuzzy", "threshold": 1.0}, "Acme", "acme", True),
        ({"match": "fuzzy"}, "Acme", 4, False),
    ],
    ids=repr,
)
def test_ways_of_matching(options, expected, found, right):
    grade = graded(
        FieldAccuracy((Field("it", **options),)), answer(json.dumps({"it": found}), reference={"it": expected})
    )
    assert grade.error is None
    assert (grade.passed, grade.score) == (right, float(right))
    assert len(grade.checks[0].evidence) <= LIMIT


# paths


@pytest.mark.parametrize("path", ["lines[1].amount", "lines.1.amount", "$.lines[1].amount"])
def test_paths_lead_into_lists(path):
    reply = json.dumps({"lines": [{}, {"amount": 3}]})
    assert graded(FieldAccuracy((Field(path),)), answer(reply, reference=INVOICE)).passed
    assert not graded(FieldAccuracy((Field(path),)), answer('{"lines": []}', reference=INVOICE)).passed


# missing values


def test_nothing_compared_is_no_pass():
    grade = graded(FieldAccuracy((Field("number", required=False),)), answer("{}", reference=INVOICE))
    assert (grade.score, grade.passed, grade.error) == (0.0, False, None)


def test_a_required_field_that_the_reference_lacks_cannot_be_judged():
    grade = graded(FieldAccuracy((Field("colour"),)), answer('{"colour": "red"}', reference=INVOICE))
    assert grade.error.code == "no-reference"


@pytest.mark.parametrize("assertion", [FieldAccuracy((Field("total"),)), JsonMatch()])
def test_without_a_reference_there_is_no_verdict(assertion):
    assert graded(assertion, answer('{"total": 1}')).error.code == "no-reference"
    assert graded(assertion, answer('{"total": 1}', reference="no JSON")).error.code == "no-reference"


@pytest.mark.parametrize("assertion", [FieldAccuracy((Field("total"),)), JsonMatch()])
def test_an_answer_without_json_fails(assertion):
    grade = graded(assertion, answer("no idea", reference=INVOICE))
    assert (grade.passed, grade.error) == (False, None)
    assert graded(assertion, answer(None, reference=INVOICE)).error.code == "no-output"


@pytest.mark.parametrize(
    "reference",
    [{"total": 3}, '{"total": 3}', 'It is\n```json\n{"total": 3}\n```', (TextBlock('{"total": 3}'),)],
    ids=repr,
)
def test_the_reference_may_be_an_object_or_text(reference):
    assert graded(FieldAccuracy((Field("total"),)), answer('Total: {"total": 3}', reference=reference)).passed


def test_the_last_assistant_message_is_the_reference():
    messages = (
        Message("assistant", {"total": 1}),
        Message("user", {"total": 2}),
        Message("assistant", {"total": 3}),
        Message("assistant", "done"),
        Message("user", {"total": 4}),
    )
    context = answer('{"total": 3}')
    context = type(context)(input=(), output='{"total": 3}', expected_output=messages)
    assert graded(FieldAccuracy((Field("total"),)), context).passed


# score


@pytest.mark.parametrize(("right", "passed"), [(4, True), (3, False)])
def test_a_weighted_average_passes_at_four_fifths(right, passed):
    reference = {f"f{place}": place for place in range(5)}
    reply = {name: value if value < right else "?" for name, value in reference.items()}
    fields = tuple(Field(name) for name in reference)
    grade = graded(FieldAccuracy(fields), answer(json.dumps(reply), reference=reference))
    assert (grade.score, grade.passed, grade.has_own_threshold) == (right / 5, passed, False)


# json-match


@pytest.mark.parametrize(
    ("assertion", "output", "passed"),
    [
        (JsonMatch(LoadedJson({"a": {"b": 1}})), '{"a": {"b": 1, "c": 2}, "d": 3}', True),
        (JsonMatch(LoadedJson({"a": {"b": 1}})), '{"a": {"b": 2}}', False),
        (JsonMatch(LoadedJson({"a": [{"b": 1}]})), '{"a": [{"b": 1, "c": 2}]}', True),
        (JsonMatch(LoadedJson({"a": [1]})), '{"a": [1, 2]}', False),
        (JsonMatch(LoadedJson({"a": 1}), mode="equal"), '{"a": 1}', True),
        (JsonMatch(LoadedJson({"a": 1}), mode="equal"), '{"a": 1, "b": 2}', False),
        (JsonMatch(LoadedJson({"a": 1}), mode="equal"), 'It is:\n```json\n{"a": 1}\n```', True),
        (JsonMatch(LoadedJson({"a": 1})), '[1] {"a": 1}', True),
        (JsonMatch(LoadedJson([1, 2])), "[2, 1]", False),
        (JsonMatch(LoadedJson(None)), "null", True),
        (JsonMatch(LoadedJson(True)), "1", False),
    ],
    ids=repr,
)
def test_json_match(assertion, output, passed):
    grade = graded(assertion, output)
    assert (grade.passed, grade.score, grade.error) == (passed, float(passed), None)


# invalid options


@pytest.mark.parametrize(
    ("assertion", "label"),
    [
        (FieldAccuracy((Field("a"), Field("b.c"))), "'a', 'b.c'"),
        (JsonMatch(), "expected output"),
        (JsonMatch(LoadedJson({"a": 1})), "an object of 1 key"),
        (JsonMatch(LoadedJson({"a": 1}, "/evals/expected.json")), "expected.json"),
    ],
)
def test_label(assertion, label):
    assert assertion.label() == label


# dates and numbers


@pytest.mark.parametrize(
    ("text", "formats", "day"),
    [
        ("15-January-2025", DEFAULT_FORMATS, "2025-01-15"),
        ("15-Sept-2025", DEFAULT_FORMATS, "2025-09-15"),
        ("4 March 2025", ("DD MMMM YYYY",), "2025-03-04"),
        ("04.03.2025 10:11:12", ("DD.MM.YYYY HH:mm:ss",), "2025-03-04"),
        ("2025-02-30", DEFAULT_FORMATS, None),
        ("", DEFAULT_FORMATS, None),
        ("2025-01-15" + " " * 100, DEFAULT_FORMATS, None),
        ("١٥/٠١/٢٠٢٥", DEFAULT_FORMATS, None),
    ],
)
def test_dates(text, formats, day):
    found = read_date(text, formats)
    assert (found and found.isoformat()) == day


@given(st.dates(), st.sampled_from(["YYYY-MM-DD", "DD-MMM-YYYY", "MM/DD/YYYY", "DD MMMM YYYY", "DD.MM.YYYY HH:mm"]))
def test_a_date_that_is_written_in_a_format_is_read_in_it(day, spelled):
    names = {"YYYY": f"{day.year:04}", "MMMM": f"{day:%B}", "MMM": f"{day:%b}", "HH": "10", "mm": "30"}
    written = spelled
    for part, value in {**names, "MM": f"{day:%m}", "DD": f"{day:%d}"}.items():
        written = written.replace(part, value)
    assert read_date(written, (spelled,)) == day


@pytest.mark.parametrize("spelled", ["", "DD/MM", "YYYY-MM-DD-DD", "YYYY-QQ-DD", "YYYY-MM-MMM-DD"])
def test_formats_that_give_no_date_are_refused(spelled):
    with pytest.raises(FormatError):
        date_pattern(spelled)


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**6))
def test_a_tolerance_is_met_exactly_at_its_bound(thousandths, off):
    expected, tolerance = Decimal(thousandths) / 1000, off / 1000
    assert within(expected, expected + Decimal(off) / 1000, tolerance, relative=False)
    assert not within(expected, expected + Decimal(off + 1) / 1000, tolerance, relative=False)


def test_a_check_has_the_place_of_the_value_in_an_answer_that_is_an_object():
    def found(path, output):
        compares = FieldAccuracy((Field(path),))
        grade = graded(compares, answer(output, reference={"a": {"b": [13, {"c d": 1}]}, "🎉": 1, "e": 1}))
        return [output[begin:end] for check in grade.checks for begin, end in check.spans]

    output = ' {"🎉": 13, "a": {"b": [13, {"c d": "13 is"}]}, "e": 13, "e": 13} '
    for path, value in (("a.b[0]", "13"), ("$.a.b.0", "13"), ("a.b[1]['c d']", '"13 is"'), ("['🎉']", "13")):
        assert found(path, output) == [value], path
    assert [found(path, output) for path in ("e", "a.b[-1]")] == [[], []]  # a duplicate key; a negative index
    for text in ('[{"e": 1}]', 'The answer: {"e": 1}', '{"e": 1' + " " * 100_000 + "}"):
        assert found("e", text) == [], text[:20]
