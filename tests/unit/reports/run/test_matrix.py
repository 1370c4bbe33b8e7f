import pytest
from msgspec.structs import replace

from agentv.model.run.matrix import ComparedMeasure, MatrixComparison, UsageDifference
from agentv.reports.run.matrix import matrix_data, matrix_lines
from agentv.reports.run.paired import details, sentence, usage_rows
from doubles.matrix import HOSTILE, MATRIX
from doubles.views import SUMMARY

RATE = ComparedMeasure("pass rate", 0.8, 0.88, 0.08, (0.02, 0.14), 0.95, 0.01)
BETTER = MatrixComparison("target", "a", "b", "better", None, 100, 100, 100, measures=(RATE,), shown_by=("pass rate",))


def lines(width=200, **changed):
    return list(matrix_lines(replace(SUMMARY, matrix=replace(MATRIX, **changed)), width))


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
    assert [one["sentence"] for one in data["comparisons"]] == [*map(sentence, MATRIX.comparisons)]
    assert data["targets"] == ("gpt", "claude", HOSTILE)
    assert matrix_data(replace(MATRIX, comparisons=None), summary.as_json())["comparisons"] is None


def test_cost_and_time_that_are_compared_are_not_shown_twice():
    usage = (
        UsageDifference("cost_usd", 9, 0, 0.1, 0.2, 0.1),
        UsageDifference("duration_ms", 9, 0, 800.0, 900.0, 100.0),
    )
    shown = "\n".join(lines(comparisons=(replace(BETTER, base="gpt", candidate="claude", usage=usage),)))
    for name, times in {"cost per case": 1, "time per case": 1, "cost per 1,000": 0, "median latency": 0}.items():
        assert shown.count(name) == times, name


SCORE = replace(RATE, measure="mean score", before=0.7, after=0.82, delta=0.12, interval=(0.05, 0.19), p_value=0.0004)
PAIRED_BETTER = MatrixComparison(
    *("target", "a", "b", "better", None, 100, 100, 100), measures=(RATE,), shown_by=("pass rate",), passed=(80, 88)
)
COST = UsageDifference("cost_usd", 100, 0, 0.13, 0.17, 0.04, (0.01, 0.07))
TOKENS = UsageDifference("tokens", 80, 20, 12_000.0, 15_000.0, 3000.0, (-1.0, 6001.0))


@pytest.mark.parametrize(
    ("changed", "said", "more"),
    [
        ({}, "b passes 8 more of 100 cases than a (+8.0 points, 95% CI +2.0 to +14.0)", "p 0.010; 100 cases"),
        (
            {"verdict": "worse", "measures": (replace(RATE, delta=-0.0004, interval=(-0.1, 0.0)),)},
            "b passes less often than a (-0.04 points, 95% CI -10.0 to 0.0)",
            "p 0.010; 100 cases",
        ),
        (
            {"measures": (RATE, SCORE), "shown_by": ("mean score",), "pairs": 200, "clusters": 10},
            "b scores higher than a (mean score +0.120, 95% CI +0.050 to +0.190)",
            "p < 0.001; +8.0 points, 95% CI +2.0 to +14.0, p 0.010; 100 cases in 10 clusters",
        ),
        (
            {"verdict": "inconclusive", "shown_by": (), "only_base": 4, "errored": 2, "unfinished": 1},
            "b passes 8 more of 100 cases than a (+8.0 points, 95% CI +2.0 to +14.0), which may be chance",
            "p 0.010; 100 cases; 4 only with a, not compared; 2 errored; 1 not finished or not checked",
        ),
        (
            {"verdict": "inconclusive", "withheld": "errors", "errored": 12},
            (
                "b passes 8 more of 100 cases than a (+8.0 points, 95% CI +2.0 to +14.0), "
                "but 12 errored cases could turn that round"
            ),
            "p 0.010; 100 cases",
        ),
        (
            {"verdict": "inconclusive", "cases": 3, "clusters": 3, "pairs": 3, "passed": (1, 2)},
            (
                "b passes more often than a (+8.0 points, 95% CI +2.0 to +14.0), "
                "but 3 cases are too few to tell (at least 6)"
            ),
            "p 0.010; 3 cases",
        ),
        (
            {"verdict": "inconclusive", "measures": (replace(RATE, delta=0.0, p_value=1.0),)},
            "b passes as often as a (0.0 points, 95% CI +2.0 to +14.0)",
            "p 1.000; 100 cases",
        ),
        ({"verdict": "equivalent"}, "b and a are equally good: any difference is at most 0.05", "p 0.010; 100 cases"),
        ({"verdict": "non-inferior"}, "b can replace a: it loses at most 0.05", "p 0.010; 100 cases"),
        ({"verdict": None, "cases": 0, "errored": 9}, "b vs a: nothing to compare: 9 errored", ""),
    ],
)
def test_a_comparison_is_one_sentence_then_its_numbers(changed, said, more):
    one = replace(PAIRED_BETTER, **changed)
    assert (sentence(one, 0.05), details(one)) == (said, more)


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        ((COST, TOKENS), ", and costs $0.0400 more per case (+31%)"),
        (
            (replace(COST, delta=-0.04, interval=(-0.09, 0.01)),),
            ", and costs $0.0400 less per case (-31%, may be chance)",
        ),
        ((replace(COST, delta=0.0, interval=None),), ", and costs the same per case"),
        ((replace(COST, cases=1, unknown=2),), ", and costs $0.0400 more per case (+31%, known for 1 of 3 cases)"),
        ((replace(COST, before=0.0, delta=0.000012),), ", and costs $0.000012 more per case"),
        (
            (UsageDifference("cost_usd", 0, 100), TOKENS),
            (
                ", and uses 3,000 more tokens per case (+25%, may be chance, known for 80 of 100 cases)"
                "; the cost is unknown"
            ),
        ),
        (
            (UsageDifference("cost_usd", 0, 100), replace(TOKENS, delta=0.0)),
            ", and uses as many tokens per case; the cost is unknown",
        ),
        ((), ""),
    ],
)
def test_the_sentence_ends_with_what_a_case_costs(usage, said):
    assert sentence(replace(PAIRED_BETTER, usage=usage)) == sentence(PAIRED_BETTER) + said


def test_what_a_case_takes_is_a_row_for_each_resource_and_what_is_unknown_is_called_so():
    short = UsageDifference("duration_ms", 100, 0, 3.0, 4.0, 1.0, (0.5, 1.5))
    usage = (UsageDifference("cost_usd", 0, 100), TOKENS, UsageDifference("turns", 1, 0, 6.0, 7.5, 1.5), short)
    assert usage_rows(usage) == [
        ["cost", "unknown", "unknown", "", ""],
        ["tokens", "12,000", "15,000", "+3,000 (+25%)", "95% CI -1 to +6,001, known for 80 of 100 cases"],
        ["turns", "6.0", "7.5", "+1.5 (+25%)", ""],
    ]
    shown = usage_rows([replace(short, after=61_000.0, delta=60_997.0, interval=None)])
    assert shown == [["time", "3 ms", "1 min 01 s", "+1 min 01 s (+2,033,233%)", ""]]
