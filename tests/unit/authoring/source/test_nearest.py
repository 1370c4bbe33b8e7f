"""The known name that was most likely meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.fields.agentv.spellings import SUITE
from agentv.authoring.source.nearest import did_you_mean, nearest

NAMES = ["contains", "icontains", "contains-any", "equals", "regex", "assert", "input", "max-tokens"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("contians", "contains"),
        ("asert", "assert"),
        ("inptu", "input"),
        ("containss", "contains"),
        ("max_tokens", "max-tokens"),
        ("equal", "equals"),
        ("reg", "regex"),
        ("vibes", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_nearest_of_some_names(written, meant):
    assert nearest(written, NAMES) == meant


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_the_nearest_is_one_of_them_or_none(written, known):
    found = nearest(written, known)
    assert found is None or found in known


def test_nothing_is_near_where_nothing_is_known():
    assert did_you_mean("contains", []) is None


def test_the_hint_is_a_question():
    assert did_you_mean("asert", NAMES) == "did you mean 'assert'?"


@pytest.mark.parametrize(
    ("written", "meant"), [("run.repaet", "run.repeat"), ("run.skip_defaults", None), ("rum.repeat", "run.repeat")]
)
def test_a_key_in_a_mapping_is_compared_with_the_keys_of_that_mapping(written, meant):
    assert nearest(written, ["run", "repeat", "run.repeat", "run.timeout_s", "skip_defaults"]) == meant


def test_the_known_keys_are_always_in_the_same_order():
    assert list(SUITE.known)[: len(SUITE.canonical)] == sorted(SUITE.canonical)
