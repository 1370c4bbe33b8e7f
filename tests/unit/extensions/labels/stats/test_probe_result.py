from agentv.extensions.labels.stats.probe_result import Flips
from agentv.stats.intervals.design_effect import ClusterSum, estimated_rate


def test_flips_are_a_share_of_the_answers_with_the_interval_of_their_clusters():
    found = Flips.of([(True, "a"), (False, "a"), (False, "b"), (False, "c"), (True, "d")])
    interval = estimated_rate([ClusterSum(2, 1), ClusterSum(1, 0), ClusterSum(1, 0), ClusterSum(1, 1)]).interval
    assert found == Flips(5, 2, interval)
    assert found.share == 0.4
    assert Flips.of([(False, 1), (False, 2)]).share == 0.0


def test_without_answers_there_is_no_share():
    assert Flips.of([]) == Flips(0, 0, None)
    assert Flips.of([]).share is None
