"""Place files into a workspace: replace whatever is at their paths, and write nothing through a link.

Used after an agent has worked and all its processes have ended: at each path, it may have planted a directory, a link,
a pipe or a device.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from agentv.extensions.agents.workspaces.snapshot import EXECUTABLE, LINK
from agentv.model.suite.workspace import CopiedFiles
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.processes import run_program


def place_files(files: Iterable[CopiedFiles], workspace: str) -> Failure | None:
    """Copy files and directories to their paths in a workspace. Blocks."""
    for one in files:
        try:
            source, is_root = Path(one.source), one.path.strip("./") == ""
            if source.is_dir():
                _copy_directory(source, Path(workspace) if is_root else _ensure_directory(workspace, _names(one.path)))
            else:
                _copy_file(source, _cleared_path(workspace, [source.name] if is_root else _names(one.path)))
        except OSError as error:
            return Failure("workspace-failed", f"cannot copy {one.source} into the workspace: {error.strerror}")
    return None


def write_file(workspace: str, path: str, content: bytes, mode: str) -> None:
    """Write a file of a workspace, replacing whatever is at its path. Blocks.

    Args:
        workspace: absolute path of the workspace.
        path: path of the file in the workspace.
        content: content of the file, or target of the link.
        mode: git's file mode, such as `100644`.

    Raises:
        OSError: the path leads out of the workspace, or the operation fails.
    """
    place = _cleared_path(workspace, _names(path))
    if mode == LINK:
        place.symlink_to(os.fsdecode(content))
        return
    place.write_bytes(content)
    place.chmod(0o755 if mode == EXECUTABLE else 0o644)


def remove_file(workspace: str, path: str) -> None:
    """Remove a file of a workspace, and its parent directories that become empty. Blocks.

    Raises:
        OSError: the path leads out of the workspace, or the operation fails.
    """
    place = _cleared_path(workspace, _names(path))
    for folder in place.parents:
        if folder == Path(workspace):
            return
        try:
            folder.rmdir()
        except OSError:
            return  # not empty


def _names(path: str) -> list[str]:
    names = [name for name in path.split("/") if name not in {"", "."}]
    if ".." in names or not names:
        raise OSError(errno.EINVAL, "its place leads out of the workspace")
    return names


def _ensure_directory(folder: str | Path, names: Iterable[str]) -> Path:
    """Return a directory below another. Create it in place of files and links, and make it writable for its owner."""
    place = Path(folder)
    for name in names:
        place /= name
        if place.is_symlink() or not place.is_dir():
            place.unlink(missing_ok=True)
            place.mkdir()
        elif not os.access(place, os.R_OK | os.W_OK | os.X_OK):
            place.chmod(0o755)
    return place


def _cleared_path(folder: str | Path, names: Sequence[str]) -> Path:
    """Return the path of a file below a directory, after removing whatever is there."""
    place = _ensure_directory(folder, names[:-1]) / names[-1]
    if not remove_directory(str(place)):
        raise OSError(errno.EEXIST, f"{place} cannot be removed")
    return place


def _copy_directory(source: Path, place: Path) -> None:
    for one in sorted(source.iterdir()):
        if one.is_symlink():
            _cleared_path(place, (one.name,)).symlink_to(one.readlink())
        elif one.is_dir():
            _copy_directory(one, _ensure_directory(place, (one.name,)))
        elif one.is_file():
            _copy_file(one, _cleared_path(place, (one.name,)))


def _copy_file(source: Path, place: Path) -> None:
    shutil.copyfile(source, place)
    place.chmod(source.stat().st_mode & 0o777 | 0o600)


COPY_S = 600.0
_GNU = ("cp", "-R", "-P", "--reflink=auto", "--preserve=mode,timestamps", "-T", "--")


async def copy_directory(source: str, destination: str) -> Failure | None:
    """Copy the content of a directory into another, with modes and times. Links are copied as links.

    Args:
        source: absolute path of the directory.
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


_REMOVE_S = 600.0


def remove_directory(path: str) -> bool:
    """Remove a directory tree or a file; return whether it is gone. Blocks. No process may write to it meanwhile."""
    top = Path(path)
    if top.is_symlink() or not top.is_dir():
        with suppress(OSError):
            top.unlink(missing_ok=True)
        return not os.path.lexists(path)
    with suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return True
    make_writable(path)
    _run("rm", "-rf", "--", path)  # for trees nested deeper than Python's recursion limit
    return not os.path.lexists(path)


def remove_content(path: str) -> None:
    """Remove the content of a directory, but not the directory itself. Blocks."""
    with os.scandir(path) as entries:
        for entry in entries:
            remove_directory(entry.path)


def make_writable(path: str) -> None:
    """Make a directory tree readable and writable for its owner, without following links."""
    _run("chmod", "-R", "u+rwX", "--", path)


def _run(*argv: str) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, check=False, capture_output=True, timeout=_REMOVE_S)
