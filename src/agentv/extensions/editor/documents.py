"""Open files and their checks in the background. A check runs no code of the project and makes no connections."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.loading.load import FileCheck, check_file
from agentv.errors import Diagnostic
from agentv.extensions.editor.index import FileIndex, FileKind, index_of, kind_of, leave_deleted_directory
from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.values.values import Span

OFFLINE = "git-failed"
"""Code of diagnostics about unfetched repositories. They are hidden, as opening a file must not fetch anything."""


class PathLink(Struct, frozen=True):
    """A path written in a file, and the file that it refers to."""

    span: Span
    target: str


class EditorCheck(Struct, frozen=True):
    """Result of a check.

    Attributes:
        diagnostics: diagnostics of the file and of those that it uses, sorted.
        read: absolute paths of all files that were read.
        index: names in the file; None if its YAML is invalid.
    """

    diagnostics: tuple[Diagnostic, ...]
    read: frozenset[str]
    index: FileIndex | None
    links: tuple[PathLink, ...] = ()


def check_in_editor(path: str, kind: FileKind, edits: Mapping[str, bytes]) -> EditorCheck:
    """Check an open file.

    Args:
        path: absolute path; the file need not be on disk if it is among the edits.
        kind: kind of the file.
        edits: absolute path → text of each open file, which is used instead of the file on disk.
    """
    links: list[PathLink] = []

    def on_path(_written: str, span: Span, found: str) -> None:
        links.append(PathLink(span, found))

    checked = _checked(path, LoadRequest((), process_env=dict(os.environ), edits=edits, on_path=on_path, for_run=False))
    data = edits.get(path)
    index = index_of(path, data, kind) if data is not None and path.endswith((".yaml", ".yml")) else None
    return EditorCheck(checked.diagnostics, checked.read, index, tuple(links))


def _checked(path: str, request: LoadRequest) -> FileCheck:
    leave_deleted_directory()
    checked = check_file(path, request, _offline(registries()))
    return FileCheck(tuple(one for one in checked.diagnostics if one.code != OFFLINE), checked.read)


def _offline(known: Registries) -> Registries:
    def no_checkout(wanted: RepositoryFile, _env: Mapping[str, str]) -> Checkout | Unavailable:
        return Unavailable(OFFLINE, f"{wanted.name} is not fetched by an editor")

    return structs.replace(known, checkouts=no_checkout)


DEBOUNCE_S = 0.03
"""Time without a keystroke after which a file is checked."""

T = TypeVar("T")


class OpenFile(Struct):
    """A file that is open in the editor.

    Attributes:
        checked: result of the last check.
        diagnostics: the diagnostics that the editor shows.
        shown_version: version of the text that `diagnostics` belong to.
        stale: whether the text, or a file that it uses, has changed since the last check began.
        task: the task that checks the file.
    """

    path: str
    text: str
    version: int | None
    kind: FileKind | None
    checked: EditorCheck | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    shown_version: int | None = None
    stale: bool = True
    task: asyncio.Task[None] | None = None

    @property
    def data(self) -> bytes:
        """The text in UTF-8, as it would be on disk."""
        return self.text.encode(errors="replace")


class CheckEndedError(Exception):
    """A check gave no result; the message says why."""


class Checker:
    """A process that checks files, so that a slow check or a hostile file does not block the server.

    Attributes:
        limit_s: time limit of a check, in seconds.
    """

    def __init__(self) -> None:
        self.limit_s = 30.0
        self._pool: ProcessPoolExecutor | None = None
        self._worked = False
        self._lock = asyncio.Lock()

    def start(self) -> None:
        """Start the process and its imports before the first check."""
        with suppress(FileNotFoundError):  # the working directory was deleted just now
            self._started().submit(ready)

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """Run a function in the process and return its result. A process that dies before any result is restarted.

        Raises:
            CheckEndedError: the process died, or the function took too long and its process was killed.
        """
        async with self._lock:  # a waiting check must not be killed with a slow one
            for _ in range(2):
                try:
                    async with asyncio.timeout(self.limit_s):
                        found = await asyncio.get_running_loop().run_in_executor(self._started(), work, *given)
                except TimeoutError as error:
                    self.stop()
                    raise CheckEndedError(f"took longer than {self.limit_s:g} seconds and was ended") from error
                except asyncio.CancelledError:  # its file was closed
                    self.stop()
                    raise
                except (BrokenProcessPool, FileNotFoundError):  # its working directory was deleted while it started
                    worked, self._pool, self._worked = self._worked, None, False
                    if worked:
                        break
                else:
                    self._worked = True
                    return found
            raise CheckEndedError("ended with its process")

    def stop(self) -> None:
        """Kill the process."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):  # noqa: SLF001  # public from 3.14 on
                process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool, self._worked = None, False

    def _started(self) -> ProcessPoolExecutor:
        leave_deleted_directory()  # the process inherits the working directory
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=end_with_parent)
        return self._pool


