#!/usr/bin/env python3
"""Time until a person sees a run of many cases: `agentv view`, and beside it promptfoo's and Inspect's `view`.

    benchmarks/view_peers.py --promptfoo 'node PATH/promptfoo' --inspect PATH/inspect --stores DIR

Each tool writes its results once, by its own `eval` with an echo, into a folder of --stores, which later calls use
again. Then they take turns: a new server and a browser without a cache each time. Measured are, from the start of the
command, the page of runs and (with another server) the list of cases of the run; and from a click in that list,
the answer of a case. A page counts when the text is visible and two frames were drawn after it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from measure import SCRIPTS, assertions, rows, write_suites
from model_calls import PROMPTFOO
from playwright.sync_api import Browser, Error, Page, sync_playwright

AGENTV = str(SCRIPTS / "agentv")
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
LIMIT_MS = 120_000
PAGES = ("runs", "cases", "a case")
INSPECT = """
import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate


@scorer(metrics=[accuracy()])
def five_checks():
    async def score(state, target):
        output, row = state.output.completion, state.metadata
        checks = [
            row["contains"] in output, row["absent"] not in output, row["start"] in output, '"id"' in output,
            isinstance(json.loads(output), dict),
        ]
        return Score(value=int(all(checks)), answer=output)

    return score


async def reply(messages, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", messages[-1].text)
    output.usage = ModelUsage(input_tokens=20, output_tokens=30, total_tokens=50)
    return output


@task
def bench():
    rows = [json.loads(line) for line in Path("rows.jsonl").open()]
    samples = [Sample(id=row["id"], input=row["input"], metadata=row) for row in rows]
    model = get_model("mockllm/model", custom_outputs=reply)
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=five_checks(), model=model)
"""


@dataclass(frozen=True)
class Contender:
    """One tool.

    Attributes:
        make: writes its results into a folder.
        command: starts its server on a port.
        runs: the address of its page of runs, and what is there once that has data.
        cases: the same of its list of cases; `{run}` is the name of the run.
        opens: what is clicked there to open a case.
        case: what is there then.
        run: the name of its run in a folder.
    """

    make: Callable[[Path, int], None]
    command: Callable[[int], list[str]]
    runs: tuple[str, str]
    cases: tuple[str, str]
    opens: str
    case: str
    run: Callable[[Path], str] = lambda _: ""


FIRST = "text=case-000000"
WRITTEN = "quick brown fox number 0 "


def evaluate(command: list[str], home: Path, settings: dict[str, str]) -> None:
    subprocess.run(command, cwd=home, env={**os.environ, **settings}, check=True, stdout=subprocess.DEVNULL)


def ours(given: argparse.Namespace) -> Contender:  # noqa: ARG001  # one form for all
    def make(home: Path, count: int) -> None:
        write_suites(home, count, "cases")
        evaluate([AGENTV, "eval", "bench.eval.yaml", "--workers", "50", "-q"], home, {})

    return Contender(
        make,
        lambda port: [AGENTV, "view", "--no-open", "--port", str(port)],
        ("/", ".runtable tbody tr"),
        ("/#/run/{run}/cases", FIRST),
        FIRST,
        f"article.case >> text={WRITTEN}",
        lambda home: next((home / ".agentv" / "results").glob("2*")).name,
    )


def promptfoo(given: argparse.Namespace) -> Contender:
    program = shlex.split(given.promptfoo)

    def make(home: Path, count: int) -> None:
        tests = [
            {"description": row["id"], "vars": {"input": row["input"]}, "assert": list(assertions(row))}
            for row in rows(count)
        ]
        file = {"description": "bench", "prompts": ["{{input}}"], "providers": ["echo"], "tests": tests}
        (home / "promptfooconfig.yaml").write_text(json.dumps(file))
        evaluate([*program, "eval", "--no-cache", "--no-table", "-j", "50"], home, store(home))

    return Contender(
        make,
        lambda port: [*program, "view", "-n", "-p", str(port)],
        ("/evals", "tbody >> text=bench"),
        ("/eval", FIRST),
        "[aria-label='View output and test details'] >> nth=0",
        f"[role=dialog] >> text={WRITTEN} >> nth=0",
    )


def inspect(given: argparse.Namespace) -> Contender:
    program = shlex.split(given.inspect)

    def make(home: Path, count: int) -> None:
        (home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(count)))
        (home / "inspect_task.py").write_text(INSPECT)
        options = ["--model", "mockllm/model", "--max-samples", "50", "--display", "none", "--log-dir", "logs"]
        evaluate([*program, "eval", "inspect_task.py", *options], home, {})

    return Contender(
        make,
        lambda port: [*program, "view", "start", "--log-dir", "logs", "--port", str(port)],
        ("/#/logs", "text=mockllm/model"),
        ("/#/tasks/{run}", FIRST),
        FIRST,
        f".markdown-content >> text={WRITTEN} >> nth=0",
        lambda home: next((home / "logs").iterdir()).name,
    )


def store(home: Path) -> dict[str, str]:
    """Settings of promptfoo: where its database is, and that it asks no server."""
    return {**PROMPTFOO, "PROMPTFOO_CONFIG_DIR": str(home / "store")}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def started(command: list[str], home: Path) -> Iterator[float]:
    """When a server was started."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=home, env={**os.environ, **store(home)}, **quiet) as process:
        try:
            yield began
        finally:
            process.terminate()


