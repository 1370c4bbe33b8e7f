"""Which runs are pushed, and where to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs
from msgspec.structs import replace

from agentv.app.results.finding import find_run
from agentv.app.results.place import RESULTS, place_holding, runs_in
from agentv.authoring.config import dotenv_of, merged, read_config, read_dotenv
from agentv.authoring.prompt_library import library_reading
from agentv.authoring.source.nodes import MapNode
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.extensions.team.push.remote import REMOTE_VARIABLE, TOKEN_VARIABLE, Remote, ResultsServer, read_results
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
    working = os.getcwd()  # noqa: PTH109  # text, as all paths of configurations are
    found = _remote(given, working, env)
    if found is None:
        hint = f"give --remote URL, set {REMOTE_VARIABLE}, or 'results: {{remote: URL}}' in .agentv/config.yaml"
        raise UsageError("nothing says where to push to", hint)
    return found


def remote_of_run(directory: str, env: Mapping[str, str], env_file: str | None = None) -> Remote | None:
    """The server that a run is pushed to while it goes on; None: nothing names one.

    Args:
        directory: of the eval file, absolute.
        env: the environment of the process.
        env_file: read instead of the `.env` files above.

    Raises:
        UsageError: AGENTV_REMOTE is no address, or has no token.
        LoadError: the configuration is wrong, or a variable that it names is not set.
    """
    return _remote(None, directory, env, env_file, "; --no-push runs without pushing")


def _remote(
    given: str | None, directory: str, env: Mapping[str, str], env_file: str | None = None, or_else: str = ""
) -> Remote | None:
    """The server that is given, else that of the environment, else of the configuration of a directory.

    `.env` files are part of the environment. `or_else` ends hints.
    """
    reading = library_reading(directory, env)
    if env_file is not None:
        dotenv = read_dotenv(env_file, reading.reader, reading.report)
    else:
        dotenv = dotenv_of(directory, reading.places.root, reading.reader, reading.report)
    env = merged(env, {}, dotenv)
    address, token = given or env.get(REMOTE_VARIABLE, ""), env.get(TOKEN_VARIABLE, "")
    if not address or not token:
        reading = structs.replace(library_reading(directory, env), strict_env=True)
        written, at = ResultsServer(), None
        # the local file, which takes precedence, is the last
        for node, context in reversed(read_config(directory, reading).results):
            written = read_results(node, context, written)
            if at is None and isinstance(node, MapNode):
                at = node.items.get("remote")
        token = token or written.token or ""
        if not (reading.report.failed or address or token) and written.remote:
            hint = f"set {TOKEN_VARIABLE}; 'agentv serve token create' makes one{or_else}"
            reading.report.error("missing-key", at, "there is no token for the server", hint=hint)
        if reading.report.failed:
            raise LoadError(_with_way_out(one, or_else) for one in reading.report.diagnostics)
        address = address or written.remote or ""
    return Remote.of(address, token, or_else) if address else None


def _with_way_out(found: Diagnostic, or_else: str) -> Diagnostic:
    """What is wrong, with what to do where a variable is not set."""
    return replace(found, hint=f"set it{or_else}") if or_else and found.code == "unset-environment" else found
