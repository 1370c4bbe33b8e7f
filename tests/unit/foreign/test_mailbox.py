from __future__ import annotations

import asyncio
from threading import Thread

from agentv.foreign.mailbox import Mailbox


class Counting(asyncio.SelectorEventLoop):
    """A loop that counts how often it is woken up by another thread."""

    woken = 0

    def call_soon_threadsafe(self, *given, **options):
        self.woken += 1
        return super().call_soon_threadsafe(*given, **options)


def test_many_jobs_cost_one_wake_up_and_keep_their_order():
    loop, done = Counting(), []
    mailbox = Mailbox(loop)
    for number in range(100):
        mailbox.post(lambda number=number: done.append(number))
    mailbox.post(loop.stop)
    loop.run_forever()
    assert done == list(range(100))
    assert loop.woken == 1
    mailbox.post(loop.stop)
    loop.run_forever()
    assert loop.woken == 2
    loop.close()


def test_no_job_is_lost_between_two_wake_ups():
    loop, done = asyncio.new_event_loop(), []
    mailbox = Mailbox(loop)

    def posts():
        for number in range(20_000):
            mailbox.post(lambda number=number: done.append(number))
        mailbox.post(loop.stop)

    thread = Thread(target=posts)
    thread.start()
    loop.run_forever()
    thread.join()
    loop.close()
    assert done == list(range(20_000))


def test_a_loop_that_was_closed_gets_nothing_and_nobody_is_troubled():
    loop, done = asyncio.new_event_loop(), []
    mailbox = Mailbox(loop)
    loop.close()
    mailbox.post(lambda: done.append(1))
    assert done == []
