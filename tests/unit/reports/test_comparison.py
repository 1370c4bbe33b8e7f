from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentv.model.comparison import Question
from agentv.reports.comparison import render_comparison, verdict_line, warnings
from doubles.comparisons import EVERYTHING, MOVED, UNSURE, WORSE, comparison, moved, pair

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
                " with 38 cases, a difference below 0.10 is likely to go unseen; about 430 would tell"
            ),
        ),
        (
            replace(UNSURE, clusters=12),
            0.05,
            (
                "cannot tell: the mean score is 0.030 lower (95% interval -0.100 to +0.040, p 0.410);"
                " with 12 clusters, it may be within the margin of 0.05 or beyond it; about 430 would tell"
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
                " 4 cases cannot show a difference, whatever comes out: at least 6 are needed"
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


def test_of_one_run_it_is_said_that_it_is_one():
    assert verdict_line(comparison(same=True)) == "no difference: both are the same run"


def test_an_interval_is_called_by_its_level():
    assert "(99% interval" in verdict_line(comparison(question=Question(alpha=0.01)))


def test_what_would_go_unseen_is_told_with_two_digits_that_count():
    assert "a difference below 0.018 is likely" in verdict_line(
        comparison(replace(UNSURE, delta=-0.01, detectable=0.0178))
    )


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
