"""Which runs are pushed, and where to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentv.app.push.remote import REMOTE_VARIABLE, TOKEN_VARIABLE, Remote
from agentv.app.results.finding import find_run, runs_in
from agentv.app.results.place import RESULTS, place_holding
from agentv.authoring.exams.prompt_library import library_reading
from agentv.authoring.header.config import read_config
from agentv.authoring.header.results_server import ResultsServer, read_results
from agentv.errors import LoadError, UsageError
from agentv.store.files.directory import results_directory


def chosen_runs(named: Sequence[str], *, every: bool) -> tuple[Path, ...]:
    """The directories of the runs to push, oldest first where all are.

    Raises:
        UsageError: there is no such run.
    """
    root = place_holding(RESULTS)
    if not every:
        return tuple(dict.fromkeys(find_run(name, root, action="push") for name in named or ("last",)))
    found = tuple(runs_in(results_directory(root)))
    if not found:
        raise UsageError("cannot push: this project has no runs")
    return found


def chosen_remote(given: str | None, env: Mapping[str, str]) -> Remote:
    """The server: as given, of the environment, else of the project's configuration.

    Raises:
        UsageError: nothing names one, or there is no token.
        LoadError: the configuration is wrong.
    """
    address, token = given or env.get(REMOTE_VARIABLE, ""), env.get(TOKEN_VARIABLE, "")
    if not address or not token:
        written = _configured(env)
        address, token = address or written.remote or "", token or written.token or ""
    if not address:
        hint = f"give --remote URL, set {REMOTE_VARIABLE}, or 'results: {{remote: URL}}' in .agentv/config.yaml"
        raise UsageError("nothing says where to push to", hint)
    return Remote.of(address, token)


def _configured(env: Mapping[str, str]) -> ResultsServer:
    """What the project's configuration says."""
    working = os.getcwd()  # noqa: PTH109  # text, as all paths of configurations are
    reading = replace(library_reading(working, env), strict_env=True)  # says which variable is not set
    found = ResultsServer()
    for node, context in reversed(read_config(working, reading).results):  # the local file, which wins, is the last
        found = read_results(node, context, found)
    if reading.report.failed:
        raise LoadError(reading.report.diagnostics)
    return found
