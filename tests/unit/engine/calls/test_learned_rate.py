from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.engine.calls.adaptive_concurrency import AdaptiveConcurrency
from agentv.engine.calls.learned_rate import LearnedRate


def answered(rate: LearnedRate, *, per_s: float, seconds: float, start: float = 100.0) -> float:
    """Answers that come in evenly; when the last one does."""
    number = int(per_s * seconds)
    for place in range(number + 1):
        rate.answer(start + place / per_s)
    return start + number / per_s


def test_it_falls_below_what_was_answered_grows_back_and_then_doubles():
    rate = LearnedRate()
    now = answered(rate, per_s=10, seconds=2)
    rate.limit(now)
    found = [rate.rate(now + seconds) for seconds in (0, 5, 10, 15, 20)]
    assert found == pytest.approx([8, 9, 10, 20, 40])
    assert rate.next_at(now, now) == pytest.approx(now + 1 / 8)


def test_without_answers_meanwhile_it_falls_further():
    rate = LearnedRate()
    now = answered(rate, per_s=10, seconds=2)
    rate.limit(now)
    rate.limit(now + 50)
    assert rate.rate(now + 50) == pytest.approx(10 * 0.8 * 0.8)


def test_a_server_of_ten_calls_a_second_is_asked_about_so_much():
    """A bucket of one: 300 seconds of asking as soon as the pace lets in, each answered at once."""
    pace, now, level, at = AdaptiveConcurrency(50), 0.0, 1.0, 0.0
    answered_, refused = 0, 0
    while now < 300:
        wait_s = pace.wait_s(now)
        now += max(wait_s or 0.0, 0.001)
        level, at = min(1.0, level + (now - at) * 10), now
        permit = pace.start(now)
        if level >= 1:
            level -= 1
            answered_ += 1
            pace.succeed(permit, now)
        else:
            refused += 1
            pace.limit(permit, now, None)
    assert answered_ > 2500
    assert refused < 0.2 * answered_


@given(st.lists(st.tuples(st.booleans(), st.floats(0.001, 20)), max_size=50))
def test_it_never_stands_still(events):
    rate, now = LearnedRate(), 0.0
    for limited, step in events:
        now += step
        (rate.limit if limited else rate.answer)(now)
        found = rate.rate(now)
        assert found is None or found > 0
