import json

from agentv.extensions.mutate.operators.catalogue import OPERATORS
from agentv.extensions.mutate.operators.mutant import Answer
from agentv.extensions.mutate.operators.named import NamedWords

TEXT = '{"order": 7, "lines": [{"sku": "A"}], "paid": true}'
NAMED = NamedWords(frozenset({"sku", "json"}), frozenset(), frozenset())


def made(operator, text=TEXT):
    return list(OPERATORS[operator].make(Answer("case", text, named=NAMED)))


def test_one_field_is_dropped_and_the_others_stay():
    found = made("drop-field")
    assert found[0].change == "the field 'lines' was dropped"
    assert [json.loads(one.output) for one in found] == [
        {"order": 7, "paid": True},
        {"order": 7, "lines": [{}], "paid": True},
        {"lines": [{"sku": "A"}], "paid": True},
    ]
    assert [one.counts for one in found] == [True, True, False]


def test_a_field_has_another_type():
    kinds = [one.change for one in made("retype-field", '{"a": 1, "b": null, "c": true}')]
    assert kinds == [
        "the field 'a' became a text instead of a number",
        "the field 'b' became a text instead of null",
        "the field 'c' became a text instead of a boolean",
    ]


def test_other_texts_have_no_fields():
    texts = ("plain", "{not json}", "[1, 2]", '"text"', "```\ncode\n```", "[" * 5000, "")
    assert [one for text in texts for name in ("drop-field", "retype-field") for one in made(name, text)] == []
