"""Copies of directories: copy-on-write where the file system can, never by hard links, since agents write into them."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys

from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.processes.processes import run_program

COPY_S = 600.0
_GNU = ("cp", "-R", "-P", "--reflink=auto", "--preserve=mode,timestamps", "-T", "--")


async def copy_directory(source: str, destination: str) -> Failure | None:
    """Copy the content of a directory into another, with modes and times; links stay links. Why it failed.

    Args:
        source: absolute path.
        destination: absolute path of an empty directory.
    """
    if sys.platform != "linux":
        return await asyncio.to_thread(_copied_by_python, source, destination)
    command = Command(argv=(*_GNU, source, destination))
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    ended = await run_program(command, stdin=b"", env=env, timeout_s=COPY_S)
    if isinstance(ended, Failure):
        return Failure("workspace-failed", f"cannot copy {source}: {ended.message}")
    if ended.status:
        return Failure("workspace-failed", f"cannot copy {source}: {tail(ended.stderr)}")
    return None


def _copied_by_python(source: str, destination: str) -> Failure | None:
    try:
        shutil.copytree(source, destination, symlinks=True, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        return Failure("workspace-failed", f"cannot copy {source}: {error}")
    return None
