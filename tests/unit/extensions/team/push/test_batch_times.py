from __future__ import annotations

from itertools import pairwise

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


def test_rows_that_come_slowly_are_sent_one_by_one_within_moments():
    rows = [0.31 * number for number in range(1, 30)]
    found = times(lambda now: sum(1_000 for row in rows if row <= now), 10)
    assert [size for _, size in found] == [1_000] * len(rows)
    assert max(sent - row for (sent, _), row in zip(found, rows, strict=True)) <= WAITS.first


def test_the_first_row_and_a_large_one_do_not_wait_for_more():
    ((sent, _),) = times(lambda now: 1_000 if now >= 0.2 else 0, 1)
    assert sent - 0.2 <= WAITS.look
    ((sent, _),) = times(lambda now: 5_000_000 if now >= 0.2 else 0, 1)
    assert sent - 0.2 <= 2 * WAITS.look + 1e-9, "nothing more came"


def test_while_many_rows_come_batches_are_few_and_the_last_one_follows_at_once():
    def size_at(now):
        return 1_150 * round(3_300 * min(now, 3.0))

    found = times(size_at, 6)
    assert len(found) <= 8, "every 0.1 s they were 23"
    assert sum(size for _, size in found) == size_at(6)
    assert found[-1][0] - 3.0 <= 0.2


def test_a_long_run_sends_more_rarely_and_an_index_that_became_shorter_is_looked_at():
    found = times(lambda now: 1_000 * int(now * 10), 20, age=300)
    assert all(later - earlier >= 1.0 for (earlier, _), (later, _) in pairwise(found))
    batch = NextBatch(WAITS, 9_000, 0.0, 0.0)
    assert batch.wait_s(10, WAITS.first) == 0.0
    waiting = NextBatch(WAITS, 9_000, 0.0, 0.0)
    assert waiting.wait_s(9_000, WAITS.longest) == 0.0, "artifacts are looked for though no row is new"
