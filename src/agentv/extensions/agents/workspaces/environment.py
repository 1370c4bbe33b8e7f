"""The environment of agents and graders: an allowlist, so that no secret of the parent reaches them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

MARK = "AGENTV_WORKSPACE"
"""Variable of every program of a trial: the directory of the trial, by which its processes are found."""

PROXIES = frozenset(
    name for proxy in ("http_proxy", "https_proxy", "no_proxy", "all_proxy") for name in (proxy, proxy.upper())
)
_ALLOWED = frozenset({"LANG", "LANGUAGE", "TERM", "TZ"}) | PROXIES
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FOR_GRADERS: Mapping[str, str] = {
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    # over the configuration of a repository in the workspace, which the agent can write
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": os.devnull,
    "GIT_CONFIG_KEY_2": "core.pager",
    "GIT_CONFIG_VALUE_2": "cat",
}
"""What keeps graders from running code that an agent planted; a suite that needs it otherwise says so in `env`."""

SAFE_PATH: Mapping[str, str] = {"PYTHONSAFEPATH": "1"}
"""Keeps `python -m pytest` from loading a `pytest.py` of the workspace. Graders get it where an agent wrote a file with
the name of a module of Python's own or of a test runner: else `python -m unittest` finds the code that it tests."""


def allowed(host: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
    """The variables of this process that a confined program gets.

    Args:
        host: the environment of this process.
        named: further variables, which a target passes on by name.
    """
    chosen = {name for name in host if name in _ALLOWED or name.startswith("LC_")} | set(named)
    found = {name: host[name] for name in sorted(chosen) if name in host}
    return {"PATH": host.get("PATH") or _DEFAULT_PATH, **found}


def without_directories(path: str, excluded: Iterable[str]) -> str:
    """A PATH without relative entries, and without those below some directories, where an agent may have planted."""
    roots = [os.path.realpath(one) for one in excluded if one]
    kept = [one for one in path.split(os.pathsep) if Path(one).is_absolute() and not any(map(_is_below(one), roots))]
    return os.pathsep.join(kept) or _DEFAULT_PATH


def _is_below(directory: str) -> Callable[[str], bool]:
    resolved = os.path.realpath(directory)
    return lambda root: resolved == root or resolved.startswith(root.rstrip(os.sep) + os.sep)
