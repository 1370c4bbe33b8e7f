from __future__ import annotations

import json

from msgspec.structs import replace

from agentv.model.run.comparison import Matrix, MeasureResult
from agentv.reports.commands.comparison_json import comparison_json
from doubles.comparisons import EVERYTHING, UNSURE, WORSE, comparison, key


def shown(found):
    return json.loads("".join(comparison_json(found, here="/repo")))


def test_the_verdict_and_its_numbers():
    found = shown(EVERYTHING)
    assert (found["verdict"], found["cases"], found["mean_delta"], found["delta_interval"]) == (
        "worse",
        38,
        -0.12,
        [-0.19, -0.05],
    )
    assert (found["wins"], found["losses"], found["ties"], found["now_pass"], found["now_fail"]) == (3, 9, 26, 1, 6)
    assert (found["p_value"], found["confidence"]) == (0.0021, 0.95)
    assert (found["difference"], found["interval"], found["p"], found["measure"]) == (
        -0.12,
        [-0.19, -0.05],
        0.0021,
        "mean score",
    )
    assert (found["could_still"], found["cases_needed"]) == (None, None)
    assert (found["withheld"], found["errored"], found["delta_bounds"]) == (None, 0, None)
    assert found["base"]["results"] == ".agentv/results/20261121T140322Z-7f3a"
    assert found["by_suite"]["orders"]["verdict"] == "inconclusive"
    assert not {"cases_needed", "detectable_difference"} & found["by_suite"]["orders"].keys()
    assert found["by_suite"]["orders"]["could_still"] == {"lower": -0.1, "upper": 0.04}


def test_both_measures_have_their_numbers_and_those_that_show_the_verdict_are_named():
    rate = MeasureResult("pass rate", -0.4, (-0.6, -0.2), 0.008, 0.009, "worse", 0.95)
    found = shown(comparison(replace(WORSE, rate=rate, shown_by=("pass rate",))))
    assert (found["mean_delta"], found["delta_interval"], found["pass_rate_delta"]) == (-0.12, [-0.19, -0.05], -0.4)
    assert (found["difference"], found["measure"], found["interval"]) == (-0.4, "pass rate", [-0.6, -0.2])
    assert (found["pass_rate_interval"], found["pass_rate_p_value"], found["shown_by"]) == (
        [-0.6, -0.2],
        0.008,
        ["pass rate"],
    )
    unlike = shown(comparison(replace(WORSE, rates_compare=False)))
    assert (unlike["pass_rate"], unlike["pass_rate_delta"]) == (None, None)
    alike = shown(comparison(WORSE, lost={key("a"): "errored"}))
    assert (alike["pass_rate_delta"], alike["pass_rate_interval"]) == (-0.12, [-0.19, -0.05])
    assert alike["lost"] == [
        {"suite": "refunds", "test_id": "a", "prompt_id": None, "target": "claude", "status": "errored"}
    ]


def test_cases_that_moved_have_both_answers_and_the_checks_that_changed():
    first = shown(EVERYTHING)["moved"][0]
    assert (first["test_id"], first["status"], first["score"], first["delta"], first["outcome"]) == (
        "return-late",
        ["passed", "failed"],
        [1.0, 0.0],
        -1.0,
        "loss",
    )
    assert (first["base"]["output"], first["candidate"]["output"]) == (
        "You may return it within 30 days.",
        "No.\x1b[2J",
    )
    assert [change["name"] for change in first["changed_checks"]] == ["contains: '30 days'", "is kind"]
    assert (first["base_target"], first["target"]) == ("gpt", "claude")


def test_without_a_verdict_it_is_null():
    found = shown(comparison(None, pairs=(), moved=()))
    assert (found["verdict"], found["cases"], found["moved_omitted"]) == (None, 0, 0)


def test_nothing_but_ascii_is_written():
    assert all(map(str.isascii, comparison_json(EVERYTHING, here="/repo")))


def test_a_matrix_refers_to_runs_by_their_place():
    one = comparison(WORSE)
    found = shown(
        Matrix(
            (one.base, one.candidate, one.candidate),
            {(0, 1): one, (0, 2): comparison(UNSURE)},
            {key("a"): (1.0, None, 0.5)},
            omitted=2,
        )
    )
    assert [(one["base"], one["candidate"], one["verdict"]) for one in found["comparisons"]] == [
        (0, 1, "worse"),
        (0, 2, "inconclusive"),
    ]
    assert (found["cases"][0]["scores"], found["cases_omitted"]) == ([1.0, None, 0.5], 2)
