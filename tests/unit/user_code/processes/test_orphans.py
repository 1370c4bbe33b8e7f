"""Which processes are below which."""

from __future__ import annotations

from agentv.user_code.processes.orphans import tree_of


def test_a_tree_is_all_that_is_below():
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 9}
    assert tree_of([2], parents) == {2, 3, 4}
    assert tree_of([2, 6], parents) == {2, 3, 4, 6}
