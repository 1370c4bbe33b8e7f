"""Open files, and the checks of them in the background."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from msgspec import structs

from agentv.errors import Diagnostic
from agentv.extensions.editor.changed_case import change_between
from agentv.extensions.editor.checking import OF_SEVERAL_CASES, EditorCheck, check_changed_case, check_in_editor
from agentv.extensions.editor.disk import leave_deleted_directory
from agentv.extensions.editor.file_kinds import FileKind, kind_of
from agentv.extensions.editor.lsp.positions import lines_of

DEBOUNCE_S = 0.03
"""Time without a key that ends a burst of them."""

LONG_LINES = 300
"""Lines of a file that takes longer to check than people wait: its changed case is checked first."""

LONG_DEBOUNCE_S = 0.4
"""Time without a key after which such a file is checked as a whole."""

T = TypeVar("T")


@dataclass(slots=True)
class OpenFile:
    """A file that is open in the editor.

    Attributes:
        checked: the last result of a check of the whole file, whose lines were `checked_lines`.
        diagnostics: what is shown: of that check, and of the case that has changed since.
        shown_version, whole_version: of the texts that this and the check of the whole file hold for.
        stale: the text has changed since the last check began.
        task, later: the check that runs, and that of the whole of a long file, which waits for a pause.
    """

    path: str
    text: str
    version: int | None
    kind: FileKind | None
    checked: EditorCheck | None = None
    checked_lines: list[str] = field(default_factory=list)
    diagnostics: tuple[Diagnostic, ...] = ()
    shown_version: int | None = None
    whole_version: int | None = None
    stale: bool = True
    task: asyncio.Task[None] | None = None
    later: asyncio.Task[None] | None = None

    @property
    def data(self) -> bytes:
        """The text as it would be on disk."""
        return self.text.encode(errors="replace")


class Checkers:
    """Processes that check files, so that the server answers meanwhile and a hostile file cannot stop it."""

    def __init__(self) -> None:
        self._pools: dict[str, ProcessPoolExecutor] = {}
        self._working: set[str] = set()

    def start(self, name: str) -> None:
        """Begin to import what checks need, before the first is asked for."""
        if name not in self._pools:
            with suppress(FileNotFoundError):  # the directory was deleted just now
                self._pool(name).submit(ready)

    async def run(self, name: str, work: Callable[..., T], *given: Any) -> T | None:
        """What the work returns; None if its process died. One that died before it did anything is started again."""
        for _ in range(2):
            try:
                pool = self._pool(name)
                found = await asyncio.get_running_loop().run_in_executor(pool, work, *given)
            except (BrokenProcessPool, FileNotFoundError):  # its directory was deleted while it started
                self._pools.pop(name, None)
                if name in self._working:
                    self._working.discard(name)
                    return None
            else:
                self._working.add(name)
                return found
        return None

    def stop(self) -> None:
        """End the processes, whatever they do."""
        for pool in self._pools.values():
            for process in list((pool._processes or {}).values()):  # noqa: SLF001  # public from 3.14 on
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    def _pool(self, name: str) -> ProcessPoolExecutor:
        leave_deleted_directory()  # a process starts in that of its parent
        if name not in self._pools:
            self._pools[name] = ProcessPoolExecutor(
                1, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent
            )
        return self._pools[name]


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
    """

    def __init__(self, on_checked: Callable[[set[str]], None]) -> None:
        self.checkers = Checkers()
        self._on_checked = on_checked
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
        for task in filter(None, (known.task, known.later)):
            task.cancel()
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
        """Check until the result is that of the current text, as far as a pause of typing is not waited for."""
        while one.stale and one.kind is not None:
            one.stale = False
            await asyncio.sleep(DEBOUNCE_S)
            if one.stale:
                continue
            if one.checked is None or len(one.checked_lines) <= LONG_LINES:
                await self._whole(one)
                continue
            await self._changed_case(one)
            if one.later is None or one.later.done():
                one.later = asyncio.get_running_loop().create_task(self._whole_later(one))

    async def _whole(self, one: OpenFile) -> None:
        """Check the whole file. If the text changes meanwhile, the result is what the next change is compared with."""
        text, version = one.text, one.version
        found = await self.checkers.run("whole", check_in_editor, one.path, one.kind, self.edits)
        if found is None:
            return
        one.checked_lines = lines_of(text)
        index = found.index or (one.checked.index if one.checked is not None else None)
        one.checked, one.whole_version = replace(found, index=index), version
        if one.text == text:
            self._finish(one, found.diagnostics, version)
        else:
            one.stale = True
        if len(one.checked_lines) > LONG_LINES:
            self.checkers.start("case")

    async def _whole_later(self, one: OpenFile) -> None:
        """Check a long file as a whole once nobody types."""
        text = ""
        while text != one.text:
            text = one.text
            await asyncio.sleep(LONG_DEBOUNCE_S)
        await self._whole(one)
        if one.stale:
            self._check(one)

    async def _changed_case(self, one: OpenFile) -> None:
        """Check what changed alone, and show it with what was known of the rest."""
        known, lines, version = one.checked, lines_of(one.text), one.version
        if known is None:
            return
        change = change_between(one.checked_lines, lines)
        if change.first >= change.last:  # nothing, or lines that are gone: the rest is as it was
            self._finish(one, known.diagnostics if not change.added else one.diagnostics, version)
            return
        found = await self.checkers.run("case", check_changed_case, one.path, change, self.edits)
        if found is not None and known is one.checked:
            first, last, diagnostics = found
            rest = _moved(known.diagnostics, one.path, (first, last), change.added)
            self._finish(one, tuple(sorted([*rest, *diagnostics], key=lambda each: each.order)), version)

    def _finish(self, one: OpenFile, diagnostics: tuple[Diagnostic, ...], version: int | None) -> None:
        touched = {one.path, *_files_of(one.diagnostics), *_files_of(diagnostics)}
        one.diagnostics, one.shown_version = diagnostics, version
        self._on_checked(touched)


def _moved(known: Sequence[Diagnostic], path: str, lines: tuple[int, int], added: int) -> Iterator[Diagnostic]:
    """What was known, without what the lines of the changed case now tell, and moved below them."""
    first, last = lines
    for one in known:
        span = one.span
        if span is None or span.file != path or span.line < first:
            yield one
        elif span.line > last - added:
            moved = span._replace(line=span.line + added, end_line=span.end_line + added)
            yield structs.replace(one, span=moved)
        elif one.code in OF_SEVERAL_CASES:
            yield one


def _files_of(diagnostics: Sequence[Diagnostic]) -> set[str]:
    return {one.span.file for one in diagnostics if one.span is not None}
