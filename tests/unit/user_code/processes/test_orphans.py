"""Which processes are below which."""

from __future__ import annotations

from agentv.user_code.processes.orphans import end_orphans, marked, tree_of


def test_a_tree_is_all_that_is_below():
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 9}
    assert tree_of([2], parents) == {2, 3, 4}
    assert tree_of([2, 6], parents) == {2, 3, 4, 6}


def test_a_process_that_adopts_nothing_marks_and_ends_nothing():
    environment, mark = marked({"A": "1"})
    assert (environment, mark) == ({"A": "1"}, b"")
    assert not end_orphans(mark, ())
