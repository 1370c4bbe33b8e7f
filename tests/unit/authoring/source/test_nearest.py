"""The known name that was most likely meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.source.nearest import nearest

NAMES = ["contains", "icontains", "contains-any", "equals", "regex", "assert", "input", "max-tokens"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("contians", "contains"),
        ("asert", "assert"),
        ("containss", "contains"),
        ("max_tokens", "max-tokens"),
        ("equal", "equals"),
        ("reg", "regex"),
        ("vibes", None),
        ("", None),
    ],
)
def test_the_nearest_of_some_names(written, meant):
    assert nearest(written, NAMES) == meant


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_the_nearest_is_one_of_them_or_none(written, known):
    found = nearest(written, known)
    assert found is None or found in known
