import numpy as np
import pytest

from agentv.stats.judges.posterior import Counted, JudgeCounts, JudgeDraws, Observation, counted, estimated

MANY = JudgeCounts(Counted(900_000, 100_000), Counted(200_000, 800_000), Counted(700_000, 300_000))


def test_with_many_labels_every_share_is_what_the_counts_say():
    draws = JudgeDraws.of(MANY)
    shares = {"truth": 0.69, "true_positives": 0.63 / 0.69, "true_negatives": 0.24 / 0.31, "accuracy": 0.87}
    for name, share in shares.items():
        assert estimated(getattr(draws, name)).value == pytest.approx(share, abs=0.002), name
    by_chance = 0.7 * 0.69 + 0.3 * 0.31
    assert estimated(draws.kappa).value == pytest.approx((0.87 - by_chance) / (1 - by_chance), abs=0.003)


def test_the_same_seed_gives_the_same_draws_and_another_does_not():
    first, again, other = (JudgeDraws.of(MANY, seed).truth for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_observations_count_by_clusters_and_weights():
    alone = counted(Observation(passed) for passed in (True, True, False, True))
    assert (alone.passed, alone.failed) == pytest.approx((3, 1))
    alike = counted(Observation(place < 5, cluster=place // 5) for place in range(10))
    assert 1 < alike.total < 4, "ten answers of two cases that each end alike are about two"
    weighted = counted([Observation(True, weight=9.0), Observation(False, weight=1.0)])
    assert weighted.passed / weighted.total == pytest.approx(0.9)
    assert weighted.total == pytest.approx(100 / 82), "Kish: (9 + 1)² / (81 + 1)"
    assert counted([]) == Counted()
    assert counted([Observation(True, "a")] * 4).total == 1, "one cluster tells as much as one observation"
