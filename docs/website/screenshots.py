"""Takes the pictures of the documentation: the report of `examples/two-models` in Chromium, as WebP.

    python docs/website/screenshots.py

The pictures are committed: GitHub shows the README and the guides without a build, and building the site needs no
browser. They are small: a test holds each below 60 kB. Take them again when the report looks different.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentv import evaluate

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "assets"
QUALITY = 70
"""Of WebP, in percent: the text is sharp, and a page takes about 30 kB."""


@dataclass(frozen=True)
class Picture:
    """One view of the report.

    Attributes:
        at: the part of the report, as its address names it.
        first_case: open the first case of the list, the worst one.
    """

    name: str
    width: int
    height: int
    dark: bool = False
    first_case: bool = False
    at: str = ""


SHOWN = (
    Picture("report", 1200, 760),
    Picture("report-case-dark", 1200, 760, dark=True, first_case=True),
    Picture("report-phone", 390, 760),
    Picture("answers", 1200, 640, at="#/answers"),
)


def main() -> int:
    """Write all pictures; the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        evaluate(str(ROOT / "examples" / "two-models"), out=str(Path(folder) / "run"), exports=(str(report),))
        take(report, PICTURES)
    for picture in SHOWN:
        file = PICTURES / f"{picture.name}.webp"
        sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes\n")
    return 0


def take(report: Path, folder: Path) -> None:
    """Write the pictures of a report to a folder."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for picture in SHOWN:
            size: Any = {"width": picture.width, "height": picture.height}
            page = browser.new_page(viewport=size, color_scheme="dark" if picture.dark else "light")
            page.goto(report.as_uri() + picture.at)
            page.wait_for_selector("html[data-ready]", state="attached")
            if picture.first_case:
                page.keyboard.press("j")
                page.keyboard.press("Enter")
            page.evaluate("() => new Promise((done) => setTimeout(() => requestAnimationFrame(done)))")
            session = page.context.new_cdp_session(page)
            found = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
            (folder / f"{picture.name}.webp").write_bytes(base64.b64decode(found["data"]))
            page.close()
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
