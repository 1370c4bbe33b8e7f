from itertools import count

import pytest

from agentv.extensions.labels.labelling import open_session
from agentv.extensions.labels.ratings import open_ratings
from agentv.extensions.labels.screen import Terminal, label_all, rate_all
from doubles.judged_runs import judged_run
from doubles.stored_runs import write_run
from doubles.trials import finished, trial


@pytest.fixture(autouse=True)
def _run(tmp_path):
    judged_run(tmp_path, [True, True, False, False], answer="\x1b[2J answer {} \u202e")


def sit(keys, *, lines=(), columns=80, run="last"):
    """Return a session with these key presses, and what it showed."""
    session = open_session(run, None, 4, 0, "ada")
    seconds = count()
    session.clock = lambda: f"2026-11-21T14:03:{next(seconds):02}.000Z"
    return session, shown_by(label_all, session, keys, lines, columns)


def shown_by(sits, session, keys, lines, columns=80):
    shown, keys, lines = [], iter(keys), iter(lines)
    sits(session, Terminal(shown.append, lambda: None, lambda: next(keys), lambda _: next(lines), lambda: columns))
    return shown


def test_each_key_does_what_it_says():
    session, shown = sit(["1", "b", "F", "?", "n", "u", "q"], lines=["odd"])
    verdicts = [session.given[one.answer.item].verdict for one in session.drawn[:2]]
    assert (verdicts, session.left) == (["fail", "unsure"], 2)
    found = [(one.verdict, one.note) for one in session.store.read(session.suites)]
    assert found == [("pass", ""), ("fail", ""), ("unsure", "odd")]
    assert "no such key: ?" in shown
    assert "your label: pass" in shown[2], "one that goes back sees the own label"


def test_nothing_shown_tells_what_the_judge_said():
    _, shown = sit("ppfu")
    everything = "\n".join(shown)
    assert "as I see it" not in everything
    assert "judge" not in everything
    assert "Is polite" in everything


def test_a_narrow_terminal_breaks_lines_between_words(tmp_path):
    judged_run(tmp_path, [True], run="wide", answer="some words " * 20 + "x" * 60)
    _, shown = sit("q", columns=40, run="wide")
    lines = shown[0].split("\n")
    assert max(map(len, lines[:-1])) <= 40
    assert all(line.strip().startswith(("some", "words")) for line in lines if "some" in line)
    assert "".join(line.strip() for line in lines).count("x" * 60) == 1, "nothing is cut"


def rate(keys, *, lines=(), by="ada", run="any"):
    session = open_ratings(run, by)
    return session, shown_by(rate_all, session, keys, lines)


def test_any_answer_is_rated_by_the_keys_of_the_grid(tmp_path):
    rows = [
        finished(trial=trial("lamp", target="small", position=2)),
        finished("failed", trial=trial("bike", target="small", position=1), output="No."),
        finished(trial=trial("lamp", target="large", position=2)),
        finished("errored", trial=trial("tent"), output=None),
    ]
    path = tmp_path / ".agentv" / "results" / "any"
    write_run(path, rows, {"suites": [{"name": "refunds"}]})
    session, shown = rate(["0", "c", "1"], lines=["too short"])
    assert [one.split("\n")[0] for one in shown[:2]] == ["1 of 2 · bike · small · failed", "saved bike: bad"]
    assert "your rating: too short" in shown[2], "a comment is kept as soon as it is written"
    given = [(one.case, one.verdict, one.note) for one in session.store.ratings({"refunds"})]
    assert given == [("bike", "fail", ""), ("lamp", "unsure", "too short"), ("lamp", "pass", "too short")]
    again, shown = rate(["0", "b", "\r", "q"], by="Ada")
    assert shown[0].startswith("1 of 2 · bike"), "where all are rated, from the first"
    assert "your rating: bad" in shown[0]
    assert again.own(next(iter(again.answers))) is None, "the same key again takes it back"
    assert "ada: good, too short" in rate([" ", "q"], by="ben")[1][1]


def test_hostile_text_is_spelled_out():
    _, shown = sit("q")
    assert "\x1b" not in shown[0]
    assert "\u202e" not in shown[0]
    assert r"\x1b[2J answer" in shown[0]


def test_an_interrupted_session_loses_nothing_and_goes_on_where_it_was():
    with pytest.raises(KeyboardInterrupt):
        sit(["p", "\x03"])
    session, shown = sit(["f", "\x04"])
    assert shown[0].startswith("1 of 3")
    assert [one.verdict for one in session.store.read(session.suites)] == ["pass", "fail"]
    assert (session.left, session.agreed[1]) == (2, 2)


def test_another_person_labels_the_same_answers():
    sit("pppp")
    session = open_session("last", None, 4, 0, "bob")
    assert session.left == 4
