"""Process-wide test settings (garbage collection, signals, Hypothesis), `tmp_path`, test order and skips."""

import asyncio
import gc
import inspect
import os
import re
import signal
import sys
from collections.abc import Iterator
from itertools import accumulate, count, groupby
from operator import itemgetter
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

import needs

collect_ignore_glob = ["cases/*"]  # eval files and their support files, some of which are named like tests

settings.load_profile("ci")  # same examples in every run, no time limit; `--hypothesis-profile=default` explores more

gc.disable()  # objects created during collection live until the end anyway


def pytest_configure() -> None:
    """Restore default signal handlers, so that programs started by tests get signals even in a background job."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--skipped-to`, a file that lists the skipped tests; `pytest @FILE` runs them."""
    parser.addoption("--skipped-to", type=Path, metavar="FILE", help="write the names of the skipped tests to FILE")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With `-n`, default to `--dist worksteal`, so that idle processes take over tests."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`: two more than processors, since many tests wait for programs."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose requirements are missing, before its fixtures start anything."""
    needs.require(*(name for mark in item.iter_markers("needs") for name in mark.args))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in its own event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), 120))
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Print at the end what was missing for the skipped tests and how to install it."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    if file := terminalreporter.config.getoption("--skipped-to"):
        file.write_text("".join(f"{report.nodeid}\n" for report in reports), encoding="utf-8")
    if found := needs.skipped_for(reports):
        terminalreporter.section("skipped for what is not installed")
        for name, number in found.most_common():
            terminalreporter.write_line(f"{number:>5}  {name}")
        terminalreporter.write_line(f"To run them: {needs.command(found)}")


@pytest.fixture(scope="session", autouse=True)
def agentv_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Use a temporary AGENTV_HOME, so that the tests leave the user's own untouched."""
    home = tmp_path_factory.getbasetemp() / "agentv-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTV_HOME", str(home))
        yield home


WAITING = tuple(
    str(Path(__file__).parent / folder)
    for folder in (
        "docs",
        "e2e",
        "unit/extensions/agents/adapters",
        "unit/app/judges",
        "unit/cli",
        "unit/extensions/team",
        "unit/extensions/view",
        "unit/user_code",
        "unit/web",
        "unit/extensions/agents/workspaces",
    )
)
"""Folders whose tests mostly wait for programs and browsers."""

_LAST_PART = 0.15
"""Last part of each process's tests, which holds no waiting tests, so that work can be divided until the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests for pytest-xdist; see `mixed`."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = mixed(items)


def mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with the waiting modules spread evenly among the computing ones.

    `--dist worksteal` gives each process a contiguous part of the tests. In file order, one process
    would get all waiting tests and run them last, on an idle processor. Modules that wait for the
    same thing, such as a browser, have similar names, so they are sorted by checksum. Tests of targets stay
    together, so that most processes never import LiteLLM, which takes 5 s.
    """
    modules = [list(tests) for _, tests in groupby(items, lambda item: item.path)]
    modules.sort(key=lambda tests: {"contract", "targets"}.isdisjoint(tests[0].path.parts))
    placed = []
    for waiting in (True, False):
        kind = [tests for tests in modules if str(tests[0].path).startswith(WAITING) == waiting]
        if waiting:
            kind.sort(key=lambda tests: crc32(tests[0].nodeid.partition("::")[0].encode()))
        lengths = [len(tests) for tests in kind]
        places = (before / sum(lengths) for before in accumulate(lengths, initial=0))
        placed += zip(kind, map(_early, places) if waiting else places, strict=False)
    placed.sort(key=itemgetter(1))
    return [test for tests, _ in placed for test in tests]


def _early(place: float) -> float:
    """Return a position from 0 to 1, moved forward out of the last part of its process's tests."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    process, within = divmod(place * processes, 1)
    return (process + within * (1 - _LAST_PART)) / processes


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude everything imported and collected so far from garbage collection."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # as in runs: with the default thresholds, collections took 7 s per process
    gc.enable()


NUMBERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Replacement for pytest's `tmp_path`, which lists all earlier directories to number the next.

    Paths below it that the test put on `sys.path` are removed, because every later import would search them.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(NUMBERS)}"
    path.mkdir(mode=0o700)
    yield path
    sys.path[:] = [one for one in sys.path if not one.startswith(str(path))]
