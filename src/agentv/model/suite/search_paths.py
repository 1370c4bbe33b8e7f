"""Search paths for the programs and modules that a command starts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct


class SearchPaths(Struct, frozen=True):
    """The variables of an environment that say where code lies, as they are written.

    Attributes:
        programs: `PATH`.
        python: `PYTHONPATH`.
        node: `NODE_PATH`.
        options: `NODE_OPTIONS`, which may name code that is loaded first.
    """

    programs: str = os.defpath
    python: str = ""
    node: str = ""
    options: str = ""

    def homes(self, cwd: str = "") -> tuple[str, ...]:
        """The directories for modules; relative ones count from where the command runs, and need one."""
        return tuple(dict.fromkeys(_directories(f"{self.python}{os.pathsep}{self.node}", cwd)))

    def programs_in(self, cwd: str = "") -> tuple[str, ...]:
        """The directories for programs, likewise."""
        return tuple(_directories(self.programs, cwd))


def search_paths(env: Mapping[str, str]) -> SearchPaths:
    """Those of an environment."""
    return SearchPaths(
        env.get("PATH", os.defpath), env.get("PYTHONPATH", ""), env.get("NODE_PATH", ""), env.get("NODE_OPTIONS", "")
    )


def _directories(listed: str, cwd: str) -> Iterator[str]:
    for one in listed.split(os.pathsep):
        if one and (cwd or os.path.isabs(one)):  # noqa: PTH117  # for every command of every suite
            yield os.path.normpath(os.path.join(cwd, one))  # noqa: PTH118  # as above
