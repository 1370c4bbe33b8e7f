from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.hashes import NumberedHashes


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3).map(lambda number: number << 40)))
def test_numbers_are_given_in_the_order_of_first_sight(values):
    hashes = NumberedHashes()
    expected = {value: number for number, value in enumerate(dict.fromkeys(values))}
    assert [hashes.number(value) for value in values] == [expected[value] for value in values]
    assert len(hashes) == len(expected)
