import json
import time
from contextlib import nullcontext
from itertools import islice
from json import JSONDecodeError, JSONDecoder

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.comparing import differences, same
from agentv.assertions.data import JsonMatch
from agentv.assertions.format.json import ContainsJson
from agentv.matching import json_text
from agentv.matching.json_text import UnsearchableError, containers, parse
from agentv.registry.fields import LoadedSchema
from doubles.json_values import JSON
from doubles.nested_grading import graded


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "{'a': 1}",
        '{"a": NaN}',
        "[-Infinity]",
        "[1,]",
        '{"a": 1} {"b": 2}',
        "[" * 100_000 + "]" * 100_000,
        "9" * 100_000,
        '"\n"',
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_is_not_json(text):
    assert len(parse(text).reason) < 100


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no JSON here", []),
        ('{"a": 1}', [{"a": 1}]),
        ('It is {"a": 1}, or [2] then.', [{"a": 1}, [2]]),
        ('Sure:\n```json\n{"a": {"b": []}}\n```\nDone.', [{"a": {"b": []}}]),
        ('[note] see {"a": 1}', [{"a": 1}]),
        ('{"a": "see [1]"}', [{"a": "see [1]"}]),
        ('[x {"a": "see [1]"}', [{"a": "see [1]"}]),
        ('[1, [2], {"a": 3}', [[2], {"a": 3}]),
        ('["unclosed {"a": 1} ', [{"a": 1}]),
        ('[NaN, {"a": 1}]', [{"a": 1}]),
        ("{a} {{b}} [x](y)", []),
        ('[1 2] {"a"} {"a" 1} [tru] ["\\x"] [01] {1: 2} [,] {,} [}', []),
        ('["\\u00e9", "\\n", -0.5e-3]', [["é", "\n", -0.0005]]),
        ("see " + "[" * 2000 + "]" * 2000 + ' and {"a": 1}', [{"a": 1}]),  # no part of a value nested too deeply
    ],
)
def test_objects_and_arrays_are_found_wherever_they_stand(text, found):
    assert sorted(map(repr, containers(text))) == sorted(map(repr, found))


def naive(text):
    """Return the same by trying every bracket, in quadratic time."""
    decoder, at = JSONDecoder(), 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at) if text[at] in "[{" else (None, at + 1)
        except JSONDecodeError:
            at += 1
        else:
            if value is not None:
                yield value


@given(st.text(alphabet='[]{}",:1\\a ', max_size=40))
def test_something_is_found_just_where_there_is_something(text):
    assert (next(containers(text), None) is None) == (next(naive(text), None) is None)


@given(st.text(alphabet="ab, .\n", max_size=10), JSON, st.text(alphabet="ab, .\n", max_size=10))
def test_a_value_is_found_in_prose(before, value, behind):
    assert list(containers(before + json.dumps({"value": value}) + behind)) == [{"value": value}]


@given(st.lists(JSON.filter(lambda value: isinstance(value, list | dict)), min_size=1, max_size=4))
def test_values_are_found_after_something_that_does_not_parse(values):
    assert list(containers("[x " + " ".join(json.dumps(value) for value in values))) == values


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        '{"a":' * 20_000,
        "[1," * 20_000,
        '["\\"' * 20_000,
        '["' + "[1," * 20_000,
        "[" + "[]," * 20_000,
        ("[" * 900 + "x" + "]" * 900) * 20,
        ("[" * 900 + "NaN" + "]" * 900) * 20,
        "[" + " " * 20_000 + "[" + " " * 20_000,
        '["' + "\\\\" * 20_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_text_takes_time_in_proportion(text):
    before = time.process_time()
    for _ in containers(text):
        pass
    assert time.process_time() - before < 5  # searching from every bracket takes minutes


@pytest.mark.parametrize("unit", ["{", "[", '{"a":', '[{"a":', "```json\n{", "[ ", '{ "a b" : [\n'], ids=repr)
def test_brackets_that_cannot_be_json_are_not_read_one_by_one(unit):
    assert list(containers(unit * 200_000)) == []
    assert list(containers(unit * 200_000 + 'x {"found": [1]}')) == [{"found": [1]}]


@pytest.mark.parametrize("unit", ["[1}", '{"', '["\\', "[], ", "[x]", '{"a":1 '])
def test_a_search_that_is_not_finished_is_no_verdict(unit, monkeypatch):
    monkeypatch.setattr(json_text, "STEPS", 1_000)
    answer = ("[" if unit == "[], " else "") + unit * 5_000 + '{"found": 1'
    with pytest.raises(UnsearchableError) if unit != "[x]" else nullcontext():
        list(containers(answer))
    if unit != "[x]":
        assertions = (
            ContainsJson(LoadedSchema({"type": "object", "required": ["found"]}, None)),
            JsonMatch(LoadedSchema({"found": 1}, None)),
        )
        for assertion in assertions:
            assert graded(assertion, answer).error.code == "too-long"


@pytest.mark.parametrize("depth", [900, 990, 2_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ("[", "")])
def test_deep_json_is_a_failed_comparison(depth, opening, closing):
    grade = graded(JsonMatch(LoadedSchema({"b": 1}, None)), opening * depth + "1" + closing * depth)
    assert grade.error is None
    assert not grade.passed
    assert grade.checks[0].evidence


# comparison


@given(JSON)
def test_a_value_is_the_same_as_itself(value):
    assert same(value, value)
    assert same(value, parse(json.dumps(value)))


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, "1"), (None, False), ([], {}), ([1], [1, 1]), ({"a": 1}, {"b": 1}), ({}, None)]
)
def test_what_differs(one, other):
    assert not same(one, other)
    assert not same(other, one)


def test_every_difference_has_its_place():
    one = {"a": 1, "b c": [1, {"d": None}], "e": {}}
    assert sorted(differences(one, {"a": 2, "b c": [1, {"d": "x"}], "f": True})) == [
        "$.a: expected 1, found 2",
        "$.e: expected an object of 0 keys, found nothing",
        "$.f: expected nothing, found true",
        '$["b c"][1].d: expected null, found "x"',
    ]


def test_deep_values_are_compared_without_end_of_stack():
    one, other = [], [1]
    for _ in range(50_000):
        one, other = [one], [other]
    assert len(list(islice(differences(one, other), 2))) == 1
    while one:  # taken apart by hand, because Python would recurse
        one = one.pop()
    while isinstance(other, list) and other:
        other = other.pop()
