from itertools import product
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.model.run.comparison import CaseKey, CaseOutcome, CasePair, ComparisonSettings
from agentv.model.run.matrix import Verdict
from agentv.stats.difference import Differences
from agentv.stats.rule import decided
from agentv.stats.verdicts import Measurement, Part, _bounded, _Decision, judge, judge_parts, measured
from doubles.thorough import examples

USUAL = ComparisonSettings()
PLANNED = ComparisonSettings(plan=True)


def outcome(score, cluster=None):
    passed = score >= 0.8
    return CaseOutcome("passed" if passed else "failed", score, 1, 0.8, 1, 1, 1, cluster=cluster, rate=float(passed))


def pair(number, before, after, cluster=None):
    key = CaseKey("refunds", f"case-{number}", None, "gpt")
    return CasePair(key, key, outcome(before, cluster), outcome(after, cluster))


def pairs(*scores):
    return [pair(number, *both) for number, both in enumerate(scores)]


LAW = settings(max_examples=examples(100, 30), deadline=None)
TURNED = {"better": "worse", "worse": "better"}


@st.composite
def drawn_pairs(draw):
    """Draw cases that mostly move one way, so that many comparisons show something, with scores, verdicts and
    clusters."""
    score = draw(st.sampled_from((st.sampled_from((0.0, 1.0)), st.integers(0, 10).map(lambda tenths: tenths / 10))))
    scores = draw(st.lists(st.tuples(score, score), min_size=draw(st.sampled_from((1, 12, 25))), max_size=40))
    rising, clustered = draw(st.sampled_from((0, 3, 4, 4))), draw(st.booleans())
    return [
        pair(number, *(both if number % 4 >= rising else sorted(both)), f"c{number // 2}" if clustered else None)
        for number, both in enumerate(scores)
    ]


@LAW
@given(drawn_pairs(), st.sampled_from((0.0, 0.1)))
def test_the_verdict_of_swapped_runs_is_mirrored(found, margin):
    question = ComparisonSettings(margin=margin)
    whole = judge(found, question)
    swapped = judge([replace(one, before=one.after, after=one.before) for one in found], question)
    if "non-inferior" in (whole.verdict, swapped.verdict):  # non-inferior one way may be no gain the other way
        assert {whole.verdict, swapped.verdict} == {"non-inferior", "inconclusive"}
    else:
        assert swapped.verdict == TURNED.get(whole.verdict, whole.verdict)
    assert swapped.score.delta == pytest.approx(-whole.score.delta)
    assert swapped.score.interval == pytest.approx((-whole.score.interval[1], -whole.score.interval[0]), abs=1e-6)


@LAW
@given(drawn_pairs())
def test_the_verdict_of_scores_turned_round_is_mirrored(found):
    def turned(one):
        return replace(one, score=1 - one.score, rate=1 - one.rate)

    whole = judge(found, USUAL)
    other = judge([replace(one, before=turned(one.before), after=turned(one.after)) for one in found], USUAL)
    assert other.verdict == TURNED.get(whole.verdict, whole.verdict)


@LAW
@given(drawn_pairs(), st.lists(st.sampled_from((0.0, 0.5, 0.9, 1.0)), min_size=1, max_size=20))
def test_identical_pairs_never_make_a_difference_significant(found, scores):
    more = [*found, *(pair(number, one, one) for number, one in enumerate(scores, len(found)))]
    if judge(found, USUAL).verdict == "inconclusive":
        assert judge(more, USUAL).verdict == "inconclusive"


@LAW
@given(drawn_pairs())
def test_the_same_cases_twice_as_clusters_show_the_same(found):
    def named(one, copy):
        cluster = one.before.cluster or one.before_key.case_id
        key = one.before_key._replace(case_id=f"{one.before_key.case_id}-{copy}")
        before, after = (replace(side, cluster=cluster) for side in (one.before, one.after))
        return CasePair(key, key, before, after)

    whole, twice = judge(found, USUAL), judge([named(one, copy) for one in found for copy in range(2)], USUAL)
    assert (twice.verdict, twice.clusters) == (whole.verdict, whole.clusters)
    assert twice.score.interval == pytest.approx(whole.score.interval, abs=1e-6)
    assert (twice.score.delta, twice.score.p) == pytest.approx((whole.score.delta, whole.score.p), abs=1e-6)


