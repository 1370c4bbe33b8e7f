"""Eval files as pytest tests: `pytest evals/`. The rest of agentv is not imported until an eval file is collected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentv.pytest_plugin.session import EXAMS, NOT_COLLECTED, PROJECT_MARKS, RUNS, mark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.pytest_plugin.collection import EvalFile
    from agentv.sdk import Evaluation

COLLECTED = (".eval.yaml", ".eval.yml", ".eval.py")
EXAM_FILES = ("eval.yml", "eval.yaml")
COLLECTED_IF_NAMED = (".yaml", ".yml", ".jsonl", ".csv", ".parquet", ".arrow", ".feather", ".ipc", ".xlsx", ".xlsm")
"""Suffixes of files that are eval files only if they are named on the command line."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add flags like those of `agentv eval`."""
    group = parser.getgroup("agentv", "eval files")
    group.addoption(
        "--agentv-target", action="append", default=[], metavar="TARGET", help="Target to evaluate. Repeatable."
    )
    group.addoption("--agentv-judge", metavar="TARGET", help="Model that grades rubrics.")
    group.addoption("--agentv-repeat", type=int, metavar="N", help="Number of samples for each case.")
    group.addoption("--agentv-workers", type=int, metavar="N", help="Number of concurrent trials in each process.")
    group.addoption("--agentv-cache", action="store_true", default=None, help="Reuse answers of earlier runs.")
    group.addoption("--agentv-replay", metavar="FILE", help="Replay answers from a cassette; make no calls.")
    text = "Collect eval files from all directories when pytest runs without arguments."
    parser.addini("agentv_collect", text, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Prepare the state of the session, and receive notes from the processes of pytest-xdist."""
    config.stash[NOT_COLLECTED] = []
    config.stash[EXAMS] = []
    config.stash[PROJECT_MARKS] = {mark_of(line) for line in config.getini("markers")}  # before plugins add their own
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_WorkerNotes(), "agentv-elsewhere")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> EvalFile | None:
    """Collect an eval file if it, or a directory above it, is named on the command line."""
    name = file_path.name
    if name in EXAM_FILES and not parent.session.isinitpath(file_path) and any(file_path.parent.glob("prompt.*")):
        parent.config.stash[EXAMS].append(str(file_path))
        return None
    named = parent.session.isinitpath(file_path) and name.endswith(COLLECTED_IF_NAMED)
    if not (named or name.endswith(COLLECTED) or name in ("EVAL.yaml", "EVAL.yml")) or ".agentv" in file_path.parts:
        return None
    config = parent.config
    unnamed = config.args_source is pytest.Config.ArgsSource.INVOCATION_DIR
    if unnamed and not config.getini("agentv_collect"):  # `pytest` without arguments must not cause paid model calls
        config.stash[NOT_COLLECTED].append(str(file_path))
        return None
    from agentv.pytest_plugin.collection import EvalFile

    return EvalFile.from_parent(parent, path=file_path)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the run, and send its notes to the coordinating process of pytest-xdist."""
    runs = session.config.stash.get(RUNS, None)
    if runs is not None:
        runs.end()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["agentv"] = runs.notes()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the path of the results, notes, and how many eval files were not collected."""
    runs = config.stash.get(RUNS, None)
    worker_notes = config.pluginmanager.get_plugin("agentv-elsewhere")
    lines = [*(runs.notes() if runs is not None else ())]
    lines += worker_notes.notes if isinstance(worker_notes, _WorkerNotes) else ()
    left = config.stash.get(NOT_COLLECTED, [])
    if left:
        files = "1 eval file" if len(left) == 1 else f"{len(left)} eval files"
        lines.append(f"{files} not collected: give the files or their directory, or set agentv_collect = true")
    exams = config.stash.get(EXAMS, [])
    if exams:
        number = "1 prompt exam" if len(exams) == 1 else f"{len(exams)} prompt exams"
        lines.append(f"{number} not collected: run them with 'agentv prompt eval', which keeps their log")
    if lines:
        terminalreporter.section("agentv")
        for line in lines:
            terminalreporter.write_line(line)


class _WorkerNotes:
    """Collects the notes of the processes of pytest-xdist."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Add the notes of a process that has ended."""
        self.notes.extend(getattr(node, "workeroutput", {}).get("agentv", ()))


@pytest.fixture
def agentv_run(request: pytest.FixtureRequest) -> Callable[..., Evaluation]:
    """Run a suite or a file: `agentv_run(suite, **options)`, like `agentv.evaluate`.

    The target and the judge on the command line override those of the suite.
    """
    from agentv.pytest_plugin.outcomes import runner

    return runner(request.config)


@pytest.fixture
def assert_eval(agentv_run: Callable[..., Evaluation]) -> Callable[..., Evaluation]:
    """Like `agentv_run`, but the test fails and shows the failed checks unless every case passed."""
    from agentv.pytest_plugin.outcomes import asserting

    return asserting(agentv_run)
