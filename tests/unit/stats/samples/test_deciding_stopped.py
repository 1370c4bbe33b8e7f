from itertools import product

import pytest

from agentv.model.run.cases import RequiredGrade, Sample
from agentv.stats.samples.deciding import Rule, stopped_by, unbiased_rate

RULE = Rule(9, 0.6, "mean", 0.2)
WAYS = {
    "pass": Sample("passed", 1.0),
    "fail": Sample("failed", 0.0),
    "gate": Sample("failed", 0.0, (RequiredGrade(1.0, 0.0),)),
}


def ends(rule: Rule, kinds: tuple[str, ...]):
    """Every way in which the samples of a case can go, up to where they end."""
    ways: list[tuple[str, ...]] = [()]
    while ways:
        way = ways.pop()
        stopped = stopped_by([WAYS[one] for one in way], rule)
        if stopped is None:
            ways.extend((*way, kind) for kind in kinds)
        else:
            yield way, stopped


def expected(chances: dict[str, float], rule: Rule) -> tuple[float, float]:
    """The mean of the estimate, and of the share that passed, over all ways: exact."""
    estimate = share = 0.0
    for way, stopped in ends(rule, tuple(chances)):
        chance = 1.0
        for one in way:
            chance *= chances[one]
        found = unbiased_rate(stopped, threshold=rule.threshold, alpha=rule.alpha, repeat=rule.repeat)
        estimate += chance * found
        share += chance * stopped.passed / stopped.samples
    return estimate, share


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.4, 0.59, 0.75, 0.95, 1.0])
def test_the_estimate_is_unbiased_where_the_share_that_passed_is_not(rate):
    estimate, share = expected({"pass": rate, "fail": 1 - rate}, RULE)
    assert estimate == pytest.approx(rate)
    if rate in (0.4, 0.75):
        assert abs(share - rate) > 0.02


@pytest.mark.parametrize(("passes", "gates"), [(0.7, 0.1), (0.5, 0.3), (0.2, 0.0)])
def test_it_is_unbiased_where_a_failed_gate_ends_the_samples_too(passes, gates):
    estimate, _ = expected({"pass": passes, "fail": 1 - passes - gates, "gate": gates}, RULE)
    assert estimate == pytest.approx(passes)


def test_it_is_the_part_of_the_ways_that_begin_with_a_pass():
    found: dict[tuple[str, int, int], list[bool]] = {}
    for way, stopped in ends(RULE, ("pass", "fail")):
        found.setdefault((stopped.why, stopped.samples, stopped.passed), []).append(way[0] == "pass")
        last = stopped
    for _, stopped in ends(RULE, ("pass", "fail")):
        begun = found[stopped.why, stopped.samples, stopped.passed]
        rate = unbiased_rate(stopped, threshold=0.6, alpha=0.2, repeat=9)
        assert rate == pytest.approx(sum(begun) / len(begun))
    assert last.samples <= 9


def test_an_errored_case_has_none_and_without_an_end_the_share_is_the_estimate():
    stopped = stopped_by([WAYS["pass"], Sample("errored", None)], RULE)
    assert unbiased_rate(stopped, threshold=0.6, alpha=0.2, repeat=9) is None
    never = Rule(4, 0.6, "mean", 1e-9)
    for way in product(("pass", "fail"), repeat=4):
        stopped = stopped_by([WAYS[one] for one in way], never)
        assert unbiased_rate(stopped, threshold=0.6, alpha=1e-9, repeat=4) == pytest.approx(way.count("pass") / 4)
