from __future__ import annotations

from agentv.extensions.team.push.batch_times import NextBatch, Waits

WAITS = Waits()


def times(size_at, until, *, age=0.0, took=0.03):
    """When batches are sent of an index that grows like this, and how many bytes each has."""
    now, sent, size, found = 0.0, 0, 0, []
    while now < until:
        batch = NextBatch(WAITS, size, now, age + now)
        while (wait := batch.wait_s(size_at(now), now)) > 0:
            now += wait
        size = size_at(now)  # what comes while the batch is sent is of the next one
        found.append((now, size - sent))
        sent, now = size, now + took
    return [one for one in found if one[1]]


def test_the_first_row_and_a_large_one_do_not_wait_for_more():
    ((sent, _),) = times(lambda now: 1_000 if now >= 0.2 else 0, 1)
    assert sent - 0.2 <= WAITS.look
    ((sent, _),) = times(lambda now: 5_000_000 if now >= 0.2 else 0, 1)
    assert sent - 0.2 <= 2 * WAITS.look + 1e-9, "nothing more came"
