from __future__ import annotations

import asyncio
from collections import deque

from agentv.user_code.functions.loop_queue import LoopQueue


class Counting(asyncio.SelectorEventLoop):
    """A loop that counts how often it is woken up by another thread."""

    woken = 0

    def call_soon_threadsafe(self, *given, **options):
        self.woken += 1
        return super().call_soon_threadsafe(*given, **options)


def test_many_jobs_cost_one_wake_up_and_keep_their_order():
    loop, done = Counting(), []
    loop_queue = LoopQueue(loop)
    for number in range(100):
        loop_queue.post(lambda number=number: done.append(number))
    loop_queue.post(loop.stop)
    loop.run_forever()
    assert done == list(range(100))
    assert loop.woken == 1
    loop_queue.post(loop.stop)
    loop.run_forever()
    assert loop.woken == 2
    loop.close()


class PostedAtTheLastMoment(deque):
    """Jobs of a mailbox, to which another thread adds one just after the loop has found that there are no more."""

    late = None

    def __len__(self):
        left = super().__len__()
        if not left and self.late is not None:
            post, self.late = self.late, None
            post()
        return left


def test_no_job_is_lost_between_two_wake_ups():
    loop, done = Counting(), []
    loop_queue = LoopQueue(loop)
    loop_queue._jobs = jobs = PostedAtTheLastMoment()
    loop_queue.post(lambda: done.append("first"))
    jobs.late = lambda: loop_queue.post(loop.stop)
    loop.call_later(5, loop.stop)
    started = loop.time()
    loop.run_forever()
    assert loop.time() - started < 5
    assert done == ["first"]
    loop.close()


def test_a_loop_that_was_closed_gets_nothing_and_nobody_is_troubled():
    loop, done = asyncio.new_event_loop(), []
    loop_queue = LoopQueue(loop)
    loop.close()
    loop_queue.post(lambda: done.append(1))
    assert done == []
