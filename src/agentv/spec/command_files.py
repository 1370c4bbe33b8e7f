"""The files that a command names: scripts, what they are given, and modules."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from agentv.registry.fields import Command
from agentv.spec.code_imports import module_files

_NOWHERE = re.compile(r"[\x00\n]")
_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_NESTED = re.compile(r"[\s;&|()<>]")
_GOES = frozenset({"cd", "pushd", "-C"})
_LONGEST = 4096
"""Characters above which a word of a command is no path."""

_DEEPEST = 3
_MOST_DIRECTORIES = 20


@lru_cache(maxsize=4096)
def paths_of_command(command: Command) -> tuple[str, ...]:
    """The words of a command as paths, seen from where it runs and from where it goes; not all need be files.

    `sh grade.sh`, `bash -c "cd checks && python3 c.py"`, `python3 -m checks.c`, `grade --with=rules.json`.
    """
    words = list(command.argv if command.shell is None else _split(command.shell))
    words += [inner for word in words for inner in _inside(word, _DEEPEST)]
    found: dict[str, None] = {}
    for directory in _directories(command.cwd, words):
        for path in _seen_from(directory, words):
            found.setdefault(path)
    return tuple(found)


def _split(line: str) -> list[str]:
    """The words of a line for a shell, without what stands between its commands."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _inside(word: str, depth: int) -> Iterator[str]:
    """The words of a word that is a line itself, as behind `bash -c`."""
    if depth and _NESTED.search(word):
        for inner in _split(word):
            yield inner
            if inner != word:
                yield from _inside(inner, depth - 1)


def _directories(cwd: str, words: list[str]) -> list[str]:
    """Where a command runs, and where it may go from there."""
    found = [cwd]
    for before, word in pairwise(words):
        if before in _GOES and _may_be_path(word):
            found += [path for home in found if (path := _joined(home, word)) not in found]
    return found[:_MOST_DIRECTORIES]


def _seen_from(directory: str, words: list[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        if _may_be_path(word):
            yield _joined(directory, word)
            if "=" in word:
                yield _joined(directory, word.partition("=")[2])
        module = words[place + 1] if word == "-m" and place + 1 < len(words) else word.removeprefix("-m")
        if word.startswith("-m") and _MODULE.fullmatch(module):
            yield from module_files(directory, module)
            yield _joined(directory, f"{module.replace('.', '/')}/__main__.py")


def _may_be_path(word: str) -> bool:
    return len(word) < _LONGEST and _NOWHERE.search(word) is None


def _joined(directory: str, word: str) -> str:
    return os.path.normpath(os.path.join(directory, word))  # noqa: PTH118  # Path keeps '..'
