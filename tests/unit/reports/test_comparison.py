import json
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.model.run.comparison import (
    CaseKey,
    ComparisonSettings,
    LeftOut,
    Matrix,
    MeasureResult,
    Moves,
    RunComparison,
    RunLabel,
)
from agentv.model.run.matrix import UsageDifference
from agentv.reports.comparison import headline, lost_line, render_comparison, render_matrix, verdict_line, warnings
from agentv.reports.comparison_json import comparison_json
from agentv.reports.run_comparison import lost_lines, render_run_comparison, run_warnings
from doubles.comparisons import EVERYTHING, MOVED, UNSURE, WORSE, comparison, key, moved
from doubles.matrix import HOSTILE, MATRIX

GOLD = Path(__file__).parent / "gold"


def test_gold():
    assert render_comparison(EVERYTHING) + "\n" == (GOLD / "comparison.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("whole", "margin", "sentence"),
    [
        (WORSE, 0.0, "The candidate passes less often than the base (-12.0 points, 95% CI -19.0 to -5.0)."),
        (
            replace(WORSE, verdict="equivalent"),
            0.05,
            "The candidate and the base are equally good: any difference is at most 0.05.",
        ),
        (replace(WORSE, verdict="non-inferior"), 0.05, "The candidate can replace the base: it loses at most 0.05."),
        (
            replace(UNSURE, needed=49, rates_compare=False),
            0.0,
            (
                "The candidate scores lower than the base (mean score -0.030, 95% CI -0.100 to +0.040), "
                "which is probably chance. About 49 cases would tell."
            ),
        ),
    ],
)
def test_a_sentence_comes_first(whole, margin, sentence):
    found = comparison(whole, question=ComparisonSettings(margin=margin))
    assert headline(found) == sentence
    assert render_comparison(found).startswith(f"{sentence}\n\n")


def test_parts_of_one_run_have_their_names_and_what_a_case_takes_stands_below():
    cost = UsageDifference("cost_usd", 38, 0, 0.13, 0.17, 0.04, (0.01, 0.07))
    found = comparison(replace(WORSE, usage=(cost,)))
    parts = (replace(found.base, variants=(name,)) for name in ("bare", "with-skill"))
    found = replace(found, **dict(zip(("base", "candidate"), parts, strict=True)))
    assert headline(found) == (
        "with-skill passes less often than bare (-12.0 points, 95% CI -19.0 to -5.0), "
        "and costs $0.0400 more per case (+31%)."
    )
    shown = render_comparison(found, verbose=True)
    assert "per case  bare     with-skill  difference\ncost      $0.1300  $0.1700     +$0.0400 (+31%)" in shown
    assert "95% CI +$0.0100 to +$0.0700" in shown
    assert "paired t interval" in shown


def test_nothing_that_a_model_said_steers_a_terminal():
    assert "\x1b" not in render_comparison(EVERYTHING)


def test_color_paints_the_verdicts_alone():
    plain, painted = render_comparison(EVERYTHING), render_comparison(EVERYTHING, color=True)
    assert "\x1b[1;31mworse\x1b[0m: the mean score" in painted
    assert "\x1b[33minconclusive\x1b[0m" in painted
    shown = [line for line in plain.split("\n") if line not in painted.split("\n")]
    assert shown == [line for line in plain.split("\n") if "95% CI -0" in line]


def scored(whole, **given):
    """Return the judgement with other values for its mean score."""
    return replace(whole, score=replace(whole.score, **given))


SMALL = replace(UNSURE, pairs=4, clusters=4, detectable=inf, needed=None)
ERRORED = replace(
    scored(UNSURE, interval=(0.01, 0.1), delta=0.05, bounds=(-0.2, 0.1)), errored=12, withheld="errors", needed=None
)


