from itertools import permutations

import pytest
from msgspec.structs import replace

from agentv.engine.draws import Draws
from agentv.stats.samples.betting import PairedBets
from doubles.trials import finished, trial

BASE = {("s", f"c{number}", None): (1.0, 1.0) for number in range(30)}


def trials(count=30, group=1, repeat=1):
    for number in range(count):
        for sample in range(1, repeat + 1):
            key = f"{number}-{sample}"
            yield ("s", f"c{number}", None), number // group, replace(trial(), key=key, sample=sample)


def drawn(seed=1, **more):
    return Draws(trials(**more), BASE, PairedBets(), "base", seed)


def ended(one, status):
    return replace(finished(status), trial=one)


def test_the_order_follows_from_the_seed_and_from_nothing_else():
    assert [one.key for one in drawn().trials] == [one.key for one in drawn().trials]
    assert [one.key for one in drawn(seed=2).trials] != [one.key for one in drawn().trials]
    fewer = [one.key for one in drawn(count=20).trials]
    assert [one.key for one in drawn().trials if one.key in fewer] == fewer


def test_what_ends_sooner_does_not_count_sooner():
    # twenty failures come in first: nothing is shown before the passes that were drawn ahead of them are in
    late = drawn(seed=3)
    ahead, others = late.trials[:5], late.trials[5:25]
    for one in others:
        assert not late.add(ended(one, "failed"))
    assert (late.drawn, late.decided) == (0, False)
    for one in ahead:
        late.add(ended(one, "passed"))
    in_order = drawn(seed=3)
    for one in in_order.trials[:25]:
        in_order.add(ended(one, "passed" if one.key in {before.key for before in ahead} else "failed"))
    assert (late.drawn, late.bets.claim) == (in_order.drawn, in_order.bets.claim)
    assert late.bets.claim == "worse"


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_dependent_cases_and_samples_are_one_bet_when_all_of_them_ended(order):
    draws = drawn(count=1, repeat=3)
    statuses = ("passed", "failed", "errored")
    for place in order[:-1]:
        draws.add(ended(draws.trials[place], statuses[place]))
        assert draws.drawn == 0
    draws.add(ended(draws.trials[order[-1]], statuses[order[-1]]))
    assert (draws.drawn, draws.errored) == (1, 1)
    (((low, _), _),), (((high, _), _),) = (tuple(one.items()) for one in (draws.bets.low, draws.bets.high))
    assert (low, high) == (pytest.approx(1 / 3 - 1), pytest.approx(2 / 3 - 1))
    clustered = drawn(count=6, group=3)
    for one in clustered.trials[:3]:
        clustered.add(ended(one, "failed"))
    assert (clustered.drawn, clustered.bets.drawn) == (3, 1)


def test_cases_that_the_base_lacks_are_drawn_and_in_no_number():
    draws = Draws(trials(), {key: bounds for key, bounds in BASE.items() if key[1] != "c0"}, PairedBets(), "base", 1)
    assert (draws.cases, draws.unpaired, len(draws.trials)) == (29, 1, 30)
    for one in draws.trials:
        draws.add(ended(one, "passed"))
    assert (draws.drawn, draws.decided) == (29, False)
