from __future__ import annotations

from agentv.model.run.compared.side_by_side import CaseAnswers, SideBySide
from agentv.reports.commands.side_by_side import render_case, render_rest
from agentv.reports.commands.stored_run import ShowOptions
from agentv.reports.text.escaping import cells
from doubles.trials import errored_score, finished, trial

LONG = "word " * 300


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
    assert [one.split() for one in lines[1:4]] == [
        ["gpt", "claude"],
        ["PASSED", "1.00", "FAILED", "0.00"],
        ["yes", "no\\x1b[2J"],
    ]
    assert lines[4].strip() == "\\u202eline"
    assert lines[5].strip() == "- output lacks '30 days'"
    assert lines[1].index("claude") == lines[2].index("FAILED") == lines[3].index("no")


def test_no_line_is_wider_than_the_terminal_whatever_was_answered():
    answers = {
        ("gpt", None, None): answered(output=LONG),
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
    samples = tuple(
        finished(status, trial=trial("late", sample=at, repeat=3), output=f"answer {at}")
        for at, status in enumerate(("passed", "failed", "passed"), 1)
    )
    lines = shown({("gpt", None, None): samples})
    assert "FAILED 0.00 (sample 2; 2 of 3 passed)" in lines[2]
    assert "answer 2" in lines[3]


def test_how_many_cases_are_not_shown():
    found = SideBySide((), 5, (), (), ())
    assert render_rest(found) == "0 of 5 cases shown; --limit N shows more"
    assert render_rest(SideBySide((), 0, (), (), ())) == "no matching trials in this run"
