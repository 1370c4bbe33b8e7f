"""Commands of users: node and bun that they start find `@agentv/sdk` with no npm install (SPEC section 8)."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from agentv.registry.fields import Command
from agentv.user_code.javascript.runtime import program_version
from agentv.version import __version__

_HERE = Path(__file__).parent
SDK = _HERE / "sdk"
_OLDEST = (18, 18)
"""The first Node that takes `--import` out of the environment."""

_asking = Lock()
"""A program is asked for its version once, however many commands begin together."""


async def with_sdk(command: Command, env: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a command, with what leads any node and bun that it starts to the shipped module.

    Args:
        command: what is to be started.
        env: its whole environment.
    """
    packages = os.pathsep.join(filter(None, (env.get("NODE_PATH"), str(_HERE / "packages"))))
    found = {**env, "NODE_PATH": packages}
    node = _node(command, env)
    if node is not None and await asyncio.to_thread(_takes_import, node, env.get("PATH", "")):
        hook = f"--import={(_HERE / 'register.mjs').as_uri()}"
        found["NODE_OPTIONS"] = " ".join(filter(None, (env.get("NODE_OPTIONS"), hook)))
    return found


def _words(command: Command) -> list[str]:
    """The words of a command, and of the lines that it hands to a shell."""
    lines = command.argv if command.shell is None else (command.shell,)
    return [word for line in lines for word in _split(line)]


def _split(line: str) -> list[str]:
    try:
        return [line, *shlex.split(line)]
    except ValueError:
        return [line, *line.split()]


def _node(command: Command, env: Mapping[str, str]) -> str | None:
    """The node that is started: the one that the command names by a path, else the first on the PATH."""
    named = next((word for word in _words(command) if os.path.basename(word) == "node"), "node")  # noqa: PTH119  # as above
    return shutil.which(named, path=env.get("PATH"))


def _takes_import(node: str, path: str) -> bool:
    with _asking:
        version = program_version(node, path)
    return version is not None and version >= _OLDEST


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
