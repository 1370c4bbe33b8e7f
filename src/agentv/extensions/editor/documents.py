"""Open files, and the checks of them in the background. A check runs no code of the project and makes no connection."""

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
"""Of what needs a repository from a git host; opening a file in an editor must not fetch it, so it is not reported."""


class PathLink(Struct, frozen=True):
    """A path in a file, and the file that it means."""

    span: Span
    target: str


class EditorCheck(Struct, frozen=True):
    """Result of a check.

    Attributes:
        diagnostics: of the file and of those that it uses, sorted.
        read: absolute paths of all files that were read.
        index: None if the YAML is broken.
    """

    diagnostics: tuple[Diagnostic, ...]
    read: frozenset[str]
    index: FileIndex | None
    links: tuple[PathLink, ...] = ()


def check_in_editor(path: str, kind: FileKind, edits: Mapping[str, bytes]) -> EditorCheck:
    """All mistakes of an open file.

    Args:
        path: absolute; the file need not be on disk if it is among the edits.
        kind: of the file.
        edits: absolute path → text of each open file, which counts in place of what is on disk.
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
"""Time without a key that ends a burst of them."""

T = TypeVar("T")


class OpenFile(Struct):
    """A file that is open in the editor.

    Attributes:
        checked: the last result of a check.
        diagnostics: what is shown.
        shown_version: of the text that this holds for.
        stale: the text has changed since the last check began.
        task: the check that runs.
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
        """The text as it would be on disk."""
        return self.text.encode(errors="replace")


class CheckEndedError(Exception):
    """A check gave no result; the text says why."""


class Checker:
    """A process that checks files, so that the server answers meanwhile and a hostile file cannot stop it.

    Attributes:
        limit_s: seconds that a check may take.
    """

    def __init__(self) -> None:
        self.limit_s = 30.0
        self._pool: ProcessPoolExecutor | None = None
        self._worked = False
        self._turn = asyncio.Lock()

    def start(self) -> None:
        """Begin to import what checks need, before the first is asked for."""
        with suppress(FileNotFoundError):  # the directory was deleted just now
            self._started().submit(ready)

    async def run(self, work: Callable[..., T], *given: Any) -> T:
        """What the work returns. A process that died before it did anything is started again.

        Raises:
            CheckEndedError: its process died, or it took too long and was ended.
        """
        async with self._turn:  # what waits must not end with the process of what takes too long
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
                except (BrokenProcessPool, FileNotFoundError):  # its directory was deleted while it started
                    worked, self._pool, self._worked = self._worked, None, False
                    if worked:
                        break
                else:
                    self._worked = True
                    return found
            raise CheckEndedError("ended with its process")

    def stop(self) -> None:
        """End the process, whatever it does."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):  # noqa: SLF001  # public from 3.14 on
                process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool, self._worked = None, False

    def _started(self) -> ProcessPoolExecutor:
        leave_deleted_directory()  # a process starts in that of its parent
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=end_with_parent)
        return self._pool


def end_with_parent() -> None:
    """Have this process end when the server does, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def ready() -> bool:
    """Import what a check needs; runs in the process of a checker."""
    from agentv.app.registries import registries

    return registries() is not None


class Documents:
    """The open files. Everything here runs on the server's loop.

    Args:
        on_checked: called with the paths whose mistakes may be others now.
        on_ended: called with a sentence if a check gave no result.
    """

    def __init__(self, on_checked: Callable[[set[str]], None], on_ended: Callable[[str], None]) -> None:
        self.checker = Checker()
        self._on_checked = on_checked
        self._on_ended = on_ended
        self._open: dict[str, OpenFile] = {}

    def get(self, path: str) -> OpenFile | None:
        """An open file."""
        return self._open.get(path)

    @property
    def edits(self) -> dict[str, bytes]:
        """The text of each open file that is agentv's, by path."""
        return {path: one.data for path, one in self._open.items() if one.kind is not None}

    def put(self, path: str, text: str, version: int | None) -> None:
        """Take a file, or its new text, and check it."""
        known = self._open.get(path)
        if known is None:
            known = self._open[path] = OpenFile(path, text, version, kind_of(path, text))
        else:
            known.text, known.version, known.kind = text, version, kind_of(path, text)
        if known.kind is not None:
            self._check(known)
            self.files_changed({path})
        elif known.diagnostics:  # it became no file of ours
            self._finish(known, (), version)

    def close(self, path: str) -> None:
        """Forget a file; what uses it is checked with what is on disk."""
        known = self._open.pop(path, None)
        if known is None:
            return
        if known.task is not None:
            known.task.cancel()
        self._on_checked({path, *_files_of(known.diagnostics)})
        self.files_changed({path})

    def files_changed(self, paths: set[str]) -> None:
        """Check again what uses one of these files."""
        for one in self._open.values():
            if one.path not in paths and one.checked is not None and (one.checked.read & paths):
                self._check(one)

    def check_all(self) -> None:
        """Check every open file again: something on disk changed."""
        for one in self._open.values():
            if one.kind is not None:
                self._check(one)

    def diagnostics_of(self, path: str) -> list[Diagnostic]:
        """What is wrong in a file, as it and the open files that use it tell."""
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
        """Check until the result is that of the current text."""
        while one.stale and one.kind is not None:
            one.stale = False
            await asyncio.sleep(DEBOUNCE_S)
            if not one.stale:
                await self._whole(one)

    async def _whole(self, one: OpenFile) -> None:
        text, version = one.text, one.version
        try:
            found = await self.checker.run(check_in_editor, one.path, one.kind, self.edits)
        except CheckEndedError as error:
            self._on_ended(f"The check of {one.path} {error}. What is shown of the file may be out of date.")
            return
        index = found.index or (one.checked.index if one.checked is not None else None)
        one.checked = replace(found, index=index)
        if one.text == text:
            self._finish(one, found.diagnostics, version)
        else:
            one.stale = True

    def _finish(self, one: OpenFile, diagnostics: tuple[Diagnostic, ...], version: int | None) -> None:
        touched = {one.path, *_files_of(one.diagnostics), *_files_of(diagnostics)}
        one.diagnostics, one.shown_version = diagnostics, version
        self._on_checked(touched)


def _files_of(diagnostics: Sequence[Diagnostic]) -> set[str]:
    return {one.span.file for one in diagnostics if one.span is not None}
