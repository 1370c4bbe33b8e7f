"""Signals that end a run."""

from __future__ import annotations

import os
import signal

import pytest

from agentv.user_code.processes import interrupts
from agentv.user_code.processes.interrupts import SignalError, acting_on_signals


@pytest.fixture
def signals(monkeypatch):
    """Has a signal come at a second; how many were acted on."""
    found = interrupts._Signals()
    seen: list[int] = []
    found.act = seen.append

    def arrives(number: int, at_s: float) -> int:
        monkeypatch.setattr(interrupts.time, "monotonic", lambda: at_s)
        found.handle(number, None)
        return len(seen)

    return arrives


def test_each_signal_counts(signals):
    assert [signals(signal.SIGINT, at) for at in (0.0, 0.2, 0.4)] == [1, 2, 3]


def test_one_that_is_sent_to_the_process_and_to_its_group_counts_once(signals):
    assert [signals(signal.SIGTERM, at) for at in (7.0, 7.001, 7.3, 7.302)] == [1, 1, 2, 2]


def test_two_kinds_count_apart(signals):
    assert signals(signal.SIGINT, 0.0) == 1
    assert signals(signal.SIGTERM, 0.0) == 2


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
