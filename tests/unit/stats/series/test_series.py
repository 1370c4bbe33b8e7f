from __future__ import annotations

import random
from math import inf

import pytest

from agentv.stats.series.serial import Effect, serial_fit
from agentv.stats.series.series import Change, Context, Paired, Point, Trend, error_of_mean, error_of_rate
from agentv.stats.series.trend import FittedLine


def trend(*values):
    return Trend.of("s", "pass rate", [Point(f"r{place}", value, None, 10, 10) for place, value in enumerate(values)])


@pytest.mark.parametrize(
    ("values", "direction"),
    [
        ((0.5, 0.53, 0.56, 0.585, 0.62, 0.65, 0.68, 0.71, 0.74, 0.765), "rises"),
        ((0.77, 0.74, 0.71, 0.685, 0.65, 0.62, 0.59, 0.56, 0.53, 0.505), "falls"),
        ((0.5, 0.7, 0.5, 0.7, 0.5), "no trend is shown"),
        ((0.5, 0.5, 0.5), "no trend is shown"),
        ((0.6, 0.7, 0.5, 0.7, 0.5, 0.6, 0.7, 0.5), "no trend is shown"),
        ((0.5, 0.9), "too few runs"),
        ((0.5,), "too few runs"),
    ],
)
def test_the_interval_says_where_it_goes(values, direction):
    assert trend(*values).direction == direction


def test_one_run_has_no_line_and_two_have_one_without_an_interval():
    assert (trend(0.5).theil_sen, trend(0.5).line) == (None, None)
    assert trend(0.5, 0.9).theil_sen == FittedLine(pytest.approx(0.4), pytest.approx(0.5))
    assert trend(0.5, 0.9).line == Effect(pytest.approx(0.4), -inf, inf)


def counted(*passed, cases=10):
    points = [
        Point(f"r{place}", one / cases, None, cases, cases, error_of_rate(one / cases, cases))
        for place, one in enumerate(passed)
    ]
    return Trend.of("s", "pass rate", points)


def test_points_on_a_line_are_no_surer_than_their_cases():
    shown = counted(8, 7, 6)
    assert shown.direction == "no trend is shown"
    assert shown.line.low < -0.25
    assert shown.line.high > 0.05
    alike = counted(10, 10, 10, 10)
    assert alike.line.low < 0 < alike.line.high
    assert counted(800, 700, 600, cases=1000).direction == "falls"


def pointed(values, errors):
    points = [
        Point(f"r{place}", value, None, 10, 10, error)
        for place, (value, error) in enumerate(zip(values, errors, strict=True))
    ]
    return Trend.of("s", "pass rate", points)


WAVES = (0.6, 0.63, 0.58, 0.62, 0.61)


def test_an_interval_reaches_as_far_as_the_noise_of_runs_or_that_of_their_cases_whichever_is_larger():
    serial = serial_fit(WAVES).line
    sure = pointed(WAVES, [1e-6] * 5).line
    assert (sure.effect, sure.low, sure.high) == pytest.approx((serial.effect, serial.low, serial.high))
    errors = [0.2, 0.1, 0.3, 0.1, 0.25]
    unsure = pointed(WAVES, errors).line
    reach = 1.959964 * sum(((place - 2) * error) ** 2 for place, error in enumerate(errors)) ** 0.5 / 10
    assert (unsure.low, unsure.high) == pytest.approx((serial.effect - reach, serial.effect + reach))
    assert reach > serial.high - serial.effect


def test_no_rate_moves_by_more_than_all():
    far = pointed((0.1, 0.9, 0.5), [9.0] * 3).line
    assert (far.low, far.high) == (-1.0, 1.0)
    assert pointed((0.0, 0.5, 1.0), [9.0] * 3).line.effect == pytest.approx(0.5)


def test_runs_of_the_same_cases_are_related_as_far_back_as_one_case_links_them():
    def related(*runs):
        return Paired([dict.fromkeys(run, 1.0) for run in runs], {}).related()

    assert [related(), related("a"), related("a", "a"), related("a", "b")] == [0, 1, 2, 1]
    assert related("ab", "bc", "cd", "de") == 4, "each shares a case with the next"
    assert related("ab", "xy", "cd", "de") == 2
    assert related("a", "b", "a", "a") == 2, "what came back after a break is not seen"


def test_the_newest_runs_that_are_related_are_compared_and_the_number_of_a_step_is_that_of_all_runs():
    found = shown([*runs_of([0.9] * 4), *runs_of([0.65] * 9 + [0.3] * 9, changed=0)])
    assert (found.first, found.since, found.direction) == (4, 13, "falls")
    assert len(found.points) == 22


