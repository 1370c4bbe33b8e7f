from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest

from agentv.user_code.functions.pool import WIDTH, DaemonPool


@pytest.fixture
def pool():
    made = DaemonPool()
    yield made
    made.shutdown()


def test_what_a_function_returns_or_raises_comes_out(pool):
    assert pool.submit(divmod, 7, 2).result(5) == (3, 1)
    assert isinstance(pool.submit(divmod, 1, 0).exception(5), ZeroDivisionError)


def test_threads_are_daemons_and_used_again(pool):
    first = pool.submit(threading.current_thread).result(5)
    assert first.daemon
    threads = {first}
    for _ in range(50):
        threads.add(pool.submit(threading.current_thread).result(5))
    assert len(threads) <= 2  # one may not have said yet that it is idle


def test_it_is_as_wide_as_pythons_own_and_no_wider(pool):
    gate, running = threading.Event(), threading.Semaphore(0)

    def waits():
        running.release()
        gate.wait()
        return threading.current_thread()

    outcomes = [pool.submit(waits) for _ in range(WIDTH + 5)]
    for _ in range(WIDTH):
        assert running.acquire(timeout=5)
    assert not running.acquire(timeout=0.05)
    gate.set()
    wait(outcomes, 5)
    assert len({one.result() for one in outcomes}) == WIDTH


def test_what_was_cancelled_before_it_began_is_not_called(pool):
    gate = threading.Event()
    called = []
    busy = [pool.submit(gate.wait) for _ in range(WIDTH)]
    outcome = pool.submit(called.append, 1)
    assert outcome.cancel()
    gate.set()
    wait(busy, 5)
    assert pool.submit(lambda: 7).result(5) == 7
    assert called == []
