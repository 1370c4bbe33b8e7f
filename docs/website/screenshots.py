"""Takes the pictures of the documentation from real runs, in the light and the dark theme, as WebP.

    python docs/website/screenshots.py            # all of them
    python docs/website/screenshots.py answers    # those of one run

Each function of `STORIES` runs an example, or the files of a guide, and opens what came of it in Chromium. Models are
functions and local servers. The pictures are committed: GitHub shows them without a build, and building the site needs
no browser. Take them again when the pages look different.
"""

from __future__ import annotations

import base64
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from pathlib import Path
from typing import IO, Any, cast

DOCS = Path(__file__).parents[1]
EXAMPLES = DOCS.parent / "examples"
THEMES = {"light": "", "dark": "-dark"}
"""How the names of their pictures end."""
SHARPNESS = 1.5
"""Pixels of a picture for each pixel of its page."""
QUALITY = 60
"""Of WebP, in percent: texts are sharp, and a picture takes about 60 kB."""
TERMINAL = 808
"""Pixels of 92 columns."""
FILE = re.compile(r"^```\w+ title=(?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COLORS = {
    "light": {"back": "#ffffff", "text": "#24292f", "dim": "#6e7781", "frame": "#d0d7de", "bar": "#f6f8fa"}
    | {"red": "#b42318", "green": "#1a7f37", "brown": "#8a5a00", "cyan": "#0b6e8f", "black": "#6e7781"},
    "dark": {"back": "#11151c", "text": "#e6edf3", "dim": "#8d96a0", "frame": "#30363d", "bar": "#1b2129"}
    | {"red": "#ff8080", "green": "#57c785", "brown": "#e3b341", "cyan": "#56c7e0", "black": "#8d96a0"},
}
"""Of a terminal, by theme."""
JUDGE = """
import json, re

REASONS = {
    "no refund": (True, "It says that the 30 days are over, and that there is no money back."),
    "Polite": (True, "Friendly, and without a promise."),
    "instead": (False, "It refuses, and leaves it at that: neither an exchange nor store credit is offered."),
}

def judge(prompt):
    found = re.findall(r"^\\[(\\w+)\\](.*)$", prompt, re.MULTILINE)
    said = [(item, REASONS[word]) for item, text in found for word in REASONS if word in text]
    return json.dumps({"checks": [{"id": item, "satisfied": ok, "reasoning": why} for item, (ok, why) in said]})
"""
"""Stands for a judge model."""
ANSWER = "I am sorry, but you bought the lamp 45 days ago. After 30 days I cannot give you your money back."


CASHIER = """
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

def answer(prompt, workspace_path):
    price = prompt.split()[-1]
    skill = Path(workspace_path, ".claude/skills/rounding/SKILL.md").exists()
    exact = Decimal(price) * Decimal("1.19")
    total = exact.quantize(Decimal("0.01"), ROUND_HALF_UP) if skill else round(float(price) * 1.19, 2)
    read = (2900 if skill else 2400) + int(float(price) * (90 if skill else 40))
    return {"output": f"{total:.2f}", "token_usage": {"input": read, "output": 180}, "cost_usd": read * 4e-6}
"""
"""Stands for an agent: with a skill it rounds as the shop does, and reads more."""


@dataclass(frozen=True)
class View:
    """What is seen of a page.

    Attributes:
        ready: the page can be used when it has this element.
        keys: are pressed then.
        click: the element that is clicked then.
        until: JavaScript that is true when the picture can be taken.
        top: the element that is at the upper edge.
    """

    width: int = 1000
    height: int = 640
    ready: str = "html[data-ready]"
    keys: tuple[str, ...] = ()
    click: str = ""
    until: str = "true"
    top: str = ""


CASE = View(keys=("j", "Enter"), height=700)
"""The first case of a run, the worst one."""


