"""A run's store in front of others."""

from __future__ import annotations

import pytest

from agentv.app.planning.answer_sources import LayeredStore
from agentv.model.values.response import TargetResponse
from doubles.stores import MemoryStore, call
from doubles.trials import finished, trial

YES, NO = TargetResponse("yes"), TargetResponse("no")


@pytest.fixture
def stores():
    return MemoryStore(), MemoryStore(), MemoryStore()


def test_every_answer_is_stored_in_the_run_and_in_the_others(stores):
    own, *others = stores
    LayeredStore(own, others).keep(call("k"), YES)
    assert [one.answers for one in stores] == [[("k", YES)]] * 3


def test_the_runs_own_answer_comes_first_and_the_others_get_it(stores):
    own, *others = stores
    own.recalled["k"] = YES
    others[0].recalled["k"] = NO
    assert LayeredStore(own, others).stored_answer(call("k")) == YES
    assert [one.answers for one in others] == [[("k", YES)]] * 2


def test_an_answer_of_another_is_an_earlier_one_and_the_first_that_has_one_counts(stores):
    own, *others = stores
    layered = LayeredStore(own, others)
    assert layered.stored_answer(call("k")) is None
    others[1].recalled["k"] = YES
    assert layered.stored_answer(call("k")) == TargetResponse("yes", earlier=True)
    others[0].recalled["k"] = NO
    assert layered.stored_answer(call("k")) == TargetResponse("no", earlier=True)
    assert own.answers == []


def test_rows_are_the_runs_own_and_closing_closes_nothing(stores):
    own, *others = stores
    layered = LayeredStore(own, others)
    result = finished(trial=trial("a", key="a"))
    assert layered.finish(result) is result
    assert list(layered.finished()) == ["a"]
    layered.close()
    assert [one.closed for one in stores] == [False] * 3
    assert [one.results for one in stores] == [[result], [], []]
