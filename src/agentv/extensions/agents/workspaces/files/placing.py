"""Placing of files into a workspace: what stands in their way is replaced, and nothing is written through a link.

For files that come after an agent has worked: at each path, a directory, a link, a pipe or a device may have been
planted. Every name is opened relative to its open directory, without following links.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj, rmtree

from agentv.model.suite.workspace import CopiedFiles
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.processes.processes import run_program


def make_accessible(folder: int, name: str | bytes, bits: int) -> None:
    """Give its owner access to a file or directory, but not through a link."""
    with suppress(OSError):
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISLNK(mode) and mode & bits != bits:
                os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(mode) | bits)  # noqa: PTH101  # no path
        finally:
            os.close(descriptor)


EXECUTABLE, LINK = "100755", "120000"

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def place_files(files: Iterable[CopiedFiles], workspace: str) -> Failure | None:
    """Copy files and directories to their places in a workspace; why it failed. It blocks."""
    for one in files:
        try:
            _place(one, workspace)
        except OSError as error:
            return Failure("workspace-failed", f"cannot copy {one.source} into the workspace: {error.strerror}")
    return None


def write_file(workspace: str, path: str, content: bytes, mode: str) -> None:
    """Write one file of a workspace in place of what stands there. It blocks.

    Args:
        workspace: absolute path.
        path: of the file in it.
        content: of the file, or where a link leads.
        mode: as git writes it.

    Raises:
        OSError: the path leads out of the workspace, or the system refuses.
    """
    with _opened(workspace) as root:
        *folders, name = _names(path)
        with _made(root, folders) as place:
            _remove(place, name)
            if mode == LINK:
                os.symlink(content, name.encode(), dir_fd=place)
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=place), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o755 if mode == EXECUTABLE else 0o644)


def remove_file(workspace: str, path: str) -> None:
    """Remove one file of a workspace, and the directories that are empty then. It blocks.

    Raises:
        OSError: the path leads out of the workspace, or the system refuses.
    """
    *folders, name = _names(path)
    with _opened(workspace) as root, _made(root, folders) as place:
        _remove(place, name)
    while folders:
        *above, name = folders
        with _opened(workspace) as root, _made(root, above) as place:
            try:
                os.rmdir(name, dir_fd=place)
            except OSError:
                return  # something else is in it
        folders = above


def _names(path: str) -> list[str]:
    names = [name for name in path.split("/") if name not in {"", "."}]
    if ".." in names or not names:
        raise OSError(errno.EINVAL, "its place leads out of the workspace")
    return names


def _place(one: CopiedFiles, workspace: str) -> None:
    names = [name for name in one.path.split("/") if name not in {"", "."}]
    if ".." in names:
        raise OSError(0, "its place leads out of the workspace")
    with _opened(workspace) as root:
        if Path(one.source).is_dir():
            with _made(root, names) as place:
                _copy_directory(one.source, place)
        else:
            *folders, name = names or [Path(one.source).name]
            with _made(root, folders) as place:
                _copy_file(one.source, place, name)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _made(root: int, names: Iterable[str]) -> Iterator[int]:
    """A directory below another, made where it is not one."""
    descriptor = os.dup(root)
    try:
        for name in names:
            inner = _directory(descriptor, name)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _directory(folder: int, name: str) -> int:
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    make_accessible(folder, name, stat.S_IRWXU)
    return os.open(name, _DIRECTORY, dir_fd=folder)


def _copy_directory(source: str, place: int) -> None:
    with os.scandir(source) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        if entry.is_symlink():
            _remove(place, entry.name)
            os.symlink(os.readlink(entry.path), entry.name, dir_fd=place)  # noqa: PTH115  # as text
        elif entry.is_dir():
            with _made(place, (entry.name,)) as inner:
                _copy_directory(entry.path, inner)
        elif entry.is_file():
            _copy_file(entry.path, place, entry.name)


def _copy_file(source: str, place: int, name: str) -> None:
    _remove(place, name)
    with Path(source).open("rb") as read:
        mode = stat.S_IMODE(os.fstat(read.fileno()).st_mode) & 0o777
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=place)
        with os.fdopen(descriptor, "wb") as written:
            copyfileobj(read, written, 1 << 20)
            os.fchmod(descriptor, mode | 0o600)


def _remove(folder: int, name: str) -> None:
    """Remove what stands at a place, whatever it is."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            make_accessible(folder, name, stat.S_IRWXU)
            for _, directories, _, inner in os.fwalk(name, dir_fd=folder):
                for one in directories:
                    make_accessible(inner, one, stat.S_IRWXU)
            rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


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


_REMOVE_S = 600.0


def remove_directory(path: str) -> bool:
    """Remove a directory and all in it; whether it is gone. It blocks, and no process may write into it meanwhile."""
    top = Path(path)
    if top.is_symlink() or not top.is_dir():
        with suppress(OSError):
            top.unlink(missing_ok=True)
        return not os.path.lexists(path)
    with suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return True
    make_writable(path)
    _run("rm", "-rf", "--", path)  # nested deeper than Python's stack
    return not os.path.lexists(path)


def remove_content(path: str) -> None:
    """Remove all that is in a directory, and leave the directory itself. It blocks."""
    with os.scandir(path) as entries:
        for entry in entries:
            remove_directory(entry.path)


def make_writable(path: str) -> None:
    """Let their owner read and change all directories and files below one. No link is followed."""
    _run("chmod", "-R", "u+rwX", "--", path)


def _run(*argv: str) -> None:
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(argv, check=False, capture_output=True, timeout=_REMOVE_S)
