from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentv.model.comparison import Group, Measured, Question
from agentv.reports.comparison import lost_line, render_comparison, verdict_line, warnings
from doubles.comparisons import EVERYTHING, MOVED, UNSURE, WORSE, comparison, key, moved, pair

GOLD = Path(__file__).parent / "gold"


def test_gold():
    rendered = render_comparison(EVERYTHING) + "\n"
    assert rendered == (GOLD / "comparison.txt").read_text(encoding="utf-8")


def test_nothing_that_a_model_said_steers_a_terminal():
    assert "\x1b" not in render_comparison(EVERYTHING)


def test_color_paints_the_verdicts_alone():
    plain, painted = render_comparison(EVERYTHING), render_comparison(EVERYTHING, color=True)
    assert "\x1b[1;31mworse\x1b[0m: the mean score" in painted
    assert "\x1b[33mcannot tell\x1b[0m" in painted
    assert [line for line in plain.split("\n") if line not in painted.split("\n")] == [
        line for line in plain.split("\n") if "95% interval -0" in line
    ]


SMALL = replace(UNSURE, pairs=4, clusters=4, detectable=1.0, needed=6)


@pytest.mark.parametrize(
    ("whole", "margin", "line"),
    [
        (WORSE, 0.0, "worse: the mean score is 0.120 lower (95% interval -0.190 to -0.050, p 0.002)"),
        (
            replace(WORSE, delta=0.12, interval=(0.05, 0.19), p=0.0001, verdict="better"),
            0.02,
            "better: the mean score is 0.120 higher (95% interval +0.050 to +0.190, p < 0.001), by more than 0.02",
        ),
        (
            replace(WORSE, delta=0.0, interval=(-0.01, 0.01), p=1.0, verdict="equivalent"),
            0.02,
            (
                "equivalent: the mean score is the same (95% interval -0.010 to +0.010, p 1.000),"
                " so any difference is within 0.02"
            ),
        ),
        (
            UNSURE,
            0.0,
            (
                "cannot tell: the mean score is 0.030 lower (95% interval -0.100 to +0.040, p 0.410);"
                " with 38 cases, a difference below 0.10 is likely to go unseen;"
                " if this difference is real, about 430 cases would show it"
            ),
        ),
        (
            replace(UNSURE, clusters=12),
            0.05,
            (
                "cannot tell: the mean score is 0.030 lower (95% interval -0.100 to +0.040, p 0.410);"
                " with 12 clusters, it may be within the margin of 0.05 or beyond it;"
                " if this difference is real, about 430 clusters would show it; equivalent takes at least 72 clusters"
            ),
        ),
        (
            replace(UNSURE, delta=0.0, needed=None),
            0.0,
            (
                "cannot tell: the mean score is the same (95% interval -0.100 to +0.040, p 0.410);"
                " with 38 cases, a difference below 0.10 is likely to go unseen"
            ),
        ),
        (
            replace(UNSURE, delta=-0.12, interval=(-0.2, -0.01), p=0.125, needed=None),
            0.0,
            (
                "cannot tell: the mean score is 0.120 lower (95% interval -0.200 to -0.010, p 0.125);"
                " 12 cases moved, which is too few to rule out chance"
            ),
        ),
        (
            SMALL,
            0.0,
            (
                "cannot tell: the mean score is 0.030 lower (95% interval -0.100 to +0.040, p 0.410);"
                " 4 cases cannot show a difference for cases like these,"
                " whatever comes out: at least 6 are needed"
            ),
        ),
        (
            None,
            0.0,
            "nothing was compared: each case that both runs hold is errored, or was not run, in one of them",
        ),
    ],
)
def test_the_verdict_is_one_sentence_that_a_person_can_act_on(whole, margin, line):
    assert verdict_line(comparison(whole, question=Question(margin=margin))) == line


RATE = Measured("pass rate", -0.4, (-0.6, -0.2), 0.008, 0.008, "worse")
HIGHER = replace(WORSE, delta=0.138, interval=(0.05, 0.2), p=0.01, rate=RATE, tested=2)


def test_the_measure_that_shows_it_is_named_and_what_the_other_one_does():
    assert verdict_line(comparison(replace(HIGHER, shown_by=("pass rate",)))) == (
        "worse: the pass rate is 0.400 lower (95% interval -0.600 to -0.200, p 0.008),"
        " while the mean score is 0.138 higher (95% interval +0.050 to +0.200, p 0.010)"
    )
    lower = replace(HIGHER, delta=-0.12, rate=replace(RATE, delta=0.4, interval=(0.2, 0.6)))
    assert ", while the pass rate is 0.400 higher (95%" in verdict_line(comparison(lower))
    assert "while" not in verdict_line(comparison(replace(HIGHER, delta=-0.12)))


