from __future__ import annotations

from msgspec.structs import replace

from agentv.model.run.matrix import ComparedMeasure, MatrixComparison, UsageDifference
from agentv.reports.run.matrix import matrix_data, matrix_lines
from agentv.reports.run.paired import sentence
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
