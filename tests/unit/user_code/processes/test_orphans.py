"""Which processes are below which, and which orphans end with which trial."""

from __future__ import annotations

from agentv.user_code.processes import orphans
from agentv.user_code.processes.orphans import Leftovers, tree_of


class Found(Leftovers):
    """The orphans that a test says there are, and those that were ended."""

    def __init__(self) -> None:
        super().__init__(None)
        self.there: list[int] = []

    def found(self) -> list[int]:
        return list(self.there)


def followed(monkeypatch) -> tuple[Found, list[int]]:
    ended: list[int] = []
    leftovers = Found()

    def end(roots: set[int]) -> None:
        ended.extend(sorted(roots))
        leftovers.there = [one for one in leftovers.there if one not in roots]

    monkeypatch.setattr(orphans, "_kill_trees", end)  # no process of this machine
    return leftovers, ended


def test_a_tree_is_all_that_is_below():
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 9}
    assert tree_of([2], parents) == {2, 3, 4}
    assert tree_of([2, 6], parents) == {2, 3, 4, 6}


def test_an_orphan_of_the_only_trial_ends_with_it(monkeypatch):
    leftovers, ended = followed(monkeypatch)
    trial = leftovers.begin()
    leftovers.there = [77]
    leftovers.end(trial)
    assert ended == [77]


def test_an_orphan_that_may_be_of_several_trials_ends_with_the_last_of_them(monkeypatch):
    leftovers, ended = followed(monkeypatch)
    first, second = leftovers.begin(), leftovers.begin()
    leftovers.there = [77]
    leftovers.end(first)
    third = leftovers.begin()
    assert ended == []
    leftovers.end(second)
    assert ended == [77]
    leftovers.end(third)
    assert ended == [77]


def test_without_a_process_in_front_nothing_is_marked_or_found():
    leftovers = Leftovers(None)
    assert leftovers.marked({"A": "1"}) == ({"A": "1"}, b"")
    assert leftovers.found() == []
