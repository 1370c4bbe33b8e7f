import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.run.runs import CaseAnswers, SideBySide
from agentv.reports.side_by_side import render_case, render_grid, render_rest, wrapped
from agentv.reports.stored_run import ShowOptions
from agentv.reports.text import cells, safe
from doubles.trials import errored_score, finished, trial

SAMPLES = tuple(
    finished(status, trial=trial("late", sample=at, repeat=3), output=f"answer {at}")
    for at, status in enumerate(("passed", "failed", "passed"), 1)
)


def shown(answers, width=80, *, full=False, color=False, targets=("gpt", "claude"), prompts=(None,), variants=(None,)):
    case = CaseAnswers("refunds", "/repo/a.yaml", "late\x1b[2J", answers)
    found = SideBySide((case,), 5, targets, prompts, variants)
    return render_case(case, found, ShowOptions("/repo", color, full, width)).split("\n")


def answered(status="passed", output="yes", **given):
    return (finished(status, trial=trial("late"), output=output, **given),)


def test_answers_stand_beside_each_other_with_their_status():
    lines = shown(
        {("gpt", None, None): answered(), ("claude", None, None): answered("failed", "no\x1b[2J\n\u202eline")}
    )
    assert lines[0] == "late\\x1b[2J (refunds)"
    found = [one.split() for one in lines[1:4]]
    assert found == [["gpt", "claude"], ["PASSED", "1.00", "FAILED", "0.00"], ["yes", "no\\x1b[2J"]]
    assert lines[4].strip() == "\\u202eline"
    assert lines[5].strip() == "- output lacks '30 days'"
    assert lines[1].index("claude") == lines[2].index("FAILED") == lines[3].index("no")


def test_no_line_is_wider_than_the_terminal_whatever_was_answered():
    answers = {
        ("gpt", None, None): answered(output=("word " * 300)),
        ("claude", None, None): answered("failed", "漢" * 500),
        ("third", None, None): answered(output="x" * 5000),
    }
    for width in (40, 70, 100, 200):
        lines = shown(answers, width, targets=("gpt", "claude", "third"))
        assert max(map(cells, lines)) <= width, width
        assert sum("--full shows all" in line for line in lines) >= 1
        assert sum(line.count("PASSED") + line.count("FAILED") for line in lines) == 3


def test_what_did_not_run_and_what_errored_is_no_answer():
    failed = finished("errored", trial=trial("late"), output=None)
    judge = answered("errored", "fine", scores=[errored_score()])
    lines = "\n".join(shown({("claude", "p", None): (failed,), ("gpt", "q", None): judge}, prompts=("p", "q")))
    assert lines.count("did not run") == 2
    assert "timeout: no answer after 3 s" in lines
    assert "  with p\n" in lines
    assert "ended with status 2" in lines
    assert "fine" in lines


def test_of_several_samples_the_worst_is_shown_with_how_many_passed():
    lines = shown({("gpt", None, None): SAMPLES})
    assert "FAILED 0.00 (sample 2; 2 of 3 passed)" in lines[2]
    assert "answer 2" in lines[3]


def test_how_many_cases_are_not_shown():
    assert render_rest(SideBySide((), 5, (), (), ())) == "0 of 5 cases shown; --limit N shows more"
    assert render_rest(SideBySide((), 0, (), (), ())) == "no matching trials in this run"


@given(st.text(), st.integers(12, 40))
def test_no_line_is_wider_than_the_column_and_no_letter_is_lost(text, width):
    lines = list(wrapped(text, width))
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(safe(text).split())


def answer_grid_answered(status="passed", output="yes", *, case="late", **given):
    variables = {"q": "How\nlate?", "lang": "en", "customer": {"tier": 1}}
    return (finished(status, trial=trial(case, vars=variables), output=output, **given),)


def grid(answers, width=100, *, color=False, targets=("gpt", "claude"), prompts=(None,), cases=("late",)):
    found = [CaseAnswers("refunds", "/repo/a.yaml", case, answers) for case in cases]
    side = SideBySide(tuple(found), len(found), targets, prompts, (None,))
    return render_grid(side, ShowOptions("/repo", color, width=width)).split("\n")


def words(line):
    return re.split(r"  +", line)


def test_a_case_is_a_line_with_its_variables_and_every_answer():
    answers = {
        ("gpt", None, None): answer_grid_answered(output="within\n 30 days"),
        ("claude", None, None): answer_grid_answered("failed", "no \x1b[2J"),
    }
    head, line = grid(answers)
    assert words(head) == ["case", "q", "lang", "gpt", "claude"]  # objects are not shown as variables
    assert words(line) == ["late", "How late?", "en", "✓ 1.00", "within 30 days", "✗ 0.00", "no \\x1b[2J"]
    assert head.index("claude") == line.index("✗")


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_columns_without_room_stand_below(width):
    targets = tuple(f"target-{at}" for at in range(6))
    answers = {(target, None, None): answer_grid_answered(output="漢 word" * 100, case="c" * 60) for target in targets}
    lines = grid(answers, width, targets=targets, cases=("c" * 60, "d"))
    assert max(map(cells, lines)) <= width
    assert sum(line.count("✓ 1.00") for line in lines) == 12


def test_errors_samples_and_what_did_not_run():
    failed = finished("errored", trial=trial("late"), output=None)
    answers = {
        ("gpt", "p", None): (failed,),
        ("claude", "p", None): SAMPLES,
        ("gpt", "q", None): answer_grid_answered(),
    }
    _, line = grid(answers, 140, prompts=("p", "q"))
    assert words(line)[1:] == ["! timeout", "no answer after 3 s", "✗ 2/3 0.67", "answer 2", "✓ 1.00", "yes"]
    assert words(grid(answers | {("claude", "q", None): ()}, 140, prompts=("p", "q"))[1])[-1] == "did not run"


@pytest.mark.parametrize(
    ("rule", "statuses", "shown"),
    [
        ({"aggregate": "pass_any"}, "failed failed passed", ["✓ 1/3 0.33", "answer 3"]),
        ({"aggregate": "majority"}, "passed failed passed", ["✓ 2/3 0.67", "answer 1"]),
        ({}, "passed passed", ["– 2/2 1.00", "answer 1"]),
        ({}, "passed errored passed", ["! 2/3 timeout", "answer 2"]),
    ],
)
def test_a_cell_has_the_verdict_of_the_case_and_its_mean_score(rule, statuses, shown):
    samples = tuple(
        finished(status, trial=trial("late", sample=at, repeat=3, **rule), output=f"answer {at}")
        for at, status in enumerate(statuses.split(), 1)
    )
    assert words(grid({("gpt", None, None): samples}, targets=("gpt",))[1])[1:] == shown


def test_only_the_verdict_is_painted_and_arabic_reorders_nothing_beside_it():
    _, line = grid({("gpt", None, None): answer_grid_answered(output="نعم")}, targets=("gpt",), color=True)
    assert "\x1b[32m✓ 1.00\x1b[0m  \u2068نعم\u2069" in line
