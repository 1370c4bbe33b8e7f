"""Settings of a process with all tests in it (garbage, signals, examples), directories of many tests, and skips."""

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

collect_ignore_glob = ["cases/*"]  # eval files and what they need, some of it named like tests

settings.load_profile(
    "ci"
)  # the same examples in every run and no time limit; `--hypothesis-profile=default` searches on

gc.disable()  # what is collected stays until the end


def pytest_configure() -> None:
    """Programs that tests start hear signals, also where a script in the background started the tests."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to list the tests that were skipped: `pytest @FILE` runs them."""
    parser.addoption("--skipped-to", type=Path, metavar="FILE", help="write the names of the skipped tests to FILE")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With `-n`, a process that has run its tests takes over some of another's."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs something absent, before its fixtures start anything."""
    needs.require(*(name for mark in item.iter_markers("needs") for name in mark.args))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), 120))
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last what was skipped for what, and what installs it."""
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
    """The directory of agentv in the home of whoever runs the tests stays as it is."""
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
"""Folders whose tests wait for programs and browsers more than they compute."""

_LAST_PART = 0.15
"""Part of each process's tests, at its end, with none of those. Quick tests can be divided until the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix the tests for the processes of pytest-xdist; see `mixed`."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = mixed(items)


def mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Modules whose tests wait, evenly spread over those whose tests compute.

    `--dist worksteal` gives each process a part of the tests in their order. In the order of the files, one process
    would get all tests that wait, and at the end they would run alone on an idle processor. Modules that wait for the
    same, such as a browser or an agent, have similar names: their order is that of checksums. Tests of the targets stay
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
    """A place within the tests, from 0 to 1, moved to before the last part of those of its process."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    process, within = divmod(place * processes, 1)
    return (process + within * (1 - _LAST_PART)) / processes


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of all collections of garbage to come."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # rarely, as in runs: the usual search for cycles took 7 s of each process
    gc.enable()


NUMBERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory of the test, as pytest's own, which reads the names of all before it to number the next.

    What code of the test put on `sys.path` from there is taken off: every later import and search would look there.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(NUMBERS)}"
    path.mkdir(mode=0o700)
    yield path
    sys.path[:] = [one for one in sys.path if not one.startswith(str(path))]
