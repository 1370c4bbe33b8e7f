from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentv.model.run.matrix import ComparedMeasure, MatrixComparison
from agentv.reports.run.matrix import comparison_words, matrix_data, matrix_lines
from doubles.matrix import HOSTILE, MATRIX
from doubles.views import SUMMARY

RATE = ComparedMeasure("pass rate", 0.8, 0.88, 0.08, (0.02, 0.14), 0.95, 0.01)
SCORE = replace(RATE, measure="mean score", before=0.7, after=0.82, delta=0.12, interval=(0.05, 0.19), p_value=0.0004)
BETTER = MatrixComparison("target", "a", "b", "better", None, 100, 100, 100, measures=(RATE,), shown_by=("pass rate",))


def lines(width=200, **changed):
    return list(matrix_lines(replace(SUMMARY, matrix=replace(MATRIX, **changed)), width))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "b better than a: +8.0 points (95% CI +2.0 to +14.0, p 0.010); 100 cases"),
        (
            {"verdict": "worse", "measures": (replace(RATE, delta=-0.0004, interval=(-0.1, 0.0)),)},
            "b worse than a: -0.04 points (95% CI -10.0 to 0.0, p 0.010); 100 cases",
        ),
        (
            {"measures": (RATE, SCORE), "shown_by": ("mean score",), "pairs": 200, "clusters": 10},
            (
                "b better than a: +8.0 points (95% CI +2.0 to +14.0, p 0.010, not significant) and mean score +0.120 "
                "(95% CI +0.050 to +0.190, p < 0.001); 100 cases in 10 clusters"
            ),
        ),
        (
            {"verdict": "inconclusive", "shown_by": (), "only_base": 4, "errored": 2, "unfinished": 1},
            (
                "b vs a: inconclusive: +8.0 points (95% CI +2.0 to +14.0, p 0.010); 100 cases; "
                "4 only with a, not compared; 2 errored; 1 not finished or not checked"
            ),
        ),
        (
            {"verdict": "inconclusive", "withheld": "errors", "errored": 12},
            (
                "b vs a: inconclusive (the verdict depends on 12 errored pairs): +8.0 points "
                "(95% CI +2.0 to +14.0, p 0.010); 100 cases"
            ),
        ),
        (
            {
                "verdict": "inconclusive",
                "cases": 3,
                "clusters": 3,
            },
            "b vs a: inconclusive (fewer than 6 independent cases): +8.0 points (95% CI +2.0 to +14.0, p 0.010); 3 cases",
        ),
        (
            {"measures": (replace(RATE, measure="share of cases that passed"),), "shown_by": ()},
            "b better than a: +8.0 points in cases that passed (95% CI +2.0 to +14.0, p 0.010); 100 cases",
        ),
        ({"verdict": None, "cases": 0, "errored": 9}, "b vs a: nothing to compare: 9 errored"),
    ],
)
def test_a_comparison_says_what_it_shows(changed, said):
    assert comparison_words(replace(BETTER, **changed)) == said


def test_no_difference_is_never_called_equal_without_a_margin():
    words = comparison_words(replace(BETTER, verdict="inconclusive", measures=(replace(RATE, delta=0.0),)))
    assert "inconclusive: 0.0 points" in words
    assert comparison_words(replace(BETTER, verdict="equivalent"), 0.05).startswith("b equivalent to a, within 0.05: ")


def test_every_name_and_every_cell_is_shown_once_and_nothing_steers():
    shown = "\n".join(lines())
    assert shown.count("90.0% of 10 (40.0% to 90.0%)") == 1
    for part in ("claude", "all prompts", "cost per 1,000", "$1.2000", "812 ms", "40 ms", "10 errored"):
        assert part in shown, part
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_of_many_prompts_targets_and_comparisons_the_first_are_shown():
    many = tuple(f"p{number}" for number in range(25))
    found = lines(
        prompts=many,
        targets=tuple(f"t{number}" for number in range(15)),
        cells=tuple(replace(MATRIX.cells[0], target=f"t{number % 15}", prompt=many[number]) for number in range(25)),
        comparisons=(BETTER,) * 30,
    )
    shown = "\n".join(found)
    assert "and 5 more prompts, in summary.json" in shown
    assert "and 3 more columns, in summary.json" in shown
    assert "and 10 more, in summary.json" in shown


def test_names_that_are_cut_to_the_same_are_told_apart():
    names = tuple(f"openai-compatible-{'x' * 40}-{letter}-preview-2026" for letter in "ab")
    shown = "\n".join(
        lines(
            prompts=("plain",),
            targets=names,
            cells=tuple(replace(cell, target=name) for cell, name in zip(MATRIX.cells[:2], names, strict=True)),
        )
    )
    assert "(1)" in shown
    assert "(2)" in shown


def test_what_was_not_compared_says_why():
    assert "not compared: the run was stopped by its results" in lines(comparisons=None)
    assert "not compared: they have no case in common" in lines(comparisons=())


def test_pages_get_the_sentence_of_each_comparison():
    summary = replace(SUMMARY, matrix=MATRIX)
    data = matrix_data(MATRIX, summary.as_json())
    assert [one["sentence"] for one in data["comparisons"]] == [*map(comparison_words, MATRIX.comparisons)]
    assert data["targets"] == ("gpt", "claude", HOSTILE)
    assert matrix_data(replace(MATRIX, comparisons=None), summary.as_json())["comparisons"] is None