def test_the_numbers_of_a_comparison():
    found = judge(pairs((0.5, 1.0), (0.9, 0.6), (1.0, 1.0), (0.0, 0.0)), USUAL)
    assert (found.moves.wins, found.moves.losses, found.moves.ties) == (1, 1, 2)
    assert (found.moves.fixed, found.moves.broken) == (1, 1)
    assert (found.before.score, found.after.score) == pytest.approx((0.6, 0.65))
    assert (found.before.passed, found.after.passed) == (2, 2)
    assert found.score.delta == pytest.approx(0.05)
    fewer = judge(pairs((0.9, 1.0), (0.9, 0.6), (1.0, 0.7), (0.0, 0.0)), USUAL)
    assert (fewer.before.passed, fewer.after.passed, fewer.before.rate, fewer.after.rate) == (3, 1, 0.75, 0.25)


@pytest.mark.parametrize(("after", "verdict", "tested"), [(0.3, "worse", 2), (0.88, "better", 1)])
def test_a_difference_in_every_case_is_shown(after, verdict, tested):
    found = judge(pairs(*((0.8 + number / 500, after + number / 700) for number in range(60))), USUAL)
    assert (found.verdict, found.tested) == (verdict, tested)


@pytest.mark.parametrize(("drop", "cases"), [(0.5, 10), (0.1, 40), (1 / 3, 30)])
def test_the_same_loss_in_every_case_is_shown(drop, cases):
    assert judge(pairs(*[(1.0, 1.0 - drop)] * cases), USUAL).verdict == "worse"
    twice = [pair(number, 1.0, 1.0 - drop, f"customer {number // 2}") for number in range(2 * cases)]
    assert judge(twice, USUAL).verdict == "worse"
    assert judge(pairs(*[(1.0, 1.0 - drop)] * 5), USUAL).verdict == "inconclusive"


def test_four_losses_are_no_claim_and_their_interval_holds_zero():
    found = judge(pairs(*((1.0, 0.0) for number in range(4)), *((1.0, 1.0) for _ in range(16))), USUAL)
    assert (found.score.p, found.verdict) == (pytest.approx(0.125), "inconclusive")
    assert found.score.interval[1] > 0


def test_cases_of_one_cluster_are_not_independent():
    alone = [pair(number, 1.0, float(number >= 8)) for number in range(24)]
    together = [pair(number, 1.0, float(number >= 8), f"customer {number // 4}") for number in range(24)]
    assert judge(alone, USUAL).verdict == "worse"
    assert (judge(together, USUAL).clusters, judge(together, USUAL).verdict) == (6, "inconclusive")


@pytest.mark.parametrize("clusters", [1, 2, 5])
def test_fewer_than_six_clusters_show_nothing(clusters):
    together = [pair(number, 1.0, 0.0, f"customer {number % clusters}") for number in range(20)]
    assert judge(together, USUAL).verdict == "inconclusive"
    alone = judge([pair(number, 1.0, 0.0) for number in range(clusters)], USUAL)
    assert (alone.score.interval[0], alone.verdict) == (-1.0, "inconclusive")
    assert alone.score.interval[1] > 0


def test_losses_of_one_cluster_count_once():
    lost = [pair(number, 1.0, 0.0 if number < 6 else 1.0, f"case {number // 2}") for number in range(40)]
    found = judge(lost, USUAL)
    assert (found.moves.broken, found.score.p) == (6, pytest.approx(0.25))


def gated(number, before, after, passed):
    """Return a pair whose verdicts differ from its scores, because a gate fails."""
    statuses = ["passed" if one else "failed" for one in passed]
    key = CaseKey("refunds", f"case-{number}", None, "gpt")
    sides = [
        replace(outcome(score), status=status, rate=float(status == "passed"))
        for score, status in zip((before, after), statuses, strict=True)
    ]
    return CasePair(key, key, *sides)


