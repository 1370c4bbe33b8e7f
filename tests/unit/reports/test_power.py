from __future__ import annotations

import json
from math import inf

import pytest

from agentv.reports.power import PilotShown, power_json, render_power
from agentv.stats.classification import Measured
from agentv.stats.clustered import MeanInterval
from agentv.stats.planning import Assumed, Plan
from agentv.stats.variance import Noise

PLAN = Plan(200, 3)
MEAN = MeanInterval(0.7, 0.61, 1.02, 40)
NOISE = Noise(0.08, 0.015, 0.005, (40, 200, 600))
PILOT = PilotShown("20261121T140322Z-7f3a", 40, 5, MEAN, Measured(0.1, 0.04, 0.2), NOISE)


def test_a_difference_that_matters():
    assert render_power(PLAN, 0.05, None, sized=True).split("\n")[:3] == [
        "Not enough: two runs of 200 cases with 3 samples of each show a difference of 0.05 48.7% of the time.",
        "The least difference that they show 80.0% of the time is 0.073.",
        "To show 0.05 80.0% of the time takes 421 cases with 3 samples of each.",
    ]
    assert render_power(PLAN, 0.2, None, sized=True).startswith("Enough: ")


def test_without_a_number_of_cases_only_how_many_it_takes():
    text = render_power(Plan(200, 1), 0.05, None, sized=False)
    assert text.startswith("To show 0.05 80.0% of the time takes 756 cases.\n")


def test_a_table_of_what_is_seen():
    lines = render_power(PLAN, None, None, sized=True).split("\n")
    assert lines[2].split() == ["cases", "repeat", "1", "repeat", "2", "repeat", "3", "repeat", "5", "repeat", "10"]
    assert lines[5].split()[:4] == ["200", "0.098", "0.080", "0.073"]
    assert "two runs of 200 cases with 3 samples of each: 0.073" in lines


def test_where_no_difference_is_seen_none_is_named():
    hopeless = Plan(2, 1)
    assert hopeless.least > 1
    assert render_power(hopeless, None, None, sized=True).split("\n")[3].split() == ["2", "none", *["none"] * 4]
    assert "The least difference" not in render_power(hopeless, 0.1, None, sized=True)
    assert json.loads(power_json(hopeless, None, None))["least_difference"] is None
    never = render_power(PLAN, 1e-6, None, sized=True)
    assert "No number of cases that anybody runs shows a difference of 1e-06." in never


def test_what_is_assumed_is_said():
    text = render_power(Plan(200, 1, Assumed(rate=0.9)), None, None, sized=True)
    assert "pass rate 90.0%, 50.0% of its variance between cases (assumed; --from RUN takes them from a run);" in text


def test_where_the_noise_is():
    lines = render_power(PLAN, None, PILOT, sized=True).split("\n")
    assert "20261121T140322Z-7f3a had a mean score of 0.700 (95% interval 0.610 to 1.000, by case)" in lines
    assert "two samples of one case disagreed 10.0% of the time (95% interval 4.0% to 20.0%)" in lines
    assert lines[-5:] == [
        "Where the noise of its scores is, of 40 cases, 200 answers, 600 votes:",
        "  between cases: variance 0.0800 (80.0%)",
        "  between answers to one case: variance 0.0150 (15.0%)",
        "  between votes on one answer: variance 0.0050 (5.0%)",
        "What makes its mean surer soonest: more cases",
    ]


def test_noise_that_is_not_known():
    once = PilotShown("r", 2, 1, MeanInterval(0.5, -inf, inf, 1), None, Noise(0.0, None, None, (2, 2, 2)))
    lines = render_power(PLAN, None, once, sized=True).split("\n")
    assert lines[-7] == "r had a mean score of 0.500; how sure that is cannot be told from one case"
    assert json.loads(power_json(PLAN, None, once))["mean_score_interval"] is None
    assert lines[-4:] == [
        "  between cases: variance 0.0000",
        "  between answers to one case, judge included: not known; nothing was sampled twice",
        "  between votes on one answer: not known; nothing was sampled twice",
        "Every score was the same: there is no noise.",
    ]


def test_json_holds_all_of_it():
    told = json.loads(power_json(PLAN, 0.05, PILOT))
    assert told["detect"] == {"difference": 0.05, "chance": pytest.approx(0.4867, abs=1e-3), "cases_needed": 421}
    assert told["from"] == {"run_id": PILOT.run_id, "cases": 40, "repeat": 5}
    assert (told["noise"]["target"], told["noise"]["advice"]) == (0.015, "more cases")
    assert [line["cases"] for line in told["table"]] == [50, 100, 200, 400, 800, 2000]
