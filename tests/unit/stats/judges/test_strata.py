import itertools

from agentv.stats.judges.strata import even_sizes


def test_a_sample_is_drawn_evenly_as_far_as_each_stratum_has_answers():
    assert even_sizes(10, [80, 20]) == [5, 5]
    assert even_sizes(11, [80, 20]) == [6, 5]
    assert even_sizes(10, [80, 2]) == [8, 2]
    assert even_sizes(10, [3, 90]) == [3, 7]
    assert even_sizes(100, [30, 20]) == [30, 20]
    assert even_sizes(5, [0, 3]) == [0, 3]
    assert even_sizes(4, [1, 9, 9]) == [1, 2, 1]
    assert even_sizes(0, [1, 2]) == [0, 0]
    assert even_sizes(3, []) == []


def test_a_larger_sample_takes_at_least_as_many_from_each_stratum():
    available = [7, 0, 1, 12, 3]
    sizes = [even_sizes(wanted, available) for wanted in range(26)]
    assert [sum(size) for size in sizes] == [*range(24), 23, 23]
    for smaller, larger in itertools.pairwise(sizes):
        assert all(less <= more for less, more in zip(smaller, larger, strict=True)), (smaller, larger)
