"""Signals that reach two processes count once."""

from __future__ import annotations

import os
import signal

import pytest

from agentv.user_code.processes import interrupts
from agentv.user_code.processes.interrupts import SignalError, acting_on_signals


@pytest.fixture
def signals(monkeypatch):
    """The counting alone, with the pipe in which signals that are passed on are announced."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    counted = interrupts._Signals()
    counted.passed_on = read
    seen: list[int] = []
    counted.act = seen.append

    def arrives(number: int, *, passed_on: bool) -> int:
        if passed_on:
            os.write(write, bytes([number]))
        counted.handle(number, None)
        return len(seen)

    yield arrives
    os.close(read)
    os.close(write)


def test_one_that_is_passed_on_counts(signals):
    assert [signals(signal.SIGINT, passed_on=True) for _ in range(3)] == [1, 2, 3]


def test_one_that_is_sent_to_this_process_alone_counts(signals):
    assert [signals(signal.SIGINT, passed_on=False) for _ in range(3)] == [1, 2, 3]


def test_one_that_reaches_both_counts_once(signals):
    assert signals(signal.SIGINT, passed_on=False) == 1
    assert signals(signal.SIGINT, passed_on=True) == 1
    assert signals(signal.SIGINT, passed_on=True) == 2
    assert signals(signal.SIGINT, passed_on=False) == 2


def test_two_kinds_count_apart(signals):
    assert signals(signal.SIGINT, passed_on=True) == 1
    assert signals(signal.SIGTERM, passed_on=True) == 2


def test_outside_of_a_run_a_signal_is_an_interrupt_that_no_guard_takes_for_users_code():
    with acting_on_signals(interrupts._raise), pytest.raises(SignalError):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_is_ignored_stays_ignored_but_for_what_always_ends_a_run():
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGHUP, signal.SIGINT)}
    try:
        seen: list[int] = []
        with acting_on_signals(seen.append):
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGINT)
        assert seen == [signal.SIGINT]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