class Camera:
    """Takes pictures of pages and terminals with a Chromium."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    def take(self, name: str, address: str, view: View = View()) -> None:
        """Write the pictures of a page."""
        page = self._opened(view.width, view.height)
        page.goto(address)
        page.wait_for_selector(view.ready, state="attached")
        for key in view.keys:
            page.keyboard.press(key)
        if view.click:
            page.locator(view.click).first.click()
        page.wait_for_function(view.until)
        if view.top:
            page.add_style_tag(content="h2 { scroll-margin-top: 70px }")  # below the bar of a narrow page
            page.locator(view.top).evaluate("(one) => one.scrollIntoView()")
        page.evaluate("document.activeElement.blur()")
        for theme, ending in THEMES.items():
            page.emulate_media(color_scheme=theme)
            self._write(page, name + ending)

    def take_terminal(self, name: str, command: str, screen: Any) -> None:
        """Write the pictures of a terminal in which a command was typed."""
        for theme, ending in THEMES.items():
            page = self._opened(TERMINAL, 10)
            page.set_content(terminal_page(command, screen, COLORS[theme]))
            page.set_viewport_size({"width": TERMINAL, "height": page.evaluate("document.body.scrollHeight")})
            self._write(page, name + ending)

    def _opened(self, width: int, height: int) -> Any:
        size = {"width": width, "height": height}
        return self._browser.new_page(viewport=size, bypass_csp=True)

    def _write(self, page: Any, name: str) -> None:
        page.evaluate("() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 300))")
        session = page.context.new_cdp_session(page)
        shown = {**page.viewport_size, "x": 0, "y": page.evaluate("scrollY"), "scale": SHARPNESS}
        found = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "clip": shown})
        file = DOCS / "assets" / f"{name}.webp"
        file.write_bytes(base64.b64decode(found["data"]))
        sys.stdout.write(f"docs/assets/{file.name}: {file.stat().st_size:,} bytes\n")


def answers(home: Path, camera: Camera) -> None:
    """Two models side by side: the grid, the overview and a case of a report."""
    shutil.copytree(EXAMPLES / "two-models", home, dirs_exist_ok=True)
    agentv(home, "eval", ".", "-o", "report.html")
    report = (home / "report.html").as_uri()
    camera.take("answers", report + "#/answers", View(height=727))
    camera.take("report", report, View(height=700))
    camera.take("report-case", report, CASE)
    camera.take("report-phone", report, View(390, 700))


def compare(home: Path, camera: Camera) -> None:
    """The two runs of the guide about comparisons."""
    write_files("how-to/compare-runs.md", home)
    for agent in ("careful", "brief"):
        agentv(home, "eval", "evals", "--target", f"python:agent.py:{agent}")
    with viewed(home) as address:
        base, candidate = sorted(run.name for run in (home / ".agentv" / "results").iterdir() if run.is_dir())
        camera.take("compare", f"{address}#/compare?run={base}&run={candidate}", View(height=800, ready="table"))


def judged(home: Path, camera: Camera) -> None:
    """The case of the guide about judges, with an answer that lacks something, and a judge that says so."""
    write_files("how-to/judge-with-a-model.md", home)
    (home / "judge.py").write_text(JUDGE, encoding="utf-8")
    (home / "agent.py").write_text(f"def answer(prompt): return {ANSWER!r}", encoding="utf-8")
    agentv(home, "eval", "evals/support.eval.yaml", "--target", "python:agent.py:answer", "-o", "report.html")
    camera.take("judged", (home / "report.html").as_uri(), replace(CASE, width=800, height=820))


def judge(home: Path, camera: Camera) -> None:
    """What labels say about the judge of the guide."""
    write_files("how-to/check-a-judge.md", home)
    agentv(home, "eval", "evals")
    agentv(home, "label", "last", "--export", "labels.csv")
    subprocess.run([sys.executable, "person.py"], cwd=home, check=True)
    agentv(home, "label", "last", "--import", "labels.csv", "--by", "ada")
    with viewed(home) as address:
        camera.take("judge", f"{address}#/judge", View(height=740))


def label(home: Path, camera: Camera) -> None:
    """An answer to label, of two models with a judge."""
    suite = (EXAMPLES / "two-models" / "shop.eval.yaml").read_text(encoding="utf-8")
    judged = "judge: python:judge.py:judge\nassert: [Polite and without a promise that the shop cannot keep]\n"
    (home / "shop.eval.yaml").write_text(judged + suite, encoding="utf-8")
    (home / "judge.py").write_text(JUDGE, encoding="utf-8")
    agentv(home, "eval", ".")
    with viewed(home, "--label", "--by", "ada") as address:
        camera.take("label", f"{address}#/label", View(click="button.primary"))


def variants(home: Path, camera: Camera) -> None:
    """An agent with the skill of the guide, and without it, in twenty cases."""
    write_files("how-to/test-a-skill.md", home)
    prices = [f"{cents / 100:.2f}" for cents in (*range(50, 1050, 100), *range(120, 1120, 100))]
    right = {price: (Decimal(price) * Decimal("1.19")).quantize(Decimal("0.01"), ROUND_HALF_UP) for price in prices}
    suite = (home / "fix.eval.yaml").read_text(encoding="utf-8")
    head = suite[suite.index("workspace:") : suite.index("tests:")]
    target = "name: prices\ntarget: { name: agent, provider: python, function: 'cashier.py:answer' }\n"
    case = "  - {{ id: 'tax-{0}', input: 'Add 19 percent of tax to {0}', assert: [equals: '{1}'] }}\n"
    tests = "".join(case.format(price, total) for price, total in right.items())
    (home / "fix.eval.yaml").write_text(f"{target}{head}tests:\n{tests}", encoding="utf-8")
    (home / "cashier.py").write_text(CASHIER, encoding="utf-8")
    agentv(home, "eval", "fix.eval.yaml", "-o", "report.html")
    view = View(800, 615, top="h2:has-text('By variant')")
    camera.take("variants", (home / "report.html").as_uri(), view)


def live(home: Path, camera: Camera) -> None:
    """The overview of a run that is half done."""
    suite = (EXAMPLES / "two-models" / "shop.eval.yaml").read_text(encoding="utf-8")
    (home / "shop.eval.yaml").write_text(re.sub(r"delay_ms: \d+", "delay_ms: 2000", suite), encoding="utf-8")
    with viewed(home) as address, running(home, "eval", ".", "--repeat", "5", "--workers", "8"):
        until = "document.querySelector('progress')?.value >= 64"
        camera.take("live", address, View(ready="progress", click=".runname", until=until))


def terminal(home: Path, camera: Camera) -> None:
    """The failure of the tutorial."""
    write_files("tutorial.md", home)
    camera.take_terminal("terminal", "agentv eval evals", screen_of(home, "eval", "evals"))


def agent(home: Path, camera: Camera) -> None:
    """A coding agent: its trace, and a terminal while it works."""
    shutil.copytree(EXAMPLES / "agents", home, dirs_exist_ok=True)
    shown = screen_of(home, "eval", ".", "--workers", "3", until=r"[2-4]/6 .*shell .*turn")
    camera.take_terminal("agent-terminal", "agentv eval examples/agents", shown)
    agentv(home, "eval", ".", "-o", "report.html")
    report = (home / "report.html").as_uri()
    trace = View(800, 890, top="h2:has-text('Changes')")
    camera.take("agent-trace", f"{report}#/case/fix-prices/tax/price-agent/with-skill", trace)


STORIES: dict[str, Callable[[Path, Camera], None]] = {
    one.__name__: one for one in (answers, compare, judged, judge, label, variants, live, terminal, agent)
}


def write_files(page: str, home: Path) -> None:
    """Write the files of a guide to a folder: its blocks with a title, the first one of each path."""
    for found in FILE.finditer((DOCS / page).read_text(encoding="utf-8")):
        file = home / found["path"]
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(found["text"], encoding="utf-8")


def program(*words: str) -> list[str]:
    """A command of agentv."""
    return [sys.executable, "-m", "agentv", *words]


def environment(home: Path) -> dict[str, str]:
    """What commands see: nothing of whoever takes the pictures."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": f"{home}-home", "LC_ALL": "C.UTF-8", "TERM": "xterm"}


