from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentv.reports.commands.trend import render_trend, trend_json
from agentv.stats.series.serial import Effect
from agentv.stats.series.series import Change, Context, Point, Trend


def trend(*values, judged=10, total=10, context=None):
    points = [Point(f"r{place}", value, (0.1, 0.9), judged, total) for place, value in enumerate(values)]
    return Trend.of("refunds", "pass rate", points, context)


FALLING = trend(0.9, 0.82, 0.7, 0.66, 0.6)
FELL = replace(FALLING, line=Effect(-0.076, -0.1, -0.05))


def test_points_lie_on_the_grid_and_the_line_between_them():
    lines = render_trend(FALLING, width=80).split("\n")
    drawn = [line for line in lines if "│" in line]
    assert len(drawn) == 12
    assert drawn[0] == " 100.0% │"
    assert drawn[1].endswith("│●")
    assert drawn[-1] == "   0.0% │"
    assert sum(line.count("●") for line in drawn) == 5
    columns = sorted(column for line in drawn for column, mark in enumerate(line) if mark == "●")
    assert columns == [9, 17, 25, 33, 41]


def test_an_axis_that_is_not_whole_is_marked_at_its_ends():
    high = render_trend(trend(0.91, 0.93, 0.92, 0.95, 0.94), width=80).split("\n")
    assert [line[:9] for line in high if line[:9].endswith(("│", "≈"))][::11] == [" 100.0% │", "  70.0% ≈"]
    assert "≈ the axis shows 70.0% to 100.0%, not 0% to 100%" in high
    middle = render_trend(trend(0.5, 0.5, 0.5), width=80)
    assert middle.count("% ≈") == 2
    assert "●" in middle
    assert "≈" not in render_trend(FALLING, width=80)


def test_the_axis_ends_at_0_and_100_percent_though_the_line_goes_on():
    for values in ((0.67, 0.67, 0.0, 0.0, 0.0), (0.3, 0.3, 1.0, 1.0, 1.0)):
        falling = trend(*values)
        assert not all(0 <= falling.theil_sen.at(place) <= 1 for place in range(5))
        axis = [line[:9] for line in render_trend(falling, width=80).split("\n") if line[8:9] == "│"]
        assert (axis[0], axis[-1]) == (" 100.0% │", "   0.0% │")


def test_the_slope_and_what_it_shows():
    lines = render_trend(FELL, width=80).split("\n")
    assert "last: 60.0% of 10 cases, 95% CI 10.0% to 90.0% (r4)" in lines
    assert "slope: -7.60 points a run (95% CI -10.00 to -5.00)" in lines
    assert "The pass rate falls." in lines
    flat = render_trend(trend(0.5, 0.5, 0.5, 0.5), width=80)
    assert "No trend is shown: the confidence interval contains 0." in flat


@pytest.mark.parametrize(
    ("shown", "note"),
    [
        (trend(0.5, 0.6), "2 runs: a trend needs at least 3 runs."),
        (trend(0.5), "1 run: a trend needs at least 3 runs."),
        (FALLING, "note: 5 runs are few; only a steep trend can be shown"),
        (trend(0.5, judged=8), "note: in 1 run, cases errored or did not run; they are not counted"),
        (
            trend(0.5, context=Context(passed_over=1)),
            "note: 1 run excluded: unfinished, interrupted or without a verdict",
        ),
        (
            trend(0.5, context=Context(not_new=2)),
            ("note: 2 runs excluded: graded stored answers (--regrade, --replay, --cache): no call was made"),
        ),
        (
            trend(0.5, context=Context(ended_early=1)),
            ("note: 1 run excluded: stopped sampling each case once decided, so their mean scores are biased"),
        ),
        (
            trend(0.5, context=Context(last_failed=3)),
            "note: 3 runs excluded: ran only cases that had not passed before (--last-failed)",
        ),
        (
            trend(0.5, context=Context(changes=(Change("r1", 1, 2, 3, targets=True, rules=("repeat 1 → 5",)),))),
            (
                "note: r1 differs from the run before it: 1 case edited, 2 new, 3 gone, another target, repeat 1 → 5;"
                " part of the change may come from that"
            ),
        ),
        (
            replace(FELL, first=2),
            "note: 2 earlier runs share no unchanged case with the later ones: excluded",
        ),
    ],
)
def test_what_weakens_it_is_said(shown, note):
    assert note in render_trend(shown, width=80).split("\n")


