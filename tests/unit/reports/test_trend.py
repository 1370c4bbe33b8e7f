from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentv.reports.trend import render_trend, trend_json
from agentv.stats.series import Change, Context, Point, Trend


def trend(*values, judged=10, total=10, context=None):
    points = [Point(f"r{place}", value, (0.1, 0.9), judged, total) for place, value in enumerate(values)]
    return Trend.of("refunds", "pass rate", points, context)


FALLING = trend(0.9, 0.82, 0.7, 0.66, 0.6)


def test_points_lie_on_the_grid_and_the_line_between_them():
    lines = render_trend(FALLING, width=80).split("\n")
    drawn = [line for line in lines if "│" in line]
    assert len(drawn) == 12
    assert drawn[0].startswith("  90.0% │●")
    assert drawn[-1].startswith("  54.5% │")
    assert drawn[-1].endswith("··")  # the line ends below the last point
    assert sum(line.count("●") for line in drawn) == 5
    columns = sorted(line.index("●") for line in drawn if "●" in line)
    assert columns == [9, 17, 25, 33, 41]


def test_the_slope_and_what_it_shows():
    lines = render_trend(FALLING, width=80).split("\n")  # R: confint(lm(y ~ x)) is -0.1003757 to -0.0516243
    assert "last: 60.0% of 10 cases, 95% interval 10.0% to 90.0% (r4)" in lines
    assert "slope: -7.60 points a run (95% interval -10.04 to -5.16)" in lines
    assert "The pass rate falls." in lines
    flat = render_trend(trend(0.5, 0.5, 0.5, 0.5), width=80)
    assert "No trend is shown: the intervals of both slopes hold 0." in flat


@pytest.mark.parametrize(
    ("shown", "note"),
    [
        (trend(0.5, 0.6), "2 runs: no trend can be told from fewer than 3."),
        (trend(0.5), "1 run: no trend can be told from fewer than 3."),
        (FALLING, "note: 5 runs are few; only a steep trend can be shown"),
        (trend(0.5, judged=8), "note: in 1 run cases errored or were not run; they are in no rate"),
        (
            trend(0.5, context=Context(passed_over=1)),
            "note: 1 run passed over, still being written, cut short or without a verdict",
        ),
        (
            trend(0.5, context=Context(not_new=2)),
            (
                "note: 2 runs passed over, of answers that were there before (--regrade, --replay, --cache): "
                "nothing was asked anew"
            ),
        ),
        (
            trend(0.5, context=Context(ended_early=1)),
            (
                "note: 1 run passed over, of samples that ended as soon as a case was decided: "
                "their mean scores lie off the truth"
            ),
        ),
        (
            trend(0.5, context=Context(changes=(Change("r1", 1, 2, 3, targets=True),))),
            (
                "note: r1 is not as the run before it: 1 case edited, 2 new, 3 gone, asks another target; "
                "part of what moved may be that"
            ),
        ),
    ],
)
def test_what_weakens_it_is_said(shown, note):
    assert note in render_trend(shown, width=80).split("\n")


def test_runs_of_other_sizes_are_noted():
    points = (*FALLING.points[:4], replace(FALLING.points[4], total=30, judged=30))
    text = render_trend(replace(FALLING, points=points), width=80)
    assert "note: the runs had from 10 to 30 cases; part of what moved may be the cases" in text


def test_no_line_is_wider_than_the_terminal_however_many_runs():
    text = render_trend(trend(*(place % 7 / 7 for place in range(300))), width=60)
    assert max(map(len, text.split("\n")[:15])) <= 60


def test_a_mean_score_is_no_percentage_and_a_name_is_shown_safely():
    scored = replace(FALLING.points[0], interval=None)
    text = render_trend(Trend.of("a\x1b[2J", "mean score", [scored]), width=80)
    assert "last: 0.900 of 10 cases (r0)" in text
    assert text.startswith(r"a\x1b[2J: mean score over 1 run")


def test_json_has_no_infinity():
    told = json.loads(trend_json(trend(0.5, 0.6)))
    assert told["least_squares"]["slope_interval"] is None
    assert told["direction"] == "too few runs"
    assert [run["value"] for run in told["runs"]] == [0.5, 0.6]
    assert json.loads(trend_json(FALLING))["theil_sen"]["slope_interval"][1] < 0


def test_of_many_changes_the_newest_are_told():
    changes = tuple(Change(f"r{number}", edited=number) for number in range(1, 8))
    lines = render_trend(trend(0.5, context=Context(changes=changes)), width=80).split("\n")
    assert [line.split()[1] for line in lines if "is not as the run before" in line] == ["r3", "r4", "r5", "r6", "r7"]
    assert "note: 2 more changes before these" in lines


def test_lines_that_do_not_agree_cannot_tell():
    unsure = replace(FALLING, theil_sen=replace(FALLING.theil_sen, high=0.0))
    text = render_trend(unsure, width=80)
    assert "Cannot tell: the intervals of the two slopes do not lie on the same side of 0." in text
    assert json.loads(trend_json(unsure))["direction"] == "cannot tell"
    assert json.loads(trend_json(unsure))["changes"] == []