def test_where_both_decide_both_have_their_numbers_and_it_is_said_that_p_is_corrected():
    text = render_comparison(comparison(replace(HIGHER, delta=-0.12)))
    assert "pass rate 92.1% → 78.9% (95% interval -0.600 to -0.200, p 0.008), normalized gain" in text
    assert "their p-values are corrected for the two of them (Holm)" in text


def test_a_part_is_told_by_the_measure_that_shows_it_and_without_an_interval_where_it_is_small():
    groups = (Group("a", replace(HIGHER, shown_by=("pass rate",))), Group("b", replace(UNSURE, interval=None)))
    text = render_comparison(comparison(question=Question(by="suite"), groups=groups))
    assert "worse        -0.400 pass rate   95% interval -0.600 to -0.200" in text
    assert "cannot tell  -0.030 mean score  too few for an interval" in text
    assert "p and verdict are corrected for 2 comparisons (Holm), intervals are not" in text


def test_what_three_digits_do_not_show_is_no_nothing():
    tiny = replace(WORSE, delta=0.00004, interval=(0.00002, 0.0003), verdict="better")
    assert verdict_line(comparison(tiny)).startswith(
        "better: the mean score is 4.0e-05 higher (95% interval +2.0e-05 to +3.0e-04,"
    )


def test_mcnemars_p_value_is_left_out_where_there_is_none():
    moves = replace(WORSE.moves, flips_p=None, win_interval=None)
    text = render_comparison(comparison(replace(WORSE, clusters=12, moves=moves)))
    assert ("\n1 now pass, 6 now fail\n" in text, "are wins" in text) == (True, False)


def test_of_one_run_it_is_said_that_it_is_one_and_how_its_targets_are_compared():
    assert verdict_line(comparison(same=True)) == "no difference: both are the same run"
    several = comparison(same=True)
    several = replace(several, base=replace(several.base, targets=("gpt", "claude", "mini")))
    assert verdict_line(several).endswith("name them: --target gpt --target claude")


def test_cases_that_are_lost_are_named_with_what_became_of_them():
    lost = {key("a"): "missing", key("b"): "errored"}
    assert lost_line(comparison(lost=lost)) == (
        "2 cases passed in the base and do not in the candidate 20261122T090000Z-11ab:"
        " refunds: a (missing), refunds: b (errored)"
    )


def test_an_interval_is_called_by_its_level():
    assert "(99% interval" in verdict_line(comparison(question=Question(alpha=0.01)))


def test_what_would_go_unseen_is_told_with_two_digits_that_count():
    assert "a difference below 0.018 is likely" in verdict_line(
        comparison(replace(UNSURE, delta=-0.01, detectable=0.0178))
    )


def test_what_would_go_unseen_is_no_nothing_and_verdicts_alone_have_no_mean_score():
    unsure = replace(UNSURE, delta=-0.0001, detectable=0.00028, needed=None)
    assert "a difference below 2.8e-04 is likely" in verdict_line(comparison(unsure))
    text = render_comparison(comparison(replace(WORSE, measure="pass rate")))
    assert "worse: the pass rate is 0.120 lower" in text
    assert "\npass rate 92.1% → 78.9%, normalized gain" in text


def test_without_a_verdict_there_are_no_numbers():
    assert "mean score" not in render_comparison(comparison(None, moved=(), pairs=()))


def test_what_hangs_together_is_told():
    assert "they hang together in 12 clusters" in render_comparison(comparison(replace(WORSE, clusters=12)))


def test_p_values_that_say_nothing_are_not_shown_of_groups_with_a_margin():
    text = render_comparison(replace(EVERYTHING, question=Question(by="suite", margin=0.01)))
    (orders,) = (line for line in text.split("\n") if line.startswith("  orders"))
    assert "p " not in orders


def test_what_is_not_shown_of_the_cases_that_moved_is_counted():
    pairs = [pair(f"case-{number}", 1.0, 0.0) for number in range(7)]
    text = render_comparison(comparison(pairs=(*pairs, pair("alike", 1.0, 1.0))))
    assert "Moved (7), worst first" in text
    assert "  and 5 more; --limit shows more of them" in text


def test_targets_are_named_where_the_candidate_has_several():
    several = comparison()
    several = replace(several, candidate=replace(several.candidate, targets=("gpt", "claude")))
    assert "refunds: return-late on claude: " in render_comparison(several)


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
        "1 case errored in one of the runs, and left out: refunds: broken",
        "2 cases were not finished by one of the runs, and left out: refunds: late-1, refunds: late-2",
    ]
    assert list(warnings(comparison())) == []


def test_a_run_that_is_not_whole_is_warned_of():
    cut = comparison()
    cut = replace(cut, candidate=replace(cut.candidate, missing=12))
    assert list(warnings(cut)) == ["the candidate 20261122T090000Z-11ab is not whole: 12 planned cases did not run"]