def end_with_parent() -> None:
    """Make this process exit when the server does, even if the server is killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def ready() -> bool:
    """Import what a check needs; runs in the checker's process."""
    from agentv.app.registries import registries

    return registries() is not None


class Documents:
    """The open files. All methods run in the server's event loop.

    Args:
        on_checked: called with the paths whose diagnostics may have changed.
        on_ended: called with a message if a check gave no result.
    """

    def __init__(self, on_checked: Callable[[set[str]], None], on_ended: Callable[[str], None]) -> None:
        self.checker = Checker()
        self._on_checked = on_checked
        self._on_ended = on_ended
        self._open: dict[str, OpenFile] = {}

    def get(self, path: str) -> OpenFile | None:
        """The open file with a path, or None."""
        return self._open.get(path)

    @property
    def edits(self) -> dict[str, bytes]:
        """Path → text of each open file of agentv."""
        return {path: one.data for path, one in self._open.items() if one.kind is not None}

    def put(self, path: str, text: str, version: int | None) -> None:
        """Add a file or replace its text, and check it."""
        known = self._open.get(path)
        if known is None:
            known = self._open[path] = OpenFile(path, text, version, kind_of(path, text))
        else:
            known.text, known.version, known.kind = text, version, kind_of(path, text)
        if known.kind is not None:
            self._check(known)
            self.files_changed({path})
        elif known.diagnostics:  # it is no longer a file of agentv
            self._show(known, (), version)

    def close(self, path: str) -> None:
        """Remove a file, and check the files that use it with the text on disk."""
        known = self._open.pop(path, None)
        if known is None:
            return
        if known.task is not None:
            known.task.cancel()
        self._on_checked({path, *_files_of(known.diagnostics)})
        self.files_changed({path})

    def files_changed(self, paths: set[str]) -> None:
        """Check the open files that use one of these files again."""
        for one in self._open.values():
            if one.path not in paths and one.checked is not None and (one.checked.read & paths):
                self._check(one)

    def check_all(self) -> None:
        """Check every open file again, because files on disk changed."""
        for one in self._open.values():
            if one.kind is not None:
                self._check(one)

    def diagnostics_of(self, path: str) -> list[Diagnostic]:
        """Diagnostics in a file: its own if it was checked, otherwise those from checks of open files that use it."""
        own = self._open.get(path)
        if own is not None and own.checked is not None:
            return [one for one in own.diagnostics if one.span is not None and one.span.file == path]
        found = (one for file in self._open.values() for one in file.diagnostics)
        return list(dict.fromkeys(one for one in found if one.span is not None and one.span.file == path))

    def _check(self, one: OpenFile) -> None:
        one.stale = True
        if one.task is None or one.task.done():
            one.task = asyncio.get_running_loop().create_task(self._until_current(one))

    async def _until_current(self, one: OpenFile) -> None:
        """Check a file until the result is that of its current text."""
        while one.stale and one.kind is not None:
            one.stale = False
            await asyncio.sleep(DEBOUNCE_S)
            if not one.stale:
                await self._check_text(one)

    async def _check_text(self, one: OpenFile) -> None:
        text, version = one.text, one.version
        try:
            found = await self.checker.run(check_in_editor, one.path, one.kind, self.edits)
        except CheckEndedError as error:
            self._on_ended(f"The check of {one.path} {error}. What is shown of the file may be out of date.")
            return
        index = found.index or (one.checked.index if one.checked is not None else None)
        one.checked = replace(found, index=index)
        if one.text == text:
            self._show(one, found.diagnostics, version)
        else:
            one.stale = True

    def _show(self, one: OpenFile, diagnostics: tuple[Diagnostic, ...], version: int | None) -> None:
        touched = {one.path, *_files_of(one.diagnostics), *_files_of(diagnostics)}
        one.diagnostics, one.shown_version = diagnostics, version
        self._on_checked(touched)


def _files_of(diagnostics: Sequence[Diagnostic]) -> set[str]:
    return {one.span.file for one in diagnostics if one.span is not None}
