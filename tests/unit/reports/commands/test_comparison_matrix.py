from __future__ import annotations

from msgspec.structs import replace

from agentv.model.run.comparison import LeftOut, Matrix, RunLabel
from agentv.reports.commands.comparison_matrix import render_matrix
from doubles.comparisons import UNSURE, WORSE, comparison, key

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