def test_measures_that_contradict_each_other_give_no_verdict_either_way_and_the_gate_holds():
    # 20 cases: a gate with a low weight fails in all of them, 8 of which passed before
    leaking = [gated(number, number / 100, 0.6 + number / 90, (number < 8, False)) for number in range(20)]
    other_way = [replace(one, before=one.after, after=one.before) for one in leaking]
    for some, (up, down) in ((leaking, ("better", "worse")), (other_way, ("worse", "better"))):
        found = judge(some, USUAL)
        assert (found.verdict, found.withheld, found.shown_by) == ("inconclusive", "measures", ())
        assert (found.score.verdict, found.rate.verdict, found.shown_worse) == (up, down, True)


def test_what_is_shown_better_in_one_measure_and_in_the_other_not_at_all_is_better():
    found = judge([gated(number, 0.2, 0.6 + number / 100, (False, number % 2)) for number in range(20)], USUAL)
    assert (found.verdict, found.shown_by) == ("better", ("mean score", "pass rate"))
    mixed = [gated(number, 0.2, 0.6 + number / 100, (number % 2, not number % 2)) for number in range(20)]
    assert (judge(mixed, USUAL).verdict, judge(mixed, USUAL).shown_by) == ("better", ("mean score",))


def test_a_loss_within_the_margin_is_no_regression():
    small = pairs(*((0.95 + number / 1000, 0.82) for number in range(30)))
    assert judge(small, USUAL).verdict == "worse"
    assert judge(small, ComparisonSettings(margin=0.3)).verdict == "equivalent"
    assert (
        judge(small, ComparisonSettings(margin=0.05)).verdict == "inconclusive"
    )  # 12% of the population may differ from all 30 cases


def test_pass_rates_are_not_compared_where_one_case_was_judged_by_another_threshold():
    some = [gated(number, 0.5, 0.6 + number / 100, (False, number % 2)) for number in range(20)]
    for changed in ({"threshold": 0.5}, {"repeat": 30, "alpha": 0.05}):
        found = judge([replace(some[0], after=replace(some[0].after, **changed)), *some[1:]], USUAL)
        assert (found.rates_compare, found.rate, found.moves.same_rule) == (False, None, False), changed
    found = judge([replace(some[0], after=replace(some[0].after, repeat=5)), *some[1:]], USUAL)
    assert (found.rates_compare, found.moves.same_rule) == (True, False)
    assert found.rate is not None
    assert judge(some, USUAL).moves.same_rule


@pytest.mark.parametrize("other", [{"alpha": None, "repeat": 5}, {"alpha": 0.05, "repeat": 10}, {"alpha": 0.01}])
def test_verdicts_of_cases_that_were_decided_by_unlike_rules_show_nothing(other):
    """A case that passes three times in four mostly passes with 5 samples, and mostly fails with 30."""
    until = {"alpha": 0.05, "repeat": 30}
    lost = pairs(*[(1.0, 0.0)] * 40)
    early = [
        replace(one, before=replace(one.before, **until | other), after=replace(one.after, **until)) for one in lost
    ]
    found = judge(early, USUAL)
    assert (found.verdict, found.withheld, found.rates_compare) == ("inconclusive", "settings", False)


def test_one_case_that_was_decided_by_unlike_rules_is_enough_to_show_nothing():
    lost = pairs(*[(1.0, 0.0)] * 40)
    until = replace(lost[0].after, alpha=0.05, repeat=30)
    found = judge([replace(lost[0], after=until), *lost[1:]], USUAL)
    assert (found.verdict, found.withheld) == ("inconclusive", "settings")
    same = replace(lost[0], before=replace(lost[0].before, alpha=0.05, repeat=30), after=until)
    found = judge([same, *lost[1:]], USUAL)
    assert (found.verdict, found.score.measure) == ("worse", "mean score")


