"""The sign-in page in a real Chromium: keyboard, wide and narrow, light and dark, and what is stored afterwards."""

import pytest

from agentv.extensions.team.connection import Connection
from agentv.extensions.team.labels import TeamLabels
from agentv.extensions.team.pushing import RunPush, redactor_of
from agentv.extensions.team.remote import Remote
from agentv.extensions.team.serving import copying
from doubles.browser_pages import DESKTOP, accessibility_violations, launched_pages
from doubles.judged_runs import judged_run
from doubles.team_servers import is_complete, team_server_in
from doubles.waiting import until
from needs import needs

pytestmark = needs("chromium", "playwright")

PHONE = {"width": 390, "height": 844}


def test_a_link_leads_to_its_page_after_the_sign_in_and_nothing_keeps_the_token(tmp_path):
    problem = "() => document.getElementById('problem').textContent"
    told = []
    with team_server_in(tmp_path) as server, launched_pages() as pages:
        text = server.token("read")
        for view, dark in ((DESKTOP, False), (PHONE, True)):
            page = pages.lend(view=view, dark=dark, pageerror=lambda error: told.append(str(error)))
            page.goto(f"{server.address}/#/compare")
            page.wait_for_selector("html[data-ready]", state="attached")
            page.keyboard.type("agentv_<b>guess")
            page.keyboard.press("Enter")
            page.wait_for_function(problem)
            assert page.inner_text("#problem") == "The server does not know this token."
            assert page.evaluate("document.activeElement.id") == "token"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.fill("#token", text)
            page.keyboard.press("Enter")
            page.wait_for_selector("h1:text('Compare runs')")
            assert page.url == f"{server.address}/#/compare"
            stored = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
            assert text not in stored
            assert "agentv-session" not in stored  # the page cannot read the cookie
            page.click("text=Account")
            page.click("#sign-out")
            page.wait_for_selector("#token")
            page.goto(f"{server.address}/")
            page.wait_for_selector("#token")
        a_pushed_run_is_read_and_labelled(tmp_path, server, pages.lend(pageerror=lambda error: told.append(str(error))))
    assert told == []


def a_pushed_run_is_read_and_labelled(directory, server, page):
    laptop = directory / "laptop"
    laptop.mkdir()
    run = judged_run(laptop, [True, False])
    labeller = server.state.tokens.create("ana", "support", ("read", "label"), None, "test")
    with (
        Connection(Remote.of(server.address, server.token("push", "read"))) as connection,
        copying(server.state, server.data, pytest.fail) as copies,
    ):
        RunPush(laptop / ".agentv/results" / run, connection, redactor_of({}, "")).push()
        until(lambda: is_complete(copies.root("support") / ".agentv/results" / run))
        page.goto(f"{server.address}/#/")
        page.fill("#token", labeller[0])
        page.keyboard.press("Enter")
        page.click(f"[data-run='{run}'] .runname")
        page.wait_for_selector(".verdict")
        page.click(".row .id >> text=c1")
        page.wait_for_selector(".casehead h1 >> text=c1")
        assert "answer 1" in page.inner_text("main")
        page.goto(f"{server.address}/#/label?run={run}")
        page.wait_for_selector(".labelhead h1:text('Answer 1 of 2')")
        page.wait_for_timeout(350)  # an answer can be labelled only after a minimum reading time
        page.keyboard.press("1")
        page.wait_for_selector(".labelhead h1:text('Answer 2 of 2')")
        (label,) = TeamLabels(server.state.database, "support", labeller[1].actor).read(None)
        assert (label.person, label.verdict) == (labeller[1].actor, "pass")


@needs("axe-core")
def test_nothing_keeps_people_from_signing_in(tmp_path):
    with team_server_in(tmp_path) as server, launched_pages() as pages:
        context = pages._context.browser.new_context(bypass_csp=True)  # the pages allow no other scripts
        page = context.new_page()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(f"{server.root}/sign-in")
            page.fill("#token", "x")
            page.keyboard.press("Enter")
            page.wait_for_function("() => document.getElementById('problem').textContent")
            assert accessibility_violations(page) == []
        page.fill("#token", server.token("read"))
        page.keyboard.press("Enter")
        page.wait_for_selector("ul.projects")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(PHONE)
            assert accessibility_violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(f"{server.root}/sign-in")
        assert page.is_visible("#sign-out")
        assert accessibility_violations(page) == []
        context.close()
