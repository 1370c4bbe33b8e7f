from __future__ import annotations

import asyncio

from agentv.engine.trial_queue import IndependentTrials
from doubles.trials import finished, trial


def test_trials_come_in_their_order_and_then_no_more():
    trials = [trial(name) for name in "abc"]

    async def main():
        queue = IndependentTrials(iter(trials))
        return [await queue.take() for _ in range(5)]

    assert asyncio.run(main()) == [*trials, None, None]


def test_trials_that_are_compared_with_the_one_that_was_taken_follow_it():
    trials = [trial(name) for name in "abcd"]

    async def main():
        queue = IndependentTrials(trials)
        return await queue.take(), queue.comparison_group(2), await queue.take(), queue.comparison_group(2)

    assert asyncio.run(main()) == (trials[0], trials[1:3], trials[3], [])


def test_a_worker_that_breaks_off_leaves_the_rest_to_the_others():
    async def main():
        queue = IndependentTrials([trial("a"), trial("b")])
        first = await queue.take()
        queue.finish(finished(trial=first))
        queue.close()
        return await queue.take()

    assert asyncio.run(main()).case.id == "b"
