"""Location and contents of the prompt library (SPEC section 11)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from agentv.authoring.fields.reading import Reading
from agentv.authoring.header.config import read_config
from agentv.authoring.prompt_library.files import META, PROMPT_FILES
from agentv.authoring.source.files import DiskReader, Places, is_directory, is_file, repository_root, shown, upwards
from agentv.authoring.source.report import Report
from agentv.errors import UsageError
from agentv.model.values.values import EMPTY
from agentv.templating import Scope

LIBRARY = "prompts"
"""The name of a library that no config file names."""

_MARKS = frozenset({*PROMPT_FILES, META})
_PASSED_OVER = frozenset({".agentv", ".git", "node_modules", "__pycache__", ".venv"})


def library_reading(working: str, env: Mapping[str, str]) -> Reading:
    """The context for `library_of` and `read_meta`, for a command that runs in a directory.

    Args:
        working: the directory, absolute.
        env: the environment of the process.
    """
    places = Places(working, repository_root(working), alone=True)
    return Reading(Report(), DiskReader(), places, Scope(EMPTY, env), strict_env=False)


def library_of(working: str, reading: Reading) -> str | None:
    """The absolute directory of the library, or None.

    That is `prompts_dir` of the closest config, else the closest `prompts/` up to the repository root. A `prompts_dir`
    that is not a directory is reported; the result is then None, although `read_config` returns it.
    """
    config = read_config(working, reading)
    if config.prompts_dir is None:
        above = (os.path.join(parent, LIBRARY) for parent in upwards(working, reading.places.root))  # noqa: PTH118  # as in files
        return next(filter(is_directory, above), None)
    if is_directory(config.prompts_dir):
        return config.prompts_dir
    missing = f"'prompts_dir' is {shown(config.prompts_dir)}, which does not exist"
    reading.report.error("missing-file", config.nodes["prompts_dir"], missing)
    return None


def prompt_directories(library: str) -> list[str]:
    """The directories of the prompts in a library, absolute and sorted.

    A directory with a prompt file or a `meta.yaml` is a prompt's, and is not searched further. The library itself is
    none, and links to directories are skipped, as in every search for eval files.

    Raises:
        UsageError: a directory cannot be searched.
    """
    try:
        return sorted(_prompts_in(library))
    except OSError as error:
        raise UsageError(f"{shown(library)} cannot be searched: {error.strerror}: {error.filename}") from None


def is_prompt_directory(directory: str) -> bool:
    """Whether a directory is that of a prompt.

    Raises:
        OSError: it cannot be read.
    """
    return _looked_at(directory) is None


def _prompts_in(library: str) -> Iterator[str]:
    inner = _inner(library)
    while inner:
        path = inner.pop()
        below = _looked_at(path)
        if below is None:
            yield path
        else:
            inner += below


def _looked_at(directory: str) -> list[str] | None:
    """The directories to search below this one; None: it is that of a prompt."""
    with os.scandir(directory) as entries:
        found = list(entries)
    if any(entry.name in _MARKS and is_file(entry.path) for entry in found):
        return None
    return _directories(found)


def _inner(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        return _directories(entries)


def _directories(entries: Iterable[os.DirEntry[str]]) -> list[str]:
    return [one.path for one in entries if one.name not in _PASSED_OVER and one.is_dir(follow_symlinks=False)]