@pytest.mark.parametrize(
    ("whole", "margin", "line"),
    [
        (WORSE, 0.0, "worse: the mean score is 0.120 lower (95% CI -0.190 to -0.050, p 0.002)"),
        (
            replace(scored(WORSE, delta=0.12, interval=(0.05, 0.19), p=0.0001), verdict="better"),
            0.02,
            "better: the mean score is 0.120 higher (95% CI +0.050 to +0.190, p < 0.001), by more than 0.02",
        ),
        (
            replace(scored(WORSE, delta=0.0, interval=(-0.01, 0.01), p=1.0), verdict="equivalent"),
            0.02,
            (
                "equivalent: 95% confident that any difference is at most 0.02;"
                " no difference of the mean score seen (95% CI -0.010 to +0.010, p 1.000)"
            ),
        ),
        (
            replace(scored(WORSE, delta=0.02, interval=(-0.012, 0.05), p=0.2), verdict="non-inferior"),
            0.05,
            (
                "non-inferior: 95% confident that the loss is at most 0.05;"
                " the mean score is 0.020 higher (95% CI -0.012 to +0.050, p 0.200)"
            ),
        ),
        (
            UNSURE,
            0.0,
            (
                "inconclusive: the mean score is 0.030 lower, but anything from -0.100 to +0.040 is possible"
                " (95% CI -0.100 to +0.040, p 0.410)"
            ),
        ),
        (
            replace(UNSURE, clusters=12),
            0.05,
            (
                "inconclusive: the mean score is 0.030 lower, but anything from -0.100 to +0.040 is possible"
                " (95% CI -0.100 to +0.040, p 0.410), within the margin of 0.05 or beyond it;"
                " 'equivalent' requires at least 72 clusters"
            ),
        ),
        (
            replace(scored(UNSURE, delta=0.0), needed=None),
            0.0,
            (
                "inconclusive: no difference seen; anything from -0.100 to +0.040 is possible"
                " (95% CI -0.100 to +0.040, p 0.410);"
                " with 38 cases, a difference below 0.10 is likely to be missed"
            ),
        ),
        (
            replace(
                scored(UNSURE, delta=0.117, interval=(-0.04, 0.24), p=0.145, plain=(0.09, 0.14)),
                pairs=20,
                clusters=20,
                moves=Moves(20, 0, 0, 0, 0),
                needed=47,
            ),
            0.0,
            (
                "inconclusive: 20 of 20 cases improved, but with 20 cases up to 17% of others could get much worse"
                " (95% CI -0.040 to +0.240, p 0.145)"
            ),
        ),
        (SMALL, 0.0, "inconclusive: 4 cases cannot show a difference, whatever the results; at least 6 are needed"),
        (
            ERRORED,
            0.0,
            (
                "inconclusive: 12 cases errored, which decides the verdict: if all had failed or passed, the difference of the mean score"
                " would be between -0.200 and +0.100"
            ),
        ),
        (None, 0.0, "nothing to compare: every case in both runs errored or did not run in one of them"),
    ],
)
def test_the_verdict_is_one_sentence_that_a_person_can_act_on(whole, margin, line):
    assert verdict_line(comparison(whole, question=ComparisonSettings(margin=margin))) == line


RATE = MeasureResult("pass rate", -0.4, (-0.6, -0.2), 0.008, 0.008, "worse", 0.95)
HIGHER = replace(scored(WORSE, delta=0.138, interval=(0.05, 0.2), p=0.01), rate=RATE, tested=2)


def test_the_measure_that_shows_it_is_named_and_what_the_other_one_does():
    assert verdict_line(comparison(replace(HIGHER, shown_by=("pass rate",)))) == (
        "worse: the pass rate is 40.0 points lower (95% CI -60.0 to -20.0, p 0.008),"
        " while the mean score is 0.138 higher (95% CI +0.050 to +0.200, p 0.010)"
    )
    lower = replace(scored(HIGHER, delta=-0.12), rate=replace(RATE, delta=0.4, interval=(0.2, 0.6)))
    assert ", while the pass rate is 40.0 points higher (95%" in verdict_line(comparison(lower))
    assert "while" not in verdict_line(comparison(scored(HIGHER, delta=-0.12)))


def test_measures_that_contradict_each_other_are_both_told():
    apart = replace(HIGHER, verdict="inconclusive", withheld="measures", shown_by=())
    assert verdict_line(comparison(apart)) == (
        "inconclusive: the two measures contradict each other: the mean score is 0.138 higher (95% CI +0.050 to +0.200,"
        " p 0.010), while the pass rate is 40.0 points lower (95% CI -60.0 to -20.0, p 0.008)"
    )


def test_where_both_decide_both_have_their_numbers_and_the_method_says_that_they_are_corrected():
    text = render_comparison(comparison(scored(HIGHER, delta=-0.12, plain=(-0.15, -0.09))))
    assert "Holm" not in text
    text = render_comparison(comparison(scored(HIGHER, delta=-0.12, plain=(-0.15, -0.09))), verbose=True)
    assert "plain paired t interval, without allowance for unseen cases: -0.150 to -0.090" in text
    assert "pass rate 92.1% → 78.9%, -40.0 points (95% CI -60.0 to -20.0, p 0.008)" in text
    assert "p-values are corrected for 2 tests (Holm); intervals are those of each measure alone" in text


def test_errors_are_counted_with_what_they_could_change():
    text = render_comparison(comparison(ERRORED))
    assert "12 cases errored: the difference of the mean score is -0.200 at worst, +0.100 at best" in text


