"""Labelling in a real Chromium: keys, two people, a server that stops, and no hints at the judge's verdict."""

import re
import shutil

import pytest

from agentv.extensions.labels.labelling import LabelFiles, open_session
from doubles.browser_pages import accessibility_violations
from doubles.judged_runs import judged_run
from e2e.command import Project, stopped
from needs import needs

pytestmark = needs("chromium", "playwright")

PHONE = {"width": 390, "height": 844}
EVIL = "<img src=x onerror='window.hacked = 1'> \u202e **bold**\u200b [link](javascript:window.hacked=1) of {run} {{}}"
VERDICTS = [True, False, True, True, False, True]
RUNS = ("shown", "keys", "held", "tabs", "people", "offline", "checked")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("labelled"))
    for run in RUNS:
        judged_run(made.path, VERDICTS, run=run, answer=EVIL.format(run=run))
    return made


def start(project, person):
    process = project.start("view", "--no-open", "--port", "0", "--label", "--by", person)
    return process, re.search(r"http://\S+", process.stdout.readline())[0]


@pytest.fixture(scope="module")
def server(project):
    process, address = start(project, "ada")
    yield address
    stopped(process)


@pytest.fixture
def opened(watched, server):
    return lambda at, address=server, **view: watched.open(address, at, **view)


def read(tab):
    """Wait for the answer's minimum reading time; return its heading."""
    tab.wait_for_selector(".labelbar, .agreed")
    tab.wait_for_timeout(350)
    return tab.inner_text("h1")


def press(tab, key):
    before = read(tab)
    tab.keyboard.press(key)
    tab.wait_for_function("(before) => document.querySelector('h1').innerText !== before", arg=before)


def kept(project, run):
    return [one for one in LabelFiles(project.path).read() if one.run == run]


@needs("axe-core")
@pytest.mark.parametrize("look", [{}, {"dark": True}, {"view": PHONE}], ids=["light", "dark", "phone"])
def test_the_screens_are_open_to_all(opened, look, watched):
    for at in ("#/label", "#/label?run=shown", "#/judge?run=shown", "#/judge", "#/label?run=none"):
        tab = opened(at, **look)
        tab.wait_for_selector("main h1")
        assert accessibility_violations(tab) == [], at
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), at
    watched.wrong[:] = [one for one in watched.wrong if "404" not in one]  # expected, from missing pages


def test_a_run_is_labelled_by_keys_and_nothing_tells_what_the_judge_said(opened, project, monkeypatch, watched):
    monkeypatch.chdir(project.path)
    wanted = [one.answer.case for one in open_session("keys", None, 60, 0, "ada").distinct]
    tab = opened("#/label?run=keys")
    history = tab.evaluate("history.length")
    watched.asked.clear()
    for place, key in enumerate("10pfu"):
        assert read(tab) == f"Answer {place + 1} of 6"
        assert tab.evaluate("document.activeElement.tagName") == "H1", "a screen reader goes on at the next answer"
        page = tab.content()
        assert "as I see it" not in page, "the reason of the judge"
        press(tab, key)
        assert f"Saved {wanted[place]}:" in tab.inner_text("[role=status]:not(.lost)")
    read(tab)
    tab.keyboard.press("n")
    tab.keyboard.type("1 0 u are no labels here")
    tab.keyboard.press("Escape")
    press(tab, "b")
    assert "Your label: unsure" in tab.inner_text(".labelbar")
    press(tab, "j")
    assert tab.input_value(".noteline input") == "1 0 u are no labels here", "what was typed stays"
    press(tab, "1")
    assert read(tab) == "All 6 answers are labelled"
    assert tab.evaluate("history.length") == history
    assert tab.title() == "Label · agentv"
    assert {one.split("/api/")[1].split("?")[0] for one in watched.asked} == {"labels", "labels/queue"}
    labels = kept(project, "keys")
    assert [one.case for one in labels] == wanted
    assert [one.verdict for one in labels] == ["pass", "fail", "pass", "fail", "unsure", "pass"]
    assert labels[-1].note == "1 0 u are no labels here"
    tab.reload()
    assert read(tab) == "All 6 answers are labelled"
    tab.click(".agreed button")
    agreed = sum((one.verdict == "pass") is one.judge_passed for one in labels if one.verdict != "unsure")
    tab.wait_for_selector(f"text=You and the judge agree on {agreed} of 5.")


def test_an_old_tab_does_not_replace_a_label_that_it_did_not_show(opened, project, watched):
    old, new = opened("#/label?run=tabs"), opened("#/label?run=tabs")
    read(old)
    press(new, "0")
    old.keyboard.press("1")
    old.wait_for_selector("text=you labelled this answer elsewhere meanwhile: fail")
    assert "Your label: fail" in old.inner_text(".labelbar")
    assert [one.verdict for one in kept(project, "tabs")] == ["fail"]
    press(old, "1")
    assert [one.verdict for one in kept(project, "tabs")] == ["fail", "pass"]
    shutil.rmtree(project.path / ".agentv/results/tabs")
    judged_run(project.path, VERDICTS, run="tabs", answer="done again {}")
    read(old)
    old.keyboard.press("1")
    old.wait_for_selector("text=the run was changed")
    assert len(kept(project, "tabs")) == 2
    watched.wrong[:] = [one for one in watched.wrong if not re.search("409|404", one)]  # expected


def test_two_people_label_at_once(opened, project, watched):
    process, address = start(project, "bob")
    try:
        ada, bob = opened("#/label?run=people"), opened("#/label?run=people", address=address)
        for key in "1100":
            read(ada), read(bob)
            ada.keyboard.press(key)
            bob.keyboard.press("1")
        read(ada), read(bob)
        assert sorted(one.person for one in kept(project, "people")) == ["ada"] * 4 + ["bob"] * 4
    finally:
        watched.asked.clear()
        bob.goto("about:blank")
        stopped(process)


def test_a_server_that_cannot_be_reached_loses_nothing(opened, project, watched):
    tab = opened("#/label?run=offline")
    read(tab)
    tab.keyboard.press("n")
    tab.keyboard.type("half a thought")
    tab.keyboard.press("Enter")
    tab.context.set_offline(True)
    try:
        tab.keyboard.press("1")
        tab.wait_for_selector("text=Not saved.")
        assert "What you typed is kept." in tab.inner_text(".labelbar")
        assert read(tab) == "Answer 1 of 6"
    finally:
        tab.context.set_offline(False)
    tab.reload()
    read(tab)
    assert tab.input_value(".noteline input") == "half a thought"
    assert kept(project, "offline") == []
    press(tab, "1")
    assert [one.note for one in kept(project, "offline")] == ["half a thought"]
    watched.wrong[:] = [one for one in watched.wrong if "ERR_INTERNET_DISCONNECTED" not in one]