def test_equivalent_needs_both_measures():
    flips = [gated(number, 0.8, 0.8 - number / 10**6, (number % 2, not number % 2)) for number in range(200)]
    found = judge(flips, ComparisonSettings(margin=0.05))
    shown = (found.verdict, found.rate.verdict, found.score.interval[0] > -0.05)
    assert shown == ("inconclusive", "inconclusive", True)


def spread_around(delta, cases):
    """Return differences with a standard deviation of 0.1."""
    return pairs(*((0.5, 0.5 + delta + (0.1 if number % 2 else -0.1)) for number in range(cases)))


def test_it_is_said_how_many_cases_would_show_a_difference_unless_it_is_likely_chance():
    found = judge(spread_around(-0.05, 30), PLANNED)
    assert (found.verdict, 40 < found.needed < 120, 0.05 < found.detectable < 0.3) == ("inconclusive", True, True)
    assert judge(spread_around(-0.05, 30), USUAL).needed is None, "only where a plan is asked for"
    turned = judge([replace(one, before=one.after, after=one.before) for one in spread_around(-0.05, 30)], PLANNED)
    assert (turned.needed, turned.detectable) == (found.needed, found.detectable)
    chance = judge(spread_around(0.0005, 20), PLANNED)
    assert (chance.score.p > 0.5, chance.needed) == (True, None)
    shown = judge(spread_around(-0.05, 400), PLANNED)
    assert (shown.verdict, shown.needed, shown.detectable) == ("worse", None, None)


def test_claims_do_not_stand_that_are_no_more_than_many_comparisons_bring():
    six = pairs(*[(1.0, 0.0)] * 6, *[(1.0, 1.0)] * 6)
    (alone,) = judge_parts([Part(six)], USUAL)
    first, second = judge_parts([Part(six), Part(six)], USUAL)
    assert (alone.score.p, alone.verdict) == (pytest.approx(2 / 64), "worse")
    assert (first.score.p, first.verdict, second.verdict) == (pytest.approx(4 / 64), "inconclusive", "inconclusive")
    assert first.score.interval == alone.score.interval, "intervals are those of each alone"


def errs(number, before, after):
    """Return a pair whose candidate errored."""
    found = pair(number, before, after)
    return replace(found, after=replace(found.after, status="errored", score=None, rate=None, samples=0))


def test_better_by_errors_is_not_better():
    """Half of the candidate's failures time out: the judged cases alone would show that it is better."""
    judged = pairs(*[(0.0, 1.0)] * 10, *[(1.0, 1.0)] * 60)
    lost = [errs(100 + number, 1.0, 0.0) for number in range(10)]
    assert judge(judged, USUAL).verdict == "better"
    found = judge(judged, USUAL, lost)
    assert (found.verdict, found.withheld, found.errored) == ("inconclusive", "errors", 10)
    assert found.score.bounds == (0.0, 0.125)
    assert judge(judged, USUAL, lost[:1]).verdict == "better"  # one error does not change it
    assert judge(judged, replace(USUAL, errored="drop")).verdict == "better"


def test_errors_of_one_part_withhold_its_verdict_and_that_of_no_other():
    judged = pairs(*[(0.0, 1.0)] * 10, *[(1.0, 1.0)] * 60)
    lost = [errs(100 + number, 1.0, 0.0) for number in range(10)]
    for order in ((0, 1), (1, 0)):
        parts = [Part(judged, lost), Part(judged)]
        found = judge_parts([parts[place] for place in order], USUAL)
        errored, whole = (found[order.index(place)] for place in (0, 1))
        assert (errored.verdict, errored.withheld, errored.score.bounds) == ("inconclusive", "errors", (0.0, 0.125))
        assert (whole.verdict, whole.withheld, whole.score.bounds) == ("better", None, None)


def test_worse_must_hold_though_all_errors_had_passed():
    judged = pairs(*[(1.0, 0.0)] * 7, *[(1.0, 1.0)] * 60)
    assert judge(judged, USUAL).verdict == "worse"
    errored = [errs(100 + number, 0.0, 0.0) for number in range(12)]
    assert (judge(judged, USUAL, errored).verdict, judge(judged, USUAL, errored).withheld) == ("inconclusive", "errors")