def test_of_one_run_it_is_said_that_it_is_one_and_how_its_targets_are_compared():
    assert verdict_line(comparison(same=True)) == "no difference: both are the same run"
    several = comparison(same=True)
    several = replace(several, base=replace(several.base, targets=("gpt", "claude", "mini")))
    assert verdict_line(several).endswith("to compare two of its targets, add --target gpt --target claude")


def test_cases_that_are_lost_are_named_with_what_became_of_them():
    assert lost_line(comparison(lost={key("a"): "missing", key("b"): "errored"})) == (
        "2 cases passed in the base and do not in the candidate 20261122T090000Z-11ab:"
        " refunds: a (missing), refunds: b (errored)"
    )


def test_what_would_go_unseen_is_no_nothing_and_verdicts_alone_have_no_mean_score():
    unsure = replace(scored(UNSURE, delta=-0.0001), detectable=0.00028, needed=None)
    assert "a difference below 2.8e-04 is likely" in verdict_line(comparison(unsure))
    text = render_comparison(comparison(scored(WORSE, measure="share of cases that passed")))
    assert "worse: the share of cases that passed is 12.0 points lower" in text
    assert "\nshare of cases that passed 92.1% → 78.9%\n" in text
    unlike = replace(scored(WORSE, measure="share of cases that passed"), rates_compare=False)
    assert "→" not in render_comparison(comparison(unlike)).partition("Moved")[0]


def test_without_a_verdict_there_are_no_numbers():
    assert "mean score" not in render_comparison(comparison(None, moved=(), pairs=()))


def test_samples_and_prompts_are_named_where_there_are_several():
    one = moved(prompt="short")
    one = replace(
        one,
        pair=replace(one.pair, before_key=one.pair.before_key._replace(prompt="plain")),
        after=replace(one.after, sample=2, repeat=3, output=None),
    )
    text = render_comparison(comparison(moved=(one,)))
    assert "refunds: return-late with plain → short: passed → failed, 1.00 → 0.00" in text
    assert "    after (sample 2 of 3): no answer" in text


def test_long_answers_are_cut():
    (one, _) = MOVED
    text = render_comparison(comparison(moved=(replace(one, after=replace(one.after, output="x" * 10_000)),)))
    assert max(map(len, text.split("\n"))) < 300


def test_warnings_count_what_broke_and_what_was_not_run():
    assert list(warnings(EVERYTHING)) == [
        "1 case errored in one of the runs: refunds: broken",
        "2 cases were not finished or not checked in one of the runs: refunds: late-1, refunds: late-2",
    ]
    assert list(warnings(comparison())) == []


def shown(found):
    return json.loads("".join(comparison_json(found, here="/repo")))


def test_the_verdict_and_its_numbers():
    found = shown(EVERYTHING)
    told = (found["verdict"], found["cases"], found["mean_delta"], found["delta_interval"])
    assert told == ("worse", 38, -0.12, [-0.19, -0.05])
    assert (found["wins"], found["losses"], found["ties"], found["now_pass"], found["now_fail"]) == (3, 9, 26, 1, 6)
    assert (found["p_value"], found["confidence"]) == (0.0021, 0.95)
    told = (found["difference"], found["interval"], found["p"], found["measure"])
    assert told == (-0.12, [-0.19, -0.05], 0.0021, "mean score")
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
    told = (found["pass_rate_interval"], found["pass_rate_p_value"], found["shown_by"])
    assert told == ([-0.6, -0.2], 0.008, ["pass rate"])
    unlike = shown(comparison(replace(WORSE, rates_compare=False)))
    assert (unlike["pass_rate"], unlike["pass_rate_delta"]) == (None, None)
    alike = shown(comparison(WORSE, lost={key("a"): "errored"}))
    assert (alike["pass_rate_delta"], alike["pass_rate_interval"]) == (-0.12, [-0.19, -0.05])
    told = alike["lost"]
    assert told == [{"suite": "refunds", "test_id": "a", "prompt_id": None, "target": "claude", "status": "errored"}]


def test_cases_that_moved_have_both_answers_and_the_checks_that_changed():
    first = shown(EVERYTHING)["moved"][0]
    found = (first["test_id"], first["status"], first["score"], first["delta"], first["outcome"])
    assert found == ("return-late", ["passed", "failed"], [1.0, 0.0], -1.0, "loss")
    found = (first["base"]["output"], first["candidate"]["output"])
    assert found == ("You may return it within 30 days.", "No.\x1b[2J")
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
    told = [(one["base"], one["candidate"], one["verdict"]) for one in found["comparisons"]]
    assert told == [(0, 1, "worse"), (0, 2, "inconclusive")]
    assert (found["cases"][0]["scores"], found["cases_omitted"]) == ([1.0, None, 0.5], 2)


