"""A compact set of ids."""

from hypothesis import example, given
from hypothesis import strategies as st

from agentv.authoring.cases.collector import IdTable


@given(st.lists(st.text(max_size=5) | st.just("\ud800")))
@example([f"case-{number}" for number in range(5000)])
def test_an_id_is_seen_if_and_only_if_it_was_there_before(ids):
    table = IdTable()
    before: set[str] = set()
    for one in ids:
        assert (one in table) is table.seen(one) is (one in before)
        before.add(one)
    assert len(table) == len(before)
