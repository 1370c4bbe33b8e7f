"""The known name nearest to a misspelled one."""

from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.source.nearest import nearest


@given(st.text(max_size=20), st.lists(st.text(max_size=20), max_size=5))
def test_the_nearest_is_one_of_them_or_none(written, known):
    found = nearest(written, known)
    assert found is None or found in known
