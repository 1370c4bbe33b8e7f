"""Files in the server's own process: read without waiting or filling its memory, and distinguished by their kinds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from errno import EFBIG, EINVAL
from pathlib import Path
from stat import S_ISREG
from typing import Literal

from agentv.authoring.prompt_library import prompt_file_of
from agentv.authoring.source.boundary import Boundary
from agentv.authoring.source.files import META, is_exam, template_home

MOST_BYTES = 5_000_000
"""Size of a file whose names are read; ten thousand cases are half of it."""


def bytes_of(
    path: str, edits: Mapping[str, bytes], boundary: Boundary | None = None, *, most: int = MOST_BYTES
) -> bytes:
    """The bytes of a file as it is in the editor, else on disk.

    Args:
        path: absolute.
        edits: absolute path → text of each open file.
        boundary: what may be read from disk; None: everything.
        most: bytes that it may have.

    Raises:
        OSError: it cannot be read, is no regular file, or is too large (`EFBIG`).
    """
    data = edits.get(path)
    if data is None:
        if boundary is not None:
            boundary.check(path)
        data = _read(path, most)
    if len(data) > most:
        raise OSError(EFBIG, "the file is too large", path)
    return data


def leave_deleted_directory() -> None:
    """Go to the file system's root if the working directory is gone: a branch that lacks it may be checked out."""
    try:
        os.getcwd()  # noqa: PTH109  # for every request
    except FileNotFoundError:
        os.chdir(os.sep)


def _read(path: str, most: int) -> bytes:
    if S_ISREG(Path(path).stat().st_mode):  # to open a device can have an effect
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(most + 1)
    raise OSError(EINVAL, "it is a device or a pipe, expected a file", path)


FileKind = Literal["eval", "targets", "config", "template", "exam", "meta"]
"""Those that have a JSON Schema are called as it."""

_YAML = (".yaml", ".yml")
_TARGETS = frozenset({"targets", "providers"})
_CONFIGS = frozenset({"config", "config.local"})
_TESTS = re.compile(r"^(?:tests|evalcases|eval_cases)[ ]*:", re.MULTILINE)
_OF_SUITES = re.compile(
    r"^[ -]*(?:input|input_messages|assert|assertions|criteria|prompts|providers|target)[ ]*:", re.MULTILINE
)


def kind_of(path: str, text: str) -> FileKind | None:
    """The kind of a file by its path, or by its content where its name could be any; None: it is not agentv's."""
    file = Path(path)
    if file.suffix == ".jsonl":
        return "eval" if file.with_suffix(".yaml").is_file() else None
    if file.suffix not in _YAML:
        return None
    if file.parent.name == ".agentv":
        return "targets" if file.stem in _TARGETS else "config" if file.stem in _CONFIGS else None
    return _by_name(file) or ("eval" if _TESTS.search(text) and _OF_SUITES.search(text) else None)


def _by_name(file: Path) -> FileKind | None:
    if template_home(str(file)) is not None:
        return "template"
    if file.stem.endswith(".eval") or file.stem == "EVAL":
        return "eval"
    if is_exam(str(file)):
        return "exam"
    return "meta" if file.name == META and prompt_file_of(file.parent) is not None else None
