import json

import pytest
from msgspec.structs import replace

from agentv.model.run.runs import LeftOutRun, RunDifference, Trend, TrendRun
from agentv.reports.trend import render_trend, trend_data

FLAT = RunDifference("r0", 100, -0.01, (-0.06, 0.039), 1.0, 0.025)
FELL = RunDifference("r1", 100, -0.29, (-0.389, -0.198), 1e-8, 0.004, "lower")
RUNS = (
    TrendRun("r0", "a" * 40, 0.87, (0.79, 0.922), 100, 100),
    TrendRun("r1", "b" * 40, 0.86, (0.779, 0.915), 100, 100, FLAT),
    TrendRun("r2", None, 0.57, (0.472, 0.663), 100, 100, FELL),
)
STEP = Trend("refunds", "gpt", "pass rate", RUNS, 0, "r0", False, replace(FELL, before="r0", difference=-0.3))


def lines(trend):
    return render_trend(trend, width=120).split("\n")


def test_the_sentence_names_the_run_after_which_it_changed_and_the_commits():
    assert lines(STEP) == [
        (
            "The pass rate fell after r1 (commit bbbbbbbbb): 86.0% there, 57.0% in r2; difference -29.0 points "
            "(95% CI -38.9 to -19.8, 100 cases)."
        ),
        (
            "The latest run, r2, is lower than the first run shown as baseline r0; difference -30.0 points "
            "(95% CI -38.9 to -19.8, 100 cases)."
        ),
        "",
        "refunds on gpt: pass rate of 3 runs, oldest first",
        "run  commit     pass rate  95% CI          from the run before (95% CI)",
        "r0   aaaaaaaaa  87.0%      79.0% to 92.2%",
        "r1   bbbbbbbbb  86.0%      77.9% to 91.5%  -1.0 (-6.0 to +3.9)",
        "r2              57.0%      47.2% to 66.3%  -29.0 (-38.9 to -19.8) lower",
    ]


@pytest.mark.parametrize(
    ("trend", "sentence"),
    [
        (
            replace(STEP, runs=RUNS[:1], from_baseline=None),
            "Nothing to compare: r0 (commit aaaaaaaaa) is the first whole run; its pass rate is 87.0%.",
        ),
        (
            replace(STEP, runs=(RUNS[0], replace(RUNS[1], change=None)), from_baseline=None),
            (
                "Nothing to compare: r1 (commit bbbbbbbbb) has no case in common with the one before it; its pass rate "
                "is 86.0%."
            ),
        ),
        (
            replace(STEP, runs=RUNS[:2], from_baseline=FLAT),
            (
                "No change from one run to the next is shown; from r0 to r1: difference -1.0 points "
                "(95% CI -6.0 to +3.9, 100 cases)."
            ),
        ),
        (
            replace(STEP, runs=(*RUNS, replace(RUNS[1], run_id="r3", change=replace(FLAT, before="r2")))),
            (
                "No further change is shown since; from r2 to r3: difference -1.0 points "
                "(95% CI -6.0 to +3.9, 100 cases)."
            ),
        ),
        (
            replace(STEP, pinned=True, from_baseline=FLAT),
            (
                "No difference of the latest run from the pinned baseline r0 is shown: difference -1.0 points "
                "(95% CI -6.0 to +3.9, 100 cases)."
            ),
        ),
        (
            replace(STEP, measure="mean score"),
            (
                "The mean score fell after r1 (commit bbbbbbbbb): 0.860 there, 0.570 in r2; difference -0.290 "
                "(95% CI -0.389 to -0.198, 100 cases)."
            ),
        ),
    ],
)
def test_each_state_has_its_sentence(trend, sentence):
    assert sentence in lines(trend)


@pytest.mark.parametrize(
    ("trend", "note"),
    [
        (
            replace(STEP, runs=(*RUNS[:2], replace(RUNS[2], change=replace(FELL, direction=None, p=0.01)))),
            "note: 1 more interval excluded 0, but a series of comparisons does that by chance; a difference is shown",
        ),
        (
            replace(STEP, runs=(*RUNS[:2], replace(RUNS[2], change=replace(FELL, direction=None, errors_decide=True)))),
            "note: 1 difference not shown, because errored cases could have decided otherwise",
        ),
        (
            replace(STEP, runs=(RUNS[0], replace(RUNS[1], judged=98), RUNS[2])),
            "note: in 1 run, cases errored or did not run; they are not in the pass rate",
        ),
        (
            replace(STEP, runs=(RUNS[0], replace(RUNS[1], notes=("cases: 3 edited", "other settings")), RUNS[2])),
            "note: r1 differs from the run before it: cases: 3 edited; other settings",
        ),
        (replace(STEP, earlier=4), "note: 4 earlier runs not listed (--last)"),
        (
            replace(STEP, left_out=(LeftOutRun("a", "ran on x"), LeftOutRun("b", "y"), LeftOutRun("c", "ran on x"))),
            "note: 2 runs left out: ran on x: a, c",
        ),
    ],
)
def test_what_weakens_it_and_what_is_left_out_is_noted(trend, note):
    assert any(line.startswith(note) for line in lines(trend)), lines(trend)


def test_names_are_shown_safely():
    assert r"a\x1b[2J on gpt: pass rate of 3 runs, oldest first" in lines(replace(STEP, suite="a\x1b[2J"))


def test_json_has_every_number_and_an_error_that_belongs_to_its_interval():
    told = json.loads(json.dumps(trend_data(STEP)))
    shown = list(told)
    assert shown == [*("suite", "target", "measure", "runs", "earlier_runs", "baseline", "from_baseline", "left_out")]
    assert told["runs"][0]["error"] == pytest.approx((0.922 - 0.79) / 2 / 1.959964)
    assert told["runs"][2]["change"] == {
        "before": "r1",
        "cases": 100,
        "difference": -0.29,
        "interval": [-0.389, -0.198],
        "p": 1e-8,
        "level": 0.004,
        "direction": "lower",
        "errors_decide": False,
    }
    assert (told["baseline"], told["measure"]) == ({"run_id": "r0", "pinned": False}, "pass_rate")