def agentv(home: Path, *words: str) -> None:
    """Run a command; cases may fail."""
    found = subprocess.run(
        program(*words), cwd=home, env=environment(home), capture_output=True, text=True, check=False
    )
    if found.returncode > 1:
        raise SystemExit(found.stdout + found.stderr)


@contextmanager
def running(home: Path, *words: str) -> Iterator[IO[str]]:
    """What a command prints that runs meanwhile."""
    out = subprocess.PIPE
    with subprocess.Popen(
        program(*words), cwd=home, env=environment(home), stdout=out, stderr=subprocess.DEVNULL, text=True
    ) as started:
        try:
            yield cast("IO[str]", started.stdout)
        finally:
            started.terminate()


@contextmanager
def viewed(home: Path, *words: str) -> Iterator[str]:
    """The address of `agentv view`, which runs meanwhile."""
    with running(home, "view", "--port", "0", "--no-open", *words) as printed:
        yield printed.readline().split()[-1]


def screen_of(home: Path, *words: str, until: str = "") -> Any:
    """The screen of a terminal in which a command ended, or on which a pattern is seen."""
    import pyte

    screen = pyte.Screen(92, 40)
    stream = pyte.ByteStream(screen)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (screen.lines, screen.columns))
    started = subprocess.Popen(
        program(*words), cwd=home, env=environment(home), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    with started:
        while not (until and re.search(until, "\n".join(screen.display), re.DOTALL)):
            try:
                stream.feed(os.read(ours, 65536))
            except OSError:  # the program has ended
                break
        started.terminate()
    os.close(ours)
    return screen


def terminal_page(command: str, screen: Any, colors: dict[str, str]) -> str:
    """A window with a screen's text in its colors, as HTML."""
    lines = [f"<b>$ {escape(command)}</b>"]
    for row in range(screen.lines):
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        lines.append("".join(f"<span style='{style_of(cell, colors)}'>{escape(cell.data)}</span>" for cell in cells))
    while lines and not re.sub("<[^>]*>", "", lines[-1]).strip():
        lines.pop()
    dots = "".join(f'<i style="background:{color}"></i>' for color in ("#ff5f57", "#febc2e", "#28c840"))
    return f"""<!doctype html><style>
      body {{ margin: 0; background: {colors["back"]}; }}
      div {{ padding: 10px 14px; line-height: 0; }}
      div {{ background: {colors["bar"]}; border-bottom: 1px solid {colors["frame"]}; }}
      i {{ display: inline-block; width: 12px; height: 12px; border-radius: 50%; margin-right: 8px; }}
      pre {{ margin: 0; padding: 16px; color: {colors["text"]}; font: 14px/1.5 "DejaVu Sans Mono", monospace; }}
      </style><div>{dots}</div><pre>{chr(10).join(lines)}</pre>"""


def style_of(cell: Any, colors: dict[str, str]) -> str:
    """The style of a character on a screen."""
    weight = "bold" if cell.bold else "normal"
    return f"color: {colors.get(cell.fg.removeprefix('bright'), colors['text'])}; font-weight: {weight}"


def main(chosen: list[str]) -> int:
    """Take the pictures of the chosen runs, or of all; the exit status."""
    from playwright.sync_api import sync_playwright

    shell = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shell, args=["--no-sandbox"])
        for name in chosen or STORIES:
            with tempfile.TemporaryDirectory() as folder:
                home = Path(folder) / "shop"
                home.mkdir()
                STORIES[name](home, Camera(browser))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