def test_runs_of_other_sizes_are_noted():
    points = (*FALLING.points[:4], replace(FALLING.points[4], total=30, judged=30))
    text = render_trend(replace(FALLING, points=points), width=80)
    assert "note: the runs had from 10 to 30 cases; part of the change may come from the cases" in text


def test_no_line_is_wider_than_the_terminal_however_many_runs():
    text = render_trend(trend(*(place % 7 / 7 for place in range(300))), width=60)
    assert max(map(len, text.split("\n")[:15])) <= 60


def test_a_mean_score_is_no_percentage_and_a_name_is_shown_safely():
    scored = replace(FALLING.points[0], interval=None)
    text = render_trend(Trend.of("a\x1b[2J", "mean score", [scored]), width=80)
    assert "last: 0.900 of 10 cases (r0)" in text
    assert text.startswith(r"a\x1b[2J: mean score over 1 run")


def test_the_target_of_a_trend_is_named():
    alone = replace(
        trend(0.5, 0.6, context=Context(changes=(Change("r1", targets=True),), undivided=2)), target="gpt\x1b[2J"
    )
    lines = render_trend(alone, width=80).split("\n")
    assert lines[0] == r"refunds, target gpt\x1b[2J: pass rate over 2 runs"
    assert any("r1 differs from the run before it: other settings of the target;" in line for line in lines)
    told = json.loads(trend_json(alone))
    assert (told["target"], told["several_suites"]) == ("gpt\x1b[2J", 2)
    told = json.loads(trend_json(trend(0.5)))
    assert (told["target"], told["several_suites"]) == (None, 0)


def test_json_has_no_infinity():
    told = json.loads(trend_json(trend(0.5, 0.6)))
    assert told["least_squares"]["slope_interval"] is None
    assert told["direction"] == "too few runs"
    assert [run["value"] for run in told["runs"]] == [0.5, 0.6]
    told = json.loads(trend_json(FELL))
    assert (told["theil_sen"]["slope"], told["least_squares"]["slope_interval"]) == (
        FELL.theil_sen.slope,
        [-0.1, -0.05],
    )
    assert (told["step"], told["shared_cases"], told["runs_left_out"], told["changes"]) == (None, 0, 0, [])


def test_of_many_changes_the_newest_are_told():
    changes = tuple(Change(f"r{number}", edited=number) for number in range(1, 8))
    lines = render_trend(trend(0.5, context=Context(changes=changes)), width=80).split("\n")
    assert [line.split()[1] for line in lines if "differs from the run before" in line] == [
        "r3",
        "r4",
        "r5",
        "r6",
        "r7",
    ]
    assert "note: 2 more changes before these" in lines


def test_a_step_is_told_with_the_run_that_it_began_with():
    stepped = replace(FELL, step=Effect(-0.2, -0.3, -0.1), since=2)
    lines = render_trend(stepped, width=80).split("\n")
    assert "since r2: -20.00 points (95% CI -30.00 to -10.00); a step fits better than a line" in lines
    assert "The pass rate is lower since r2." in lines
    told = json.loads(trend_json(stepped))
    assert (told["direction"], told["step"]) == ("falls", {"size": -0.2, "size_interval": [-0.3, -0.1], "since": "r2"})
    unsure = replace(stepped, step=Effect(-0.2, -0.5, 0.1))
    assert "No trend is shown: the confidence interval contains 0." in render_trend(unsure, width=80)
