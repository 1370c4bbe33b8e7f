"""Conversion of a program's values to plain data."""

import pytest
from hypothesis import given

from agentv.authoring.source.nodes import children, plain
from agentv.authoring.source.python_values import as_authored, traced
from agentv.sdk import Case
from agentv.user_code.guard import ForeignError
from doubles.json_values import JSON


def authored(value):
    return as_authored(value, "cases.py:make", "bad-generator")


@given(JSON)
def test_plain_data_is_itself_and_every_part_has_a_place_and_a_way(value):
    assert authored(value) == value
    node, ways = traced(value, "cases.py")
    assert plain(node) == value

    def places(one):
        yield one.at
        yield from getattr(one, "keys", {}).values()
        for child in children(one):
            yield from places(child)

    found = list(places(node))
    assert len(set(found)) == len(found) == len(ways)
    assert set(found) == set(ways)


class Broken:
    def authored(self):
        raise ValueError("no")


def endless() -> dict[str, object]:
    made: dict[str, object] = {}
    made["again"] = made
    return made


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1, 2}, "returns a value of the type 'set', which an eval file cannot contain"),
        (b"x", "returns a value of the type 'bytes', which an eval file cannot contain"),
        ([Case], "returns a value of the type 'type', which an eval file cannot contain"),
        ({1: 2}, "returns a mapping with the key 1; keys must be text"),
        (endless(), "returns a value that is nested more than 100 levels deep, or contains itself"),
        (Broken(), "raised ValueError: no"),
    ],
)
def test_what_no_file_could_hold_is_told(value, said):
    with pytest.raises(ForeignError) as caught:
        authored(value)
    assert caught.value.failure.message.startswith(f"cases.py:make {said}")
    assert caught.value.failure.code == "bad-generator"