def test_a_run_without_cases_leaves_the_values_of_runs_to_compare():
    runs = runs_of([0.6] * 5)
    points = [Point(f"r{place}", 0.6, None, 60, 60) for place in range(6)]
    found = Trend.of("s", "pass rate", points, None, Paired([*runs, {}], {}))
    assert (found.cases, found.first, found.line.effect) == (0, 0, pytest.approx(0.0))


CASES = 60


def runs_of(levels, changed=None, seed=1):
    """Verdicts of the same cases in each run; easy and hard ones, whose rates all move with the run's level."""
    dice = random.Random(seed)
    own = [dice.uniform(-0.3, 0.3) for _ in range(CASES)]
    return [
        {
            (case, changed is not None and number >= changed): float(dice.random() < level + own[case])
            for case in range(CASES)
        }
        for number, level in enumerate(levels)
    ]


def shown(runs, clusters=None):
    points = [Point(f"r{place}", sum(run.values()) / len(run), None, 60, 60) for place, run in enumerate(runs)]
    return Trend.of("s", "pass rate", points, None, Paired(runs, clusters or {}))


def test_a_step_is_told_with_the_run_that_it_began_with():
    found = shown(runs_of([0.65] * 9 + [0.3] * 9))
    assert (found.direction, found.since, found.first, found.cases) == ("falls", 9, 0, CASES)
    assert found.step.low < -0.35 < found.step.high < 0


def test_a_line_is_told_where_no_step_fits_better():
    found = shown(runs_of([0.7 - 0.025 * place for place in range(18)]))
    assert (found.direction, found.step) == ("falls", None)
    assert found.line.low < -0.025 < found.line.high < 0


def test_harder_cases_that_are_added_are_no_fall():
    runs = runs_of([0.6] * 14)
    for number, run in enumerate(runs):
        if number >= 7:
            run |= {("hard", case): 0.0 for case in range(CASES)}
    found = shown(runs)
    assert [round(point.value, 1) for point in (found.points[0], found.points[-1])][1] < 0.4
    assert found.direction == "no trend is shown"


def test_runs_that_share_no_case_with_the_newest_are_left_out():
    found = shown(runs_of([0.9] * 6 + [0.4] * 7, changed=6))
    assert (found.first, found.direction, found.cases) == (6, "no trend is shown", CASES)
    assert shown(runs_of([0.9] * 6 + [0.4] * 2, changed=6)).direction == "too few runs"


def test_clusters_that_move_alike_make_it_unsure():
    dice = random.Random(5)
    runs = [{case: dice.random() for case in range(40)} for _ in range(12)]
    for number, run in enumerate(runs):
        for case in range(40):  # the cases of two of four customers fall, those of the others rise
            run[case] = 0.5 + 0.02 * run[case] + (0.02 if case % 4 < 1 else -0.03) * number
    alone, clustered = shown(runs), shown(runs, {case: case % 4 for case in range(40)})
    assert alone.direction == "falls"
    assert clustered.direction == "no trend is shown"
    assert clustered.line.high > alone.line.high


def test_a_trend_that_is_not_there_is_seldom_shown_though_noise_goes_on_from_run_to_run():
    # benchmarks/trend.py in short: an ordinary interval is wrong in a third of these
    dice = random.Random(2)
    wrong = 0
    for seed in range(60):
        level, levels = dice.gauss(0, 1), []
        for _ in range(16):
            level = 0.8 * level + 0.6 * dice.gauss(0, 1)
            levels.append(0.6 + 0.06 * level)
        wrong += shown(runs_of(levels, seed=seed)).direction != "no trend is shown"
    assert wrong <= 8


def test_what_weakens_a_trend_is_part_of_it():
    points = [Point(f"r{place}", 0.5, None, 10, 10) for place in range(3)]
    context = Context(passed_over=2, changes=(Change("r1", edited=3),))
    assert Trend.of("s", "pass rate", points, context).context is context
    assert Trend.of("s", "pass rate", points).context == Context() == Context(0, 0, 0, 0, (), 0)


def test_the_error_of_a_point():
    assert error_of_rate(0.8, 100) == pytest.approx((0.797 * 0.203 / 100) ** 0.5, rel=1e-3)
    assert error_of_rate(1.0, 10) == pytest.approx((10.5 * 0.5 / 121 / 10) ** 0.5)
    assert error_of_mean([0.2, 0.4, 0.6]) == pytest.approx(0.2 / 3**0.5)
    assert error_of_mean([0.7, 0.7]) == pytest.approx(error_of_rate(0.7, 2))
    assert error_of_mean([0.7]) == pytest.approx(error_of_rate(0.7, 1))