def test_errors_of_the_base_are_bounds_too():
    judged = pairs(*[(1.0, 0.0)] * 9, *[(1.0, 1.0)] * 60)
    errored = [errs(100 + number, 1.0, 1.0) for number in range(12)]
    errored = [replace(one, before=one.after, after=one.before) for one in errored]
    found = judge(judged, USUAL, errored)
    assert (found.verdict, found.withheld, found.errored) == ("inconclusive", "errors", 12)
    assert found.score.bounds == (pytest.approx(-9 / 81), pytest.approx(3 / 81))
    assert judge(judged, USUAL, errored[:1]).verdict == "worse"


def test_what_errors_leave_of_better_may_be_non_inferior():
    judged = pairs(*[(0.0, 1.0)] * 60, *[(1.0, 1.0)] * 60)
    errored = [errs(200 + number, 1.0, 0.0) for number in range(40)]
    assert judge(judged, ComparisonSettings(margin=0.1)).verdict == "better"
    found = judge(judged, ComparisonSettings(margin=0.1), errored)
    assert (found.verdict, found.withheld) == ("non-inferior", None)


def test_an_errored_sample_bounds_its_case_and_does_not_drop_it():
    some = [pair(number, 1.0, 1.0) for number in range(20)]
    partly = [
        replace(one, after=replace(one.after, status="errored", score=0.9, rate=1.0, samples=4, repeat=5))
        for one in some
    ]
    found = judge(partly, USUAL)
    assert (found.pairs, found.errored) == (20, 20)
    assert found.score.bounds == (pytest.approx(0.72 - 1), pytest.approx(0.92 - 1))


NO_WORSE = ("better", "equivalent", "non-inferior")


@pytest.mark.parametrize("shown", get_args(Verdict))
def test_a_verdict_holds_only_where_the_worst_and_the_best_case_show_as_much(shown):
    for worst, best in product(get_args(Verdict), repeat=2):
        expected = {
            "worse": best == "worse",
            "better": worst == "better",
            "equivalent": worst == best == "equivalent",
            "non-inferior": worst in NO_WORSE,
            "inconclusive": True,
        }[shown]
        left = "non-inferior" if shown in ("better", "equivalent") and worst in NO_WORSE else "inconclusive"
        found = _bounded(*(_Decision((), one, None) for one in (shown, worst, best)))
        if expected:
            assert found == (shown, None), (worst, best)
        else:
            assert found == (left, "errors" if left == "inconclusive" else None), (worst, best)


def test_where_nothing_differs_a_difference_is_seldom_claimed():
    drawn = Random(11)
    claims = [
        judge(pairs(*((0.5, 0.5 + drawn.choice((-1, 1)) * drawn.expovariate(8)) for _ in range(9))), USUAL).verdict
        for _ in range(120)
    ]
    assert sum(claim != "inconclusive" for claim in claims) <= 12  # at most 6 expected; more than 12 once in 100 tries


