from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.reports.text.embedded import data_element, to_json
from doubles.html_reports import HOSTILE


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_every_text_comes_back_as_it_was_and_can_be_written_to_a_file(text):
    line = to_json({"a": text})
    line.encode("utf-8")
    assert json.loads(line) == {"a": text}
    assert "<" not in line
    assert "\n" not in line


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_ends_the_element_that_it_stands_in(text):
    shown = data_element("whole", 0, [to_json(text), to_json([text])])
    assert shown.count("<") == 2
    assert shown.endswith("</script>\n")


def test_what_json_knows_no_number_for_is_null():
    nan, infinite = float("nan"), float("inf")
    assert json.loads(to_json({"a": [nan, infinite, 0.5], "b": {"c": -infinite, "d": True}})) == {
        "a": [None, None, 0.5],
        "b": {"c": None, "d": True},
    }


def test_objects_that_are_no_dict_are_written_as_one():
    assert to_json(MappingProxyType({"a": 1})) == '{"a":1}'
