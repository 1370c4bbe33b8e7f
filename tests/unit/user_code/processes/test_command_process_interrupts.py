"""Signals that end a run."""

from __future__ import annotations

import os
import signal

import pytest

from agentv.user_code.processes import command_process
from agentv.user_code.processes.command_process import SignalError, acting_on_signals


def test_outside_of_a_run_a_signal_is_an_interrupt_that_no_guard_takes_for_users_code():
    with acting_on_signals(command_process._raise), pytest.raises(SignalError):
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
