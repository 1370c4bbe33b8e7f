"""Which runs are pushed, and where to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from agentv.app.results.finding import find_run
from agentv.app.results.place import RESULTS, place_holding, runs_in
from agentv.authoring.fields.reading import Reading
from agentv.authoring.header.config import read_config
from agentv.authoring.prompt_library import library_reading
from agentv.authoring.source.environment import dotenv_of, merged, read_dotenv
from agentv.authoring.source.nodes import MapNode, Node
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.extensions.team.push.remote import REMOTE_VARIABLE, TOKEN_VARIABLE, Remote, ResultsServer, read_results
from agentv.store.files.directory import results_directory


def project_root() -> Path:
    """The directory whose `.agentv` holds the results and the labels of the project."""
    return place_holding(RESULTS)


def chosen_runs(named: Sequence[str], *, every: bool) -> tuple[Path, ...]:
    """The directories of the runs to push, oldest first where all are.

    Raises:
        UsageError: there is no such run.
    """
    root = project_root()
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
    found = _Configured(working, env, None).remote(given)
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
    return _Configured(directory, env, env_file, or_else="; --no-push runs without pushing").remote(None)


class _Configured:
    """The configuration of a directory, and the environment that it is read in: `.env` files are part of it."""

    def __init__(self, directory: str, env: Mapping[str, str], env_file: str | None, or_else: str = "") -> None:
        reading = library_reading(directory, env)
        places, reader, report = reading.places, reading.reader, reading.report
        if env_file is not None:
            dotenv = read_dotenv(env_file, reader, report)
        else:
            dotenv = dotenv_of(directory, places.root, reader, report)
        self.env = merged(env, {}, dotenv)
        self._reading: Reading = structs.replace(library_reading(directory, self.env), strict_env=True)
        self._directory = directory
        self._or_else = or_else

    def remote(self, given: str | None) -> Remote | None:
        """The server that is named."""
        address, token = given or self.env.get(REMOTE_VARIABLE, ""), self.env.get(TOKEN_VARIABLE, "")
        if not address or not token:
            written, at = self._written()
            if not address and written.remote and not (token or written.token):
                self._refuse_missing_token(at)
            address, token = address or written.remote or "", token or written.token or ""
        return Remote.of(address, token, self._or_else) if address else None

    def _written(self) -> tuple[ResultsServer, Node | None]:
        """What the files say, and where the address stands."""
        found, at = ResultsServer(), None
        # the local file, which takes precedence, is the last
        for node, context in reversed(read_config(self._directory, self._reading).results):
            found = read_results(node, context, found)
            if at is None and isinstance(node, MapNode):
                at = node.items.get("remote")
        self._raise_reported()
        return found, at

    def _refuse_missing_token(self, at: Node | None) -> None:
        hint = f"set {TOKEN_VARIABLE}; 'agentv serve token create' makes one{self._or_else}"
        self._reading.report.error("missing-key", at, "there is no token for the server", hint=hint)
        self._raise_reported()

    def _raise_reported(self) -> None:
        if self._reading.report.failed:
            raise LoadError(map(self._with_way_out, self._reading.report.diagnostics))

    def _with_way_out(self, found: Diagnostic) -> Diagnostic:
        """What is wrong, with what to do where a variable is not set."""
        if found.code != "unset-environment" or not self._or_else:
            return found
        return replace(found, hint=f"set it{self._or_else}")
