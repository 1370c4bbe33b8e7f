"""Browser pages that tests reuse: opening a page costs more than loading a report into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from needs import axe, chromium, require

DESKTOP = {"width": 1400, "height": 900}
EVENTS = ("console", "pageerror", "request")


@contextmanager
def launched_pages() -> Iterator[Pages]:
    """Yield the pages of a Chromium that runs during the block."""
    require("chromium", "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield Pages(browser.new_context(viewport=DESKTOP))
        browser.close()


class Pages:
    """A pool of pages. A returned page is blank, with an empty storage."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._free: list[Any] = []
        self._lent: list[tuple[Any, dict[str, Any]]] = []

    def lend(self, *, view: dict[str, int] = DESKTOP, dark: bool = False, **listeners: Any) -> Any:
        """Return an empty page; listeners, by the names in `EVENTS`, are attached until the page is returned."""
        page = self._free.pop() if self._free else self._context.new_page()
        page.set_viewport_size(view)
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_default_timeout(120_000)  # other tests run at the same time
        for event, listener in listeners.items():
            page.on(event, listener)
        self._lent.append((page, listeners))
        return page

    def take_back(self) -> list[Any]:
        """Take back all lent pages; return `window.hacked` of each of them and of the pages that they opened.

        One page is reused. The others are closed, because a page behind another one is hidden and rarely drawn.
        """
        opened = [page for page in self._context.pages if page not in self._free]
        hacked = [page.evaluate("window.hacked") for page in opened]
        lent, self._lent = self._lent, []
        for page, listeners in lent:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            if page.url != "about:blank":
                page.evaluate("localStorage.clear()")
                page.goto("about:blank")
            if not self._free:
                self._free.append(page)
        for page in opened:
            if page not in self._free:
                page.close()
        return hacked


class WatchedPages:
    """Lends pages that may send requests to one server only.

    Attributes:
        asked: URLs of their requests.
        wrong: their console messages, errors and requests to other servers.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.asked: list[str] = []
        self.wrong: list[str] = []

    def lend(self, address: str, **view: Any) -> Any:
        def request(one: Any) -> None:
            self.asked.append(one.url)
            if not one.url.startswith((address, "data:")):
                self.wrong.append(one.url)

        return self._pages.lend(
            **view,
            console=lambda message: self.wrong.append(message.text),
            pageerror=lambda error: self.wrong.append(str(error)),
            request=request,
        )

    def open(self, address: str, at: str = "", **view: Any) -> Any:
        """Return a page that has loaded an address of a server."""
        page = self.lend(address.partition("?")[0], **view)
        page.goto(f"{address}{at}")
        page.wait_for_selector("html[data-ready]", state="attached")
        return page


def load_report(page: Any, path: Path, at: str = "") -> None:
    """Open a report and wait until it is ready."""
    page.goto(path.as_uri() + at)
    page.wait_for_selector("html[data-ready]", state="attached")


def follow(page: Any, at: str) -> None:
    """Navigate an open report to another fragment, and wait until it is shown."""
    page.evaluate("(at) => { location.hash = at }", at)
    settle(page)


def settle(page: Any) -> None:
    """Wait until the page has handled its `hashchange` event, which fires after the change."""
    page.evaluate("() => new Promise((done) => setTimeout(() => requestAnimationFrame(done)))")
    page.wait_for_function(
        """() => !document.querySelector('.told')?.textContent.includes('searching')
            && !document.querySelector('[aria-busy=true]')"""
    )


def accessibility_violations(page: Any) -> list[str]:
    """Return the accessibility violations that axe-core finds."""
    settle(page)
    require("axe-core")
    file = axe()
    assert file is not None
    if not page.evaluate("'axe' in window"):
        page.evaluate(file.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}" for one in found]
