"""Bytecode beside Python files: what is compared is the source, so what runs must be made of it.

Python takes the bytecode in `__pycache__` for that of a source by a time and a size, which anybody can write there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import cache_from_source

_FOLDER = "__pycache__"


class Bytecode:
    """Removes the cached bytecode of a project's sources; Python compiles them again."""

    def __init__(self) -> None:
        self._cleaned: dict[str, tuple[int, frozenset[str]]] = {}

    def remove(self, sources: Iterable[str]) -> None:
        """Remove the cached bytecode of these Python files, from any interpreter."""
        stems: dict[str, set[str]] = {}
        for path in sources:
            if path.endswith(".py"):
                for folder in _folders(path):
                    stems.setdefault(folder, set()).add(os.path.basename(path).removesuffix("py"))  # noqa: PTH119  # called for every grading
        for folder, wanted in stems.items():
            self._clean(folder, frozenset(wanted))

    def _clean(self, folder: str, stems: frozenset[str]) -> None:
        changed = _changed_ns(folder)
        if changed is None or self._cleaned.get(folder) == (changed, stems):
            return
        names = _names(folder)
        compiled = [name for name in names if name.endswith(".pyc") and f"{name.split('.', 1)[0]}." in stems]
        for name in compiled:
            with suppress(OSError):  # somebody else was faster
                os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118  # as above
        if not compiled:  # else what was written meanwhile is looked for the next time
            self._cleaned[folder] = (changed, stems)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  # as above
    except OSError:  # nor can Python read it
        return []


def _folders(path: str) -> set[str]:
    """Where Python keeps the bytecode of a source, beside it and below `PYTHONPYCACHEPREFIX`."""
    found = {os.path.join(os.path.dirname(path), _FOLDER)}  # noqa: PTH118, PTH120  # as above
    with suppress(NotImplementedError):
        found.add(os.path.dirname(cache_from_source(path)))  # noqa: PTH120  # as above
    return found


def _changed_ns(folder: str) -> int | None:
    """When something was last written into a directory; that time cannot be set."""
    try:
        return os.stat(folder).st_ctime_ns  # noqa: PTH116  # as above
    except OSError:
        return None