def scores(*values, size=1, before=0.5):
    """Return differences of the mean score, `size` of them per cluster."""
    clusters = [number // size for number in range(len(values))]
    starts = [before if 0 <= before + value <= 1 else float(value < 0) for value in values]
    ends = [start + value for start, value in zip(starts, values, strict=True)]
    return Measurement("mean score", Differences(starts, ends, clusters))


def alone(found, question):
    return measured([found], question)[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_equivalence_is_as_sure_as_the_border_that_is_nearer(sign):
    one = scores(*[0.2 * sign, 0.0] * 30)
    far, near = (one.differences.p(border * sign) for border in (-0.15, 0.15))
    found = alone(one, ComparisonSettings(margin=0.15))
    assert found.verdict == "equivalent"
    assert far < near == pytest.approx(found.p_of_claim)


def test_non_inferiority_is_held_against_the_border_below():
    one = scores(*[0.2, 0.0] * 30)
    found = alone(one, ComparisonSettings(margin=0.11))
    assert found.verdict == "non-inferior"
    assert found.p_of_claim == pytest.approx(one.differences.p(-0.11))
    assert found.p_of_claim < 0.01 < one.differences.p(0.11)


@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_no_claim_has_the_p_value_of_any_difference_and_with_a_margin_none(margin):
    found = alone(scores(*[0.5, -0.4] * 10), ComparisonSettings(margin=margin))
    assert found.verdict == "inconclusive"
    assert found.p_of_claim == (1.0 if margin else found.p)
    assert 0.05 < found.p < 1.0


@pytest.mark.parametrize(("sign", "margin"), [(1, 0.0), (-1, 0.0), (1, 0.02), (-1, 0.02)])
def test_a_difference_is_held_against_the_border_on_its_side(sign, margin):
    one = scores(*[0.2 * sign, 0.0] * 30)
    found = alone(one, ComparisonSettings(margin=margin))
    assert found.verdict == ("better" if sign > 0 else "worse")
    assert found.p_of_claim == pytest.approx(one.differences.p(sign * margin))
    assert found.p == pytest.approx(one.differences.p())
    assert found.level == pytest.approx(0.95)


def test_too_few_clusters_show_nothing():
    found = alone(scores(*[0.1] * 20, size=5), ComparisonSettings())
    assert (found.verdict, found.p > 0.05, found.interval[0] < 0 < found.interval[1]) == ("inconclusive", True, True)
    assert (found.delta, found.level) == (pytest.approx(0.1), 0.95)


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from((-0.4, -0.1, 0.0, 0.1, 0.2)), min_size=6, max_size=14), min_size=1, max_size=4),
    st.sampled_from((0.0, 0.05)),
)
def test_interval_p_value_and_verdict_never_disagree_however_many_are_tested(parts, margin):
    question = ComparisonSettings(margin=margin)
    found = measured([scores(*values) for values in parts], question)
    for one in found:
        low, high = one.interval
        if one.verdict in ("better", "worse"):
            assert (low > margin - 1e-9) if one.verdict == "better" else (high < 1e-9 - margin)
            assert one.p_of_claim <= question.alpha + 1e-9
        if one.p <= question.alpha and not margin:
            assert one.verdict in ("better", "worse")
    if len(found) == 1:
        (one,), (low, high) = found, found[0].interval
        assert (one.verdict in ("better", "worse")) == (low > margin or high < -margin)


@settings(max_examples=30)
@given(
    values=st.lists(st.sampled_from([-1.0, -0.3, -0.1, 0.0, 0.1, 0.2, 1.0]), min_size=4, max_size=24),
    margin=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_the_rule_without_intervals_gives_the_verdict_with_them(values, margin):
    one = scores(*values)
    shown = alone(one, ComparisonSettings(margin=margin)).verdict
    assert decided([one.differences.evidence("mean score", margin)], 0.05) == shown


@pytest.mark.parametrize(
    ("values", "margin", "verdict"),
    [
        ([0.2, 0.0] * 30, 0.0, "better"),
        ([-0.2, 0.0] * 30, 0.0, "worse"),
        ([0.2, 0.0] * 30, 0.15, "equivalent"),
        ([-0.2, 0.0] * 30, 0.15, "equivalent"),
        ([0.2, 0.0] * 30, 0.11, "non-inferior"),
        ([-0.2, 0.0] * 30, 0.11, "inconclusive"),
        ([-0.2, 0.0] * 30, 0.09, "inconclusive"),
        ([0.2, 0.0] * 30, 0.02, "better"),
        ([-0.2, 0.0] * 30, 0.02, "worse"),
        ([0.5, -0.4] * 10, 0.0, "inconclusive"),
        ([0.2] * 5, 0.0, "inconclusive"),
    ],
)
def test_each_verdict(values, margin, verdict):
    one, question = scores(*values), ComparisonSettings(margin=margin)
    assert alone(one, question).verdict == verdict
