"""Search for a JavaScript runtime while files are loaded, without an event loop."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from agentv.user_code.javascript.runtime import HOW_TO_GET, candidates, strips_types

_PROBE_S = 10.0


class MissingRuntime(Struct, frozen=True):
    """No runtime fits.

    Attributes:
        found: what there is instead, as a clause.
        hint: how to get one.
    """

    found: str
    hint: str = HOW_TO_GET


def missing_runtime(env: Mapping[str, str]) -> MissingRuntime | None:
    """Why JavaScript cannot run; None where it can. A program that was found once is not started again."""
    path, tried = env.get("PATH", ""), list[str]()
    for name, program in candidates({"PATH": path}):
        version = program_version(program, path)
        if version is not None and (name == "bun" or strips_types(version)):
            return None
        shown = f"is version {'.'.join(map(str, version))}, which is too old" if version else "does not start"
        tried.append(f"{program} {shown}")
    return MissingRuntime("; ".join(tried) or "neither bun nor node is installed")


@lru_cache(maxsize=64)
def program_version(program: str, path: str) -> tuple[int, ...] | None:
    """The version of a runtime; None: it does not start."""
    try:
        ended = subprocess.run(  # a runtime, found on PATH
            [program, "--version"],
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