LEGEND = "+ better, - worse, = equivalent, > non-inferior, ? inconclusive"
RUNS = tuple(RunLabel(f"run-{letter}", f"/repo/{letter}", ("gpt",), 38) for letter in "abc")
THREE = {"tested": 3}
BETTER = replace(
    WORSE, score=replace(WORSE.score, delta=0.09, interval=(0.02, 0.16), p=0.0001), verdict="better", **THREE
)
FOUND = {
    (0, 1): comparison(replace(WORSE, **THREE)),
    (0, 2): comparison(replace(UNSURE, **THREE)),
    (1, 2): comparison(BETTER),
}
SCORES = {key("return-late"): (1.0, 0.0, None), key("refund"): (0.5, 0.9, 0.7)}


def test_every_two_runs_and_every_case_that_differs():
    assert render_matrix(Matrix(RUNS, FOUND, SCORES, omitted=3)).split("\n") == [
        "base   run-a  gpt  38 cases",
        "run 2  run-b  gpt  38 cases",
        "run 3  run-c  gpt  38 cases",
        "",
        f"Difference of the mean score ({LEGEND})",
        "p-values and intervals are corrected for 3 tests (Holm)",
        "         vs base                                                vs run 2",
        "  run 2  - -0.120 (95% CI -0.190 to -0.050, p 0.002, 38 cases)",
        (
            "  run 3  ? -0.030 (95% CI -0.100 to +0.040, p 0.410, 38 cases)"
            "  + +0.090 (95% CI +0.020 to +0.160, p < 0.001, 38 cases)"
        ),
        "",
        "Scores that differ (5), largest difference first",
        "                        base  run 2  run 3",
        "  refunds: return-late  1.00  0.00   -",
        "  refunds: refund       0.50  0.90   0.70",
        "  and 3 more; use --limit to show them",
    ]


def test_runs_that_are_one_and_runs_without_a_common_case_are_told():
    text = render_matrix(Matrix(RUNS, {(0, 1): comparison(same=True), (0, 2): comparison(None)}, {}))
    assert "  run 2  same run" in text
    assert "  run 3  nothing in common  nothing in common" in text
    assert "Scores that differ" not in text


def test_what_is_in_no_number_and_what_else_differs_is_told_beside_the_base():
    apart = comparison(left_out=LeftOut(only_base=(key("old"),)), notes=("the judge differs: a → \x1b[2Jb",))
    text = render_matrix(Matrix(RUNS, {(0, 1): comparison(WORSE), (0, 2): apart, (1, 2): apart}, {}))
    assert "run 3: the judge differs: a → \\x1b[2Jb\nrun 3: 1 case only in the base: refunds: old" in text
    assert text.count("only in the base") == 1


RUN_COMPARISON_FOUND = RunComparison(
    RunLabel("r-1", "/repo/r-1", ("gpt", "claude", HOSTILE), 50, 3),
    ComparisonSettings(),
    MATRIX.comparisons,
    2,
    ({CaseKey("s", "a\x1b", "plain", "claude"): "failed"}, {}, {}),
)


def test_each_comparison_is_a_sentence_with_both_rates():
    shown = render_run_comparison(RUN_COMPARISON_FOUND)
    assert "corrected for 2 tests (Holm)" in shown
    assert (
        "targets, each compared with the first one that ran the same cases\n  claude passes more often than gpt (+29.7"
        in shown
    )
    assert "    pass rate 65.0% → 94.7%; with errors as failed or passed +25.0 to +30.0 points\n" in shown
    assert shown.endswith("compare two: agentv compare r-1 --target gpt --target claude")
    assert "\x1b" not in shown
    assert "\x1b[32mclaude passes more" in render_run_comparison(RUN_COMPARISON_FOUND, color=True)
    assert render_run_comparison(replace(RUN_COMPARISON_FOUND, comparisons=MATRIX.comparisons[2:])).endswith(
        "r-1 --by prompt"
    )


def test_what_is_missing_and_what_was_lost_is_told():
    assert list(run_warnings(RUN_COMPARISON_FOUND)) == ["the run r-1 is incomplete: 3 planned cases did not run"]
    shown = list(lost_lines(RUN_COMPARISON_FOUND))
    assert shown == ["1 result passed with gpt and does not with claude: s: a\\x1b with plain (failed)"]


def test_a_program_gets_the_same_numbers():
    told = json.loads("".join(comparison_json(RUN_COMPARISON_FOUND, here="/repo")))
    assert (told["run"]["results"], told["tests"], told["alpha"]) == ("r-1", 2, 0.05)
    assert [one["verdict"] for one in told["comparisons"]] == ["better", None, "inconclusive"]
    assert told["comparisons"][0]["measures"][0]["p_value"] == 0.01
    assert told["comparisons"][0]["lost"][0]["status"] == "failed"
