from dataclasses import replace
from itertools import count

import pytest

from agentv.app.labels.labelling import open_session
from agentv.cli.judge.screen import Terminal, label_all
from agentv.store.labels.label_files import read_labels
from doubles.judged_runs import ASKED, judged_run


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged_run(tmp_path, [True, True, False, False], answer="\x1b[2J answer {} \u202e")


def sit(keys, *, lines=()):
    """One session with these keys: the session, and what was shown."""
    session = open_session("last", None, 4, 0, "ada")
    seconds = count()
    session.clock = lambda: f"2026-11-21T14:03:{next(seconds):02}.000Z"
    shown, keys, lines = [], iter(keys), iter(lines)
    label_all(session, Terminal(shown.append, lambda: None, lambda: next(keys), lambda _: next(lines)))
    return session, shown


def test_each_key_does_what_it_says():
    session, shown = sit(["p", "b", "F", "?", "n", "u", "q"], lines=["odd"])
    verdicts = [session.given[one.answer.item].verdict for one in session.drawn[:2]]
    assert (verdicts, session.left) == (["fail", "unsure"], 2)
    assert [(one.verdict, one.note) for one in read_labels(session.files)] == [
        ("pass", ""),
        ("fail", ""),
        ("unsure", "odd"),
    ]
    assert any(text.startswith("no such key: ?") for text in shown)


def test_nothing_shown_tells_what_the_judge_said():
    _, shown = sit("ppfu")
    everything = "\n".join(shown)
    assert "as I see it" not in everything
    assert "judge" not in everything
    assert "Is polite" in everything


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
    assert [one.verdict for one in read_labels(session.files)] == ["pass", "fail"]
    assert (session.left, session.agreed[1]) == (2, 2)


def test_another_person_labels_the_same_answers():
    sit("pppp")
    session = open_session("last", None, 4, 0, "bob")
    assert session.left == 4


def test_after_a_change_of_the_judge_the_answers_are_labelled_again(tmp_path):
    sit("pppp")
    judged_run(tmp_path, [True] * 4, run="2027", asked=replace(ASKED, model="other"), answer="\x1b[2J answer {} \u202e")
    again = open_session("2027", None, 4, 0, "ada")
    assert again.left == 4
    again.label(again.drawn[0], "fail")
    assert open_session("20261121T140322Z-aaaa", None, 4, 0, "ada").left == 0, "the earlier labels stay"
