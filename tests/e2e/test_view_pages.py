"""`agentv view` in a real Chromium: every screen, a run in progress, and what hostile texts cannot do."""

import json
import re
import shutil
from functools import partial

import pytest

from doubles.browser_pages import accessibility_violations
from e2e.command import Project, stopped
from needs import needs

PHONE = {"width": 390, "height": 844}
EVIL = "<img src=x onerror='window.hacked = 1'>"

AGENT = """
import os, pathlib, time

def _wait(text):
    # For as long as a test says so.
    gate = os.environ.get("GATE")
    while gate and "wait" in text and not pathlib.Path(gate).exists():
        time.sleep(0.02)

def old(input):
    return "You can return it within 14 days." if "bike" in str(input) else "You can return it within 30 days."

def new(input):
    _wait(str(input))
    return "# Returns\\n\\nYou can return it **within 30 days**, \\u202e <b>and</b> [more](https://example.com)."
"""

RETURNS = f"""
name: returns
threshold: 1
targets:
  - {{name: old, provider: "python:agent.py:old"}}
  - {{name: new, provider: "python:agent.py:new"}}
tests:
  - {{id: lamp, tags: [refund], input: My lamp?, expected_output: Within 30 days., assert: [contains: 30 days]}}
  - {{id: bike, tags: [exchange], input: My bike?, assert: [contains: 30 days, icontains: return]}}
  - id: "{EVIL}"
    input: "{EVIL}"
    assert: [contains: tent]
  - {{id: "..", input: "..", assert: [contains: 30 days]}}
"""

