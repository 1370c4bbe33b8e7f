from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.extensions.agents.assertions.calls import fits, in_any_order, in_order

tables = st.integers(0, 4).flatmap(
    lambda made: st.lists(st.lists(st.booleans(), min_size=made, max_size=made), max_size=4)
)


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("search", "Search", True),
        ("search", "search_web", False),
        ("search*", "search_web", True),
        ("*web", "search_web", True),
        ("s?arch", "search", True),
        ("[s]earch", "search", False),
        ("a.b", "axb", False),
        ("*", "", True),
        ("", "a", False),
    ],
)
def test_a_pattern_describes_whole_names(pattern, name, found):
    assert fits(pattern, name) is found


@given(tables)
def test_as_many_as_possible_are_found_in_order(table):
    found = in_order(table)
    places = [place for place in found if place is not None]
    assert places == sorted(set(places))
    assert all(table[one][place] for one, place in enumerate(found) if place is not None)
    assert len(places) == _most(table, in_their_order=True)


@given(tables)
def test_as_many_as_possible_are_found_in_any_order(table):
    found = in_any_order(table)
    places = [place for place in found if place is not None]
    assert len(places) == len(set(places))
    assert all(table[one][place] for one, place in enumerate(found) if place is not None)
    assert len(places) == _most(table, in_their_order=False)


def _most(table, *, in_their_order):
    made = len(table[0]) if table else 0
    for size in range(min(len(table), made), 0, -1):
        for rows in combinations(range(len(table)), size):
            chosen = combinations(range(made), size) if in_their_order else permutations(range(made), size)
            if any(all(table[row][place] for row, place in zip(rows, places, strict=True)) for places in chosen):
                return size
    return 0
