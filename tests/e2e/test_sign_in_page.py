"""The sign-in page in a real Chromium: by keyboard, wide and narrow, light and dark, and what is stored afterwards."""

from __future__ import annotations

import shutil

import pytest

from doubles.browser_pages import DESKTOP, axe, barriers, launched_pages
from doubles.team_servers import team_server_in

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")

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
    assert told == []


@pytest.mark.skipif(axe() is None, reason="axe-core is not installed")
def test_nothing_keeps_people_from_signing_in(tmp_path):
    with team_server_in(tmp_path) as server, launched_pages() as pages:
        context = pages._context.browser.new_context(bypass_csp=True)  # the pages let no other script in
        page = context.new_page()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(f"{server.root}/sign-in")
            page.fill("#token", "x")
            page.keyboard.press("Enter")
            page.wait_for_function("() => document.getElementById('problem').textContent")
            assert barriers(page) == []
        page.fill("#token", server.token("read"))
        page.keyboard.press("Enter")
        page.wait_for_selector("ul.projects")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(PHONE)
            assert barriers(page) == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(f"{server.root}/sign-in")
        assert page.is_visible("#sign-out")
        assert barriers(page) == []
        context.close()