def open_page(browser: Browser, address: str) -> Page:
    """A page in a browser without a cache, as soon as somebody answers."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(LIMIT_MS)
    deadline = time.monotonic() + LIMIT_MS / 1000
    port = int(address.split(":")[2].split("/", maxsplit=1)[0])
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.005)
    while time.monotonic() < deadline:
        with suppress(Error):
            page.goto(address, wait_until="commit")
            return page
    raise SystemExit(f"nobody answers at {address}")


def painted(page: Page, selector: str, began: float) -> float:
    page.wait_for_selector(selector)
    page.evaluate(PAINTED)
    return time.perf_counter() - began


def round_of(one: Contender, home: Path, browser: Browser) -> dict[str, float]:
    found = {}
    for kind, (path, selector) in (("runs", one.runs), ("cases", one.cases)):
        port = free_port()
        with started(one.command(port), home) as began:
            page = open_page(browser, f"http://127.0.0.1:{port}{path.format(run=one.run(home))}")
            found[kind] = painted(page, selector, began)
            if kind == "cases":
                clicked = time.perf_counter()
                page.click(one.opens)
                found["a case"] = painted(page, one.case, clicked)
            page.context.close()
    return found


def report(measured: dict[str, list[dict[str, float]]]) -> Iterator[str]:
    """Medians with their range, and each peer's over ours in the same round."""
    for kind in PAGES:
        yield kind
        for name, found in measured.items():
            times = [one[kind] for one in found]
            ratio = statistics.median(
                other[kind] / mine[kind] for mine, other in zip(measured["agentv"], found, strict=True)
            )
            spread = f"({min(times):.2f} to {max(times):.2f})"
            yield f"  {name:10}{statistics.median(times):7.2f} s {spread}, {ratio:5.1f} times"


def prepared(name: str, one: Contender, stores: Path, count: int) -> Path:
    """The folder with the results of a tool, which it writes if they are not there."""
    home = stores / f"{name}-{count}"
    if not (home / "complete").exists():
        home.mkdir(parents=True)
        one.make(home, count)
        (home / "complete").touch()
    return home


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--promptfoo", metavar="CMD", help="how to start promptfoo")
    parser.add_argument("--inspect", metavar="CMD", help="how to start Inspect")
    parser.add_argument("--stores", type=Path, required=True, help="folder of the results, used again")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--browser", help="path of Chromium; without it, the one that playwright installed")
    given = parser.parse_args()
    made = {"agentv": ours(given)}
    if given.promptfoo:
        made["promptfoo"] = promptfoo(given)
    if given.inspect:
        made["Inspect"] = inspect(given)
    homes = {name: prepared(name, one, given.stores.absolute(), given.cases) for name, one in made.items()}
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in made}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.browser)
        for _ in range(given.rounds):
            for name, one in made.items():
                measured[name].append(round_of(one, homes[name], browser))
    print(f"{given.cases:,} cases, {given.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    print(*report(measured), sep="\n")


if __name__ == "__main__":
    main()
