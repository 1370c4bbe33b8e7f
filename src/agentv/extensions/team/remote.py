"""The server to push to, from options, the environment or the configuration, and the runs to push."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.place import RESULTS, project_with, runs_in
from agentv.app.results.stored import find_run
from agentv.authoring.config import dotenv_of, merged, read_config, read_dotenv
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.prompt_library import library_reading
from agentv.authoring.source.nodes import MapNode, Node, Scalar
from agentv.errors import LoadError, UsageError
from agentv.model.values.values import lazy_pattern
from agentv.registry.fields import Declared, Doc, Text
from agentv.reports.text import one_line
from agentv.store.files.directory import results_directory

TOKEN_VARIABLE = "AGENTV_TOKEN"  # noqa: S105  # the name of a variable
REMOTE_VARIABLE = "AGENTV_REMOTE"

_NO_TOKEN = f"set {TOKEN_VARIABLE}; 'agentv serve token create' makes one, and 'agentv eval --no-push' needs none"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_KEYS = ("remote", "token")
_PROJECT = lazy_pattern(r"/projects/[^/]+/?\Z")


class ResultsServer(Declared, Struct, frozen=True):
    """Where runs are pushed to."""

    remote: Annotated[Text | None, Doc("project on a team's server: https://HOST/projects/NAME")] = None
    token: Annotated[Text | None, Doc("API token, such as ${{ AGENTV_TOKEN }}; never the token itself")] = None


def check_results(node: Node, reading: Reading) -> None:
    """Report unknown keys, and an invalid address that contains no variable.

    An unset variable is not an error here, since nothing may be pushed.
    """
    if not isinstance(node, MapNode):
        return
    for key in node.items:
        if key not in _KEYS and not key.startswith("x-"):
            reading.unknown_key(key, node, _KEYS, "'results'")
    remote = node.items.get("remote")
    if isinstance(remote, Scalar) and isinstance(remote.value, str) and "{{" not in remote.value:
        _check_address(remote.value, remote, reading)


def address_problem(address: str) -> tuple[str, str] | None:
    """Return why an address of a project on a server is invalid, with a hint, or None. Never shows a password."""
    hint = "it must look like https://evals.example.org/projects/NAME"
    try:
        parts = urlsplit(address.strip())
        secret = parts.username is not None or parts.password is not None
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        secret, usable = "@" in address, None
    if secret:
        return "the address of the server contains a password", f"{hint}; tokens go into {TOKEN_VARIABLE}"
    if not usable or parts.query or parts.fragment or _PROJECT.search(parts.path) is None:
        return f"{address.strip()!r} is not the address of a project on a server", hint
    return None


def _check_address(address: str, at: Node, reading: Reading) -> None:
    problem = address_problem(address)
    if problem is not None:
        reading.report.error("bad-value", at, problem[0], hint=problem[1])


class Remote(Struct, frozen=True):
    """A project on a server.

    Attributes:
        address: URL such as `https://evals.example.org/projects/support`.
        token: API token; never shown.
    """

    address: str
    token: str

    @classmethod
    def of(cls, address: str, token: str) -> Remote:
        """Create a remote from an address and a token, after checking them.

        Raises:
            UsageError: the address or the token is invalid; the text never contains the token.
        """
        problem = address_problem(one_line(address))
        if problem is not None:
            raise UsageError(*problem)
        if not token.strip() or not token.strip().isascii() or len(token.split()) != 1:
            what = "the token is not one word of ASCII letters" if token.strip() else "there is no token for the server"
            raise UsageError(what, _NO_TOKEN)
        return cls(address.strip().rstrip("/"), token.strip())

    def page_of(self, run_id: str) -> str:
        """Return the URL of the page that shows a run."""
        return f"{self.address}/#/run/{run_id}/"


def is_exposed(address: str) -> bool:
    """Whether requests to an address are sent unencrypted over a network."""
    parts = urlsplit(address)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def chosen_runs(named: Sequence[str], *, every: bool) -> tuple[Path, ...]:
    """Return the directories of the runs to push, oldest first for `every`.

    Raises:
        UsageError: a run does not exist, or the project has none.
    """
    root = project_with(RESULTS)
    if not every:
        return tuple(dict.fromkeys(find_run(name, root, action="push") for name in named or ("last",)))
    found = tuple(runs_in(results_directory(root)))
    if not found:
        raise UsageError("cannot push: this project has no runs")
    return found


def chosen_remote(given: str | None, env: Mapping[str, str]) -> Remote:
    """Return the server that is given, else that of the environment, else of the project's configuration.

    Raises:
        UsageError: no server is named, or there is no token.
        LoadError: the configuration is invalid.
    """
    found = remote_of(os.getcwd(), env, given=given)  # noqa: PTH109  # paths of configurations are strings
    if found is None:
        hint = f"give --remote URL, set {REMOTE_VARIABLE}, or 'results: {{remote: URL}}' in .agentv/config.yaml"
        raise UsageError("nothing says where to push to", hint)
    return found


def remote_of(
    directory: str, env: Mapping[str, str], env_file: str | None = None, given: str | None = None
) -> Remote | None:
    """Return the server that is given, else that of the environment, else of the configuration, or None.

    Args:
        directory: absolute directory of the eval file, or the working directory.
        env: environment of the process; variables of `.env` files are added to it.
        env_file: read instead of the `.env` files of the directory and its parents.
        given: address on the command line.

    Raises:
        UsageError: the address is invalid, or there is no token.
        LoadError: the configuration is invalid, or a variable that it names is not set.
    """
    reading = library_reading(directory, env)
    if env_file is not None:
        dotenv = read_dotenv(env_file, reading.reader, reading.report)
    else:
        dotenv = dotenv_of(directory, reading.places.root, reading.reader, reading.report)
    env = merged(env, {}, dotenv)
    address, token = given or env.get(REMOTE_VARIABLE, ""), env.get(TOKEN_VARIABLE, "")
    if not address or not token:
        reading = replace(library_reading(directory, env), strict_env=True)
        read = read_config(directory, reading).results  # the local file, which takes precedence, is the last
        found = [(node, context) for node, context in read if isinstance(node, MapNode)]
        items = {key: one for node, _ in found for key, one in node.items.items() if key in _KEYS}
        written: Any = shape_of(ResultsServer).decode(items, *found[-1], "'results'") if found else INVALID
        written, at = ResultsServer() if written is INVALID else written, items.get("remote")
        if at is not None and written.remote is not None:
            _check_address(written.remote, at, reading)
        token = token or written.token or ""
        if not (reading.report.failed or address or token) and written.remote:
            reading.report.error("missing-key", at, "there is no token for the server", hint=_NO_TOKEN)
        if reading.report.failed:
            raise LoadError(reading.report.diagnostics)
        address = address or written.remote or ""
    return Remote.of(address, token) if address else None
