import json
from math import inf

import pytest
from msgspec.structs import replace

from agentv.model.run.matrix import MeasuredShare
from agentv.reports.power import PilotShown, PlanShown, power_data, render_power
from agentv.stats.intervals.means import MeanInterval
from agentv.stats.power import Assumptions, ComparisonPlan, Noise


def planned(cases, repeat, assumed=None):
    return ComparisonPlan(cases, repeat, assumed or Assumptions())


PLAN = planned(200, 3)
MEAN = MeanInterval(0.7, 0.61, 0.98, 40)
NOISE = Noise(0.08, 0.015, 0.005, (40, 200, 600))
PILOT = PilotShown("20261121T140322Z-7f3a", 40, 5, (140, 200), MEAN, MeasuredShare(0.1, (0.04, 0.2)), NOISE)
FOUND = PlanShown(PLAN, None, PILOT, "run", "run")


def lines_of(plan, detect=None, *, sized=True):
    return render_power(PlanShown(plan, detect, cases_given=sized)).split("\n")


def test_without_a_number_of_cases_only_how_many_it_takes():
    assert lines_of(planned(200, 1), 0.05, sized=False)[0].startswith("About ")


def test_nothing_is_promised_always():
    certain = planned(500, 1, Assumptions(alike=1.0, shared=1.0))
    assert "show a drop of 0.5 more than 99.99% of the time." in lines_of(certain, 0.5)[0]
    assert "show a drop of 0.001 less than 0.01% of the time" in lines_of(planned(10, 1, certain.assumed), 0.001)[0]


def test_a_table_of_what_is_shown():
    headline, _, *lines = lines_of(PLAN)
    assert headline == "With 200 cases, a comparison notices a pass rate that is 8 points lower."
    assert lines[0] == (
        "Smallest difference of the pass rate that two runs with 3 samples of each show with 80.0% power, about:"
    )
    assert lines[2].split() == ["cases", "drop", "rise"]
    cases, *least = lines[5].split()
    shown = (cases, [float(one) for one in least])
    assert shown == ("200", [pytest.approx(0.082, abs=0.01), pytest.approx(0.07, abs=0.01)])
    assert not any("Fewer than" in line for line in lines)


def test_where_no_drop_is_seen_none_is_named():
    hopeless = planned(4, 1)
    headline, _, *lines = lines_of(hopeless)
    assert headline == "4 cases cannot show that a candidate is worse, whatever the results."
    assert lines[3].split() == ["2–4", "none", "none"]
    assert "Fewer than 6 cases cannot show a difference, whatever the results." in lines
    shown = lines_of(hopeless, 0.1)[0]
    assert shown == "Not enough: two runs of 4 cases cannot show a difference, whatever the results."
    told = json.loads(json.dumps(power_data(PlanShown(hopeless))))
    assert (told["least_drop"], told["least_rise"], told["fewest_cases"]) == (None, None, 6)
    assert "No practical number of cases shows a drop of 1e-06." in lines_of(PLAN, 1e-6)


def test_what_is_assumed_is_said_in_one_line():
    *_, said = lines_of(planned(200, 1, Assumptions(rate=0.9)))
    assert said == (
        "Assumed: pass rate 90.0% (--rate); 50.0% of the variance is between cases (--alike); 50.0% of the "
        "difficulty of a case is the same in both runs (--shared); alpha 0.05."
    )
    *_, said = lines_of(planned(200, 1, Assumptions(deviation=0.2, cluster_size=5, correlation=0.3)))
    assert said.startswith("Assumed: mean score 0.8 (SD 0.2) (--rate); ")
    assert said.endswith("; alpha 0.05; clusters of 5 with correlation 0.3.")


@pytest.mark.parametrize(
    ("deviation", "needs"),
    [
        (
            None,
            "Scores are taken to be 0 or 1; where they are not, compare needs the mean score and the pass rate, both.",
        ),
        (
            0.2,
            "compare needs the pass rate, too: both it and the mean score must be within the margin, and are simulated.",
        ),
    ],
)
def test_a_margin_alone_is_planned_for_showing_that_nothing_larger_is_lost(deviation, needs):
    plan = planned(200, 1, Assumptions(margin=0.05, deviation=deviation))
    lines = lines_of(plan)
    assert lines[0].startswith("Not enough: two runs of 200 cases show that the loss is at most 0.05 ")
    assert "would show that the loss is at most 0.05 with 80.0% power." in lines[1]
    assert lines[2] == needs
    told = json.loads(json.dumps(power_data(PlanShown(plan))))
    assert (0 < told["non_inferior"]["chance"] < 0.6, told["margin"]) == (True, 0.05)


def test_what_a_run_showed_is_told_from_what_it_did_not():
    text = render_power(FOUND)
    assert "pass rate 80.0% (20261121T140322Z-7f3a: 140 of 200 trials passed);" in text
    assert "of the variance is between cases (20261121T140322Z-7f3a);" in text
    text = render_power(PlanShown(PLAN, None, replace(PILOT, trials=(40, 40), disagreement=None)))
    assert "(a guess; 20261121T140322Z-7f3a: 40 of 40 trials passed);" in text
    assert "(assumed, because no case has two samples; --alike);" in text
    alike = render_power(PlanShown(PLAN, None, PILOT, "run", "assumed"))
    assert "(assumed, because all verdicts are the same; --alike);" in alike


def shown_of(noise, mean=MEAN):
    return PlanShown(PLAN, None, PilotShown("r", 2, 1, (1, 2), mean, None, noise))


def test_noise_that_is_not_known():
    once = shown_of(Noise(1e-33, None, None, (2, 2, 2)), MeanInterval(0.5, -inf, inf, 1))
    lines = render_power(once).split("\n")
    assert lines[-2] == "r had a mean score of 0.500 (no confidence interval: 1 cluster only)"
    assert power_data(once)["mean_score_interval"] is None
    assert lines[-1:] == ["Every score was the same: 2 cases showed no noise, but others may."]


def test_a_variance_that_is_small_is_not_shown_as_nothing():
    assert render_power(shown_of(Noise(2.1e-5, 0.0, None, (2, 4, 4)))).split("\n")[-4:-2] == [
        "  between cases: variance 2.1e-05 (100.0%)",
        "  between answers to one case, judge included: no variance observed",
    ]


def test_json_holds_all_of_it():
    told = json.loads(json.dumps(power_data(replace(FOUND, detect=0.05))))
    detect = told["detect"]
    assert (detect["difference"], 0.3 < detect["drop"]["chance"] < detect["rise"]["chance"] < 0.6) == (0.05, True)
    assert 350 < detect["rise"]["cases_needed"] < detect["drop"]["cases_needed"] < 600
    trials = {"passed": 140, "judged": 200}
    assert told["from"] == {"run_id": PILOT.run_id, "cases": 40, "repeat": 5, "trials": trials}
    assert (told["rate_from"], told["alike_from"]) == ("run", "run")
    assert (told["noise"]["target"], told["noise"]["advice"]) == (0.015, "more cases")
    assert [line["cases"] for line in told["table"]] == [50, 100, 200, 400, 800, 2000]
