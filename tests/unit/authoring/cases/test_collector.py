"""A compact set of ids."""

from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.cases.collector import IdTable


@given(st.lists(st.text(max_size=5)))
def test_an_id_is_seen_if_and_only_if_it_was_there_before(ids):
    table = IdTable()
    before: set[str] = set()
    for one in ids:
        assert table.seen(one) is (one in before)
        before.add(one)
    assert len(table) == len(before)


def test_it_grows_and_forgets_nothing():
    table = IdTable()
    ids = [f"case-{number}" for number in range(5000)]
    assert not any(table.seen(one) for one in ids)
    assert all(table.seen(one) for one in ids)
    assert len(table) == 5000


@given(st.lists(st.text(max_size=3)), st.text(max_size=3))
def test_looking_for_an_id_does_not_add_it(ids, other):
    table = IdTable()
    for one in ids:
        table.seen(one)
    assert (other in table) is (other in ids)
    assert table.seen(other) is (other in ids)


def test_ids_that_are_no_unicode_are_ids_too():
    table = IdTable()
    assert not table.seen("\ud800")
    assert table.seen("\ud800")