WAITING = """
name: waiting
target: python:agent.py:new
tests:
  - {id: first, input: one, assert: [contains: 30 days]}
  - {id: second, input: wait two, assert: [contains: 30 days]}
  - {id: third, input: wait three, assert: [contains: tents]}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("viewed"))
    (made.path / ".git").mkdir()
    made.write("agent.py", AGENT)
    made.write("prompts/greeter/prompt.md", f"Greet {EVIL}.\n")
    made.write("prompts/greeter/meta.yaml", f'description: "{EVIL}"\n')
    made.write("waiting.eval.yaml", WAITING)
    made.write("returns.eval.yaml", RETURNS)
    for name, chosen in {"old": ["--target", "old"], "new": ["--target", "new"], "both": []}.items():
        words = ("returns.eval.yaml", *chosen, "--workers", "1")  # rows of equal score are in order of completion
        assert made.run("eval", *words, "--out", f".agentv/results/{name}").status == 1
    return made


@pytest.fixture(scope="module")
def server(project):
    """Yield the address of a running server."""
    process = project.start("view", "--no-open", "--port", "0")
    address = re.search(r"http://\S+", process.stdout.readline())[0]
    yield address
    stopped(process)


@pytest.fixture
def opened(watched, server):
    return partial(watched.open, server)


SCREENS = {
    "runs": ("#/", ".runtable"),
    "no run": ("#/?q=nothing+is+called+so", ".nothing"),
    "run": ("#/run/both/", ".verdict .big"),
    "cases": ("#/run/both/cases", ".row .id"),
    "answers": ("#/run/both/answers", ".gcell.answer"),
    "answers beside": ("#/run/new/answers?against=old&show=changed", ".grid"),
    "case": ("#/run/both/case/returns/bike/old", ".casehead"),
    "hostile case": (
        "#/run/both/case/returns/%3Cimg%20src%3Dx%20onerror%3D'window.hacked%20%3D%201'%3E/new",
        ".casehead",
    ),
    "dots": ("#/run/both/case/returns/../new", ".casehead"),
    "no case": ("#/run/new/case/returns/bike/other", ".missing .look"),
    "compare": ("#/compare?run=old&run=new", ".compared"),
    "choose": ("#/compare", ".chooser"),
    "compare three": ("#/compare?run=old&run=new&run=both", ".compared + .compared"),
    "trend": ("#/trend?suite=returns", ".trendline"),
    "prompts": ("#/prompts", ".prompts .look"),
    "prompt": ("#/prompts/greeter", ".gates"),
    "nowhere": ("#/nowhere", ".failure"),
}
VIEWS = {"light": {}, "dark": {"dark": True}, "phone": {"view": PHONE}}


@needs("axe-core")
def test_every_screen_can_be_used_by_everybody(project, opened, watched):
    found = []
    for kind, view in VIEWS.items():
        tab = opened(**view)
        for name, (at, shows) in SCREENS.items():
            tab.evaluate("(at) => { location.hash = at }", at)
            if name != "cases" or kind == "phone":
                tab.wait_for_selector(f"main:not([aria-busy]) {shows}" if name != "cases" else shows)
            found += [f"{kind}, {name}: {one}" for one in accessibility_violations(tab)]
            wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            found += [f"{kind}, {name}: {wide} px too wide"] if wide > 0 else []
    watched.wrong[:] = [one for one in watched.wrong if "404" not in one]  # for the missing case
    assert "\n".join(found) == ""


def test_the_page_of_a_run_says_what_its_file_says(project, opened, pages, tmp_path):
    assert project.run("results", "report", "both", "--html", str(tmp_path / "report.html")).status == 0
    tab = opened("#/run/both/")
    tab.wait_for_selector(".verdict")
    file = pages.lend()
    file.goto((tmp_path / "report.html").as_uri())
    file.wait_for_selector(".verdict")
    shown = [re.sub(r"\s+", " ", one.inner_text("article")) for one in (tab, file)]
    assert shown[0] == shown[1]
    rows = [sorted(one.locator(".row .id").all_inner_texts()) for one in (tab, file)]
    assert rows[0] == rows[1]
    assert tab.inner_text(".side .told") == file.inner_text(".side .told")


def test_every_answer_is_in_a_grid_that_keys_go_through(project, opened, pages, tmp_path):
    assert project.run("results", "report", "both", "--html", str(tmp_path / "report.html")).status == 0
    tab = opened("#/run/both/answers")
    file = pages.lend()
    file.goto(f"{(tmp_path / 'report.html').as_uri()}#/answers")
    shown = []
    for one in (tab, file):
        one.wait_for_selector(".gcell.answer")
        shown.append([row.inner_text() for row in one.locator(".ghrow, .grow").all()])
    assert shown[0] == shown[1], "the same in a report"
    assert [row.split("\n")[0] for row in shown[0]] == ["Case", "lamp", "bike", EVIL, ".."], "in the order of the file"
    assert tab.locator(".grid img, .grid b").count() == 0
    found = [one.strip() for one in tab.locator(".gbar > .chips button").all_inner_texts()]
    assert found == [*("4 all", "2 passed", "2 failed", "1 different")]
    tab.click("text=1 different")
    tab.wait_for_function("() => document.querySelectorAll('.grow').length === 1")
    assert "show=different" in tab.url
    tab.focus(".grid")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    assert "old" in tab.inner_text(".gh:nth-child(3)")
    chosen = tab.inner_text(".gcell.chosen")
    tab.keyboard.press(" ")
    tab.wait_for_selector("dialog.gfull[open] .said")
    assert tab.inner_text("dialog.gfull .said") in chosen
    tab.keyboard.press("Escape")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".casehead")


def test_answers_that_are_markup_are_text(project, opened):
    tab = opened(SCREENS["hostile case"][0])
    tab.wait_for_selector(".casehead")
    assert tab.inner_text(".casehead h1") == EVIL
    tab.keyboard.press("m")
    assert tab.inner_text(".markdown").startswith("Returns")
    assert "U+202E <b>and</b>" in tab.inner_text(".markdown")
    assert tab.locator("main img, main b").count() == 0


def test_two_runs_are_compared_verdict_first(project, opened):
    tab = opened()
    for run in ("new", "old"):  # the older run is the base, whichever is selected first
        tab.click(f"[data-run={run}] .pick input")
    tab.click("text=Compare the two runs")
    tab.wait_for_selector(".compared h1")
    assert tab.locator(".direction h2").all_inner_texts() == ["Got worse: 0", "Got better: 1"]
    tab.click("text=Both answers")
    tab.wait_for_selector(".besides .difference")
    assert "within 14 days" in tab.inner_text(".besides")
    tab.evaluate("location.hash += '&run=both'")
    tab.wait_for_selector(".compared + .compared")
    assert tab.locator(".movedcase").all_inner_texts() == ["bike\t\n0.50\t\n1.00now passes\t\n0.50as before"]
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".casehead")
    assert "Compared with the other run" in tab.inner_text("article")


def test_runs_are_named_and_deleted_where_that_is_allowed_until_the_server_ends(project, pages):
    shutil.rmtree(project.path / ".agentv" / "results" / "extra", ignore_errors=True)  # left by a failed attempt
    assert project.run("eval", "returns.eval.yaml", "--out", ".agentv/results/extra").status == 1
    process = project.start("view", "--no-open", "--edit", "--port", "0")
    address = re.search(r"http://\S+", process.stdout.readline())[0]
    tab = pages.lend()
    tab.goto(address)
    tab.click("[data-run=extra] .pick input")
    tab.click("text=Name…")
    tab.fill("dialog.ask .search", f"before {EVIL}")
    tab.keyboard.press("Enter")
    tab.wait_for_function(
        "(name) => document.querySelector('[data-run=extra] .runname').textContent === name", arg=f"before {EVIL}"
    )
    tab.wait_for_selector(".comparebar", state="hidden")  # the server may announce the name before it responds
    tab.click("[data-run=extra] .pick input")
    tab.click("text=Delete…")
    assert EVIL in tab.inner_text("dialog[open]")
    tab.click("dialog[open] .primary")
    tab.wait_for_selector("[data-run=extra]", state="detached")
    assert not (project.path / ".agentv" / "results" / "extra").exists()
    assert not tab.is_visible(".lost")
    stopped(process)
    tab.wait_for_selector(".lost")
    assert tab.inner_text(".lost") == "Not connected: numbers may be old."
    assert tab.locator(".run").count() >= 3  # existing runs stay
    assert set(pages.take_back()) == {None}


def test_a_case_and_all_that_failed_are_run_again_by_key_and_button(project, pages):
    process = project.start("view", "--no-open", "--run", "--port", "0")
    address = re.search(r"http://\S+", process.stdout.readline())[0]
    results = project.path / ".agentv" / "results"
    there = set(results.glob("*/"))
    try:
        tab = pages.lend()
        tab.goto(f"{address}#/run/both/case/returns/lamp/new")
        tab.wait_for_selector("[data-does=run]")
        tab.keyboard.press("r")
        tab.wait_for_selector(".again :text('It has ended. Exit status 0.')")
        tab.click("text=Open the new run")
        tab.wait_for_selector(".verdict")
        tab.wait_for_selector(".row .id")  # the cases arrive in a separate response
        assert tab.locator(".row .id").all_inner_texts() == ["lamp"]
        assert len(set(results.glob("*/")) - there) == 1
        tab.evaluate("location.hash = '#/run/both/'")
        tab.click(".again button")
        tab.wait_for_selector(".again .warning")
        assert "newer run" in tab.inner_text(".again")
        assert "agentv eval returns.eval.yaml --last-failed" in tab.inner_text("section:has(.again) > .rerun")
        shutil.copytree(results / "both", results / "foreign")
        record = json.loads((results / "foreign" / "run.json").read_text())
        record["settings"]["targets"] = ["cli:touch hacked"]
        (results / "foreign" / "run.json").write_text(json.dumps(record))
        tab.evaluate("location.hash = '#/run/foreign/case/returns/lamp/new'")
        tab.wait_for_selector(".casehead")
        tab.wait_for_selector("[data-does=run]")
        tab.keyboard.press("r")
        tab.wait_for_selector(".again .warning")
        assert "--target 'cli:touch hacked'" in tab.inner_text("main"), "the command can still be copied"
        assert "the run was not started by you in this project" in tab.inner_text(".again")
        assert not (project.path / "hacked").exists()
        assert set(pages.take_back()) == {None}
    finally:
        stopped(process)
        for made in set(results.glob("*/")) - there:  # other tests count the runs
            shutil.rmtree(made)


def test_only_pages_opened_with_the_printed_address_can_change_anything(project, pages):
    process = project.start("view", "--no-open", "--edit", "--run", "--port", "0")
    printed = re.search(r"http://\S+", process.stdout.readline())[0]
    bare, _, token = printed.partition("?token=")
    try:
        for address in (bare, f"{bare}?token=wrong"):
            other = pages.lend(view=PHONE)
            other.goto(f"{address}#/run/both/case/returns/lamp/new")
            other.wait_for_selector(".rerun")
            assert "open the address that agentv view printed" in other.inner_text(".locked"), address
            assert (other.locator("[data-does=run]").count(), token in other.content()) == (0, False)
            assert other.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the words wrap on a phone"
        tab = pages.lend()
        tab.goto(f"{printed}#/run/both/case/returns/lamp/new")
        tab.wait_for_selector("[data-does=run]")
        assert tab.url == f"{bare}#/run/both/case/returns/lamp/new", "no bookmark and no link has the token"
        assert tab.evaluate("performance.getEntriesByType('resource').every((one) => !one.name.includes('token='))")
        tab.reload()
        tab.wait_for_selector("[data-does=run]")
        other.goto("about:blank")
        # a link with a wrong token ends nobody's session
        other.goto(f"{bare}?token=wrong#/run/both/case/returns/lamp/new")
        other.wait_for_selector("[data-does=run]")
        assert other.locator(".locked").count() == 0
        assert set(pages.take_back()) == {None}
    finally:
        stopped(process)


def test_a_run_is_followed_while_it_goes_on(project, opened, tmp_path):
    gate = tmp_path / "go"
    runs = opened()
    words = ("waiting.eval.yaml", "--workers", "3", "--out", ".agentv/results/waiting")
    process = project.start("eval", *words, env={"GATE": str(gate)})
    try:
        runs.wait_for_selector(".run.running progress")
        tab = opened("#/run/waiting/")
        tab.wait_for_function("() => document.querySelector('.progress .small')?.textContent === '1 of 3 trials'")
        tab.wait_for_function("() => document.querySelectorAll('.row .id').length === 1")
        assert tab.locator(".row .id").all_inner_texts() == ["first"]
        assert tab.inner_text("h1") == "1 case passed so far"
        tab.evaluate("window.stays = true")
        answers = opened("#/run/waiting/answers")
        answers.wait_for_selector(".grate :text('100.0%')")
        gate.touch()
        answers.wait_for_selector(".grate :text('66.7%')")
        tab.wait_for_function("() => document.querySelectorAll('.row .id').length === 3")
        tab.wait_for_function("() => !document.querySelector('.progress')")
        assert tab.inner_text("h1") == "1 of 3 cases failed"
        assert tab.evaluate("window.stays")
        runs.wait_for_selector(".run.finished[data-run=waiting]")
    finally:
        gate.touch()
        process.communicate(timeout=120)


def test_the_evidence_of_a_check_is_marked_in_the_answer(project, opened):
    tab = opened("#/run/both/case/returns/lamp/new")
    tab.wait_for_selector(".casehead")
    tab.click(".grade summary")
    tab.keyboard.press("m")
    tab.wait_for_selector(".markdown")
    tab.click("button:text('Show in the answer')")
    tab.wait_for_selector("mark.chosen")
    assert tab.locator("mark").all_inner_texts() == ["30 days"]
    assert tab.evaluate("document.activeElement.className") == "found chosen"
    assert tab.locator(".markdown, main b").count() == 0
    tab.click("text=Show without marks")
    tab.wait_for_selector(".markdown")
    tab.reload()
    tab.wait_for_selector(".casehead")
    tab.keyboard.press("e")
    tab.wait_for_selector("mark.chosen")
    tab.click("text=Show without marks")
    tab.keyboard.press(":")
    tab.keyboard.type("in the answer")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("mark.chosen")
