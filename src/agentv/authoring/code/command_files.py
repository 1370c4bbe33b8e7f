"""Find the files that a command names: scripts, their arguments, and modules."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from glob import escape, iglob
from itertools import islice, pairwise

from agentv.authoring.code.code_imports import is_installed, module_files
from agentv.authoring.source.files import is_directory, is_file, repository_root
from agentv.model.suite.files import SearchPaths
from agentv.model.values.values import lazy_pattern
from agentv.registry.fields import Command

_NOT_IN_PATHS = lazy_pattern(r"[\x00\n]")
_MODULE = lazy_pattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_PROGRAM = lazy_pattern(r"[\w.+-]{1,100}")
_NESTED = lazy_pattern(r"[\s;&|()<>]")
_CHANGE_DIRECTORY = frozenset({"cd", "pushd", "-C"})
_WRITES = lazy_pattern(r"\d?>>?\|?|&>>?|tee|-o|--(?:out|log|junit|report)[\w-]*")
_WRITES_TO = lazy_pattern(r"--(?:out|log|junit|report)[\w-]*=")
"""Words before a file that a command writes, which is neither code nor a reference."""

_RUNNERS = {
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "npx"), ("package.json",)),
    **dict.fromkeys(("bun", "bunx"), ("package.json", "bunfig.toml", "tsconfig.json")),
}
"""Program → the files that define what it runs."""

_READERS = ("awk", "cat", "cut", "diff", "grep", "head", "jq", "sed", "tail", "tr", "wc")
_TOOLS = frozenset((":", "[", "echo", "exit", "false", "printf", "sleep", "test", "true", *_READERS))
"""Programs whose output depends only on their arguments and input."""

_VARIABLES = {"PATH": "programs", "PYTHONPATH": "python", "NODE_PATH": "node"}

_LONGEST = 4096
"""Length from which a word of a command is not a path."""

_PYTEST = frozenset({"pytest", "py.test"})
_TEST = lazy_pattern(r"/(?:test_[^/]*|[^/]*_test|conftest)\.py$")
_MOST_TESTS = 500
_DEEPEST = 3
_MOST_DIRECTORIES = 20


@lru_cache(maxsize=4096)
def paths_of_command(command: Command, search: SearchPaths) -> tuple[str, ...]:
    """The words of a command as paths, relative to each directory that it runs in or changes to. They may not exist.

    Examples: `sh grade.sh`, `bash -c "cd checks && python3 c.py"`, `python3 -m checks.c`, `grade --with=rules.json`.
    """
    words = _words(command)
    found: dict[str, None] = {}
    for directory in _directories(command.cwd, words):
        for path in _paths_from(directory, words, homes_of_command(command, search)):
            found.setdefault(path)
    loaded = (part for word in search.options.split() for part in (word, word.partition("=")[2]) if part)
    found |= {_joined(command.cwd, part): None for part in loaded}
    root = repository_root(command.cwd).rstrip(os.sep) + os.sep
    programs = (_program(word, directories) for word in words for directories in _program_directories(command, search))
    found |= {path: None for path in programs if path.startswith(root) and not is_installed(path)}
    return tuple(found)


@lru_cache(maxsize=4096)
def homes_of_command(command: Command, search: SearchPaths) -> tuple[str, ...]:
    """The directories in which a command looks for modules, by its environment or its own assignments."""
    searches = (search, *_own_assignments(command))
    directories = _directories(command.cwd, _words(command))
    return tuple(dict.fromkeys(home for one in searches for cwd in directories for home in one.module_directories(cwd)))


def _own_assignments(command: Command) -> Iterator[SearchPaths]:
    """Yield the search paths that a command sets itself, as in `PYTHONPATH=lib python3 agent.py`."""
    for word in _words(command):
        name, equals, value = word.partition("=")
        if equals and name in _VARIABLES and "$" not in value:
            yield SearchPaths(**{"programs": "", _VARIABLES[name]: value})


def _program_directories(command: Command, search: SearchPaths) -> Iterator[tuple[str, ...]]:
    for one in (search, *_own_assignments(command)):
        yield one.program_directories(command.cwd)


def searches_unknown(command: Command) -> bool:
    """Whether a command's search path depends on a shell variable, as in `PYTHONPATH=$HOME/lib python3 a.py`."""
    return any(
        "$" in value and name in _VARIABLES for name, _, value in (word.partition("=") for word in _words(command))
    )


@lru_cache(maxsize=4096)
def _program(word: str, directories: tuple[str, ...]) -> str:
    """The path of a program in the first directory that has it; "" if none exists."""
    if os.sep in word or not _PROGRAM.fullmatch(word):
        return ""
    paths = (os.path.join(directory, word) for directory in directories)
    return next((path for path in paths if is_file(path) and os.access(path, os.X_OK)), "")


def tests_of_command(command: Command) -> Iterator[str]:
    """Yield the files that pytest may load: tests, those in directories, and `conftest.py` and `pytest.ini` above."""
    words = _words(command)
    if _PYTEST.isdisjoint(os.path.basename(word) for word in words):  # a word need not be a path
        return
    for directory in _directories(command.cwd, words):
        for word in (".", *words):
            place = _joined(directory, word.partition("::")[0]) if _may_be_path(word) else ""
            if word != "." and place and is_directory(place):
                found = iglob(f"{escape(place)}/**/*.py", recursive=True)  # no Path is made
                yield from islice(filter(_TEST.search, found), _MOST_TESTS)
            elif place.endswith(".py"):
                yield place
            while place.startswith(directory):
                yield from (os.path.join(place, name) for name in ("conftest.py", "pytest.ini"))
                place = os.path.dirname(place) if place != directory else ""


def is_opaque(command: Command, search: SearchPaths) -> bool:
    """Whether a command names no existing file, and its program is not a common tool."""
    words = _words(command)
    program = os.path.basename(words[0]) if words else ""  # a word need not be a path
    return program not in _TOOLS and not any(is_file(path) for path in paths_of_command(command, search))


@lru_cache(maxsize=4096)
def _words(command: Command) -> tuple[str, ...]:
    """The words of a command that may name files it reads, without those that name files it writes."""
    words = list(command.argv if command.shell is None else _split(command.shell))
    words += [inner for word in words for inner in _nested_words(word, _DEEPEST)]
    written = {after for before, after in pairwise(words) if _WRITES.fullmatch(before)}
    return tuple(word for word in words if word not in written and not _WRITES_TO.match(word))


def _split(line: str) -> list[str]:
    """The words and operators of a shell command line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""  # shlex would also take the `#` within a word for a comment
    try:
        return list(lexer)
    except ValueError:
        return line.split()


def _nested_words(word: str, depth: int) -> Iterator[str]:
    """Yield the words of a word that is itself a command line, as after `bash -c`."""
    if depth and _NESTED.search(word):
        for inner in _split(word):
            yield inner
            if inner != word:
                yield from _nested_words(inner, depth - 1)


def _directories(cwd: str, words: Sequence[str]) -> list[str]:
    """The directory in which a command runs, and those that it may change to."""
    found = [cwd]
    for before, word in pairwise(words):
        if before in _CHANGE_DIRECTORY and _may_be_path(word):
            found += [path for home in found if (path := _joined(home, word)) not in found]
    return found[:_MOST_DIRECTORIES]


def _paths_from(directory: str, words: Sequence[str], homes: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        if _may_be_path(word):
            yield from (_joined(directory, name) for name in _RUNNERS.get(word, ()))
            yield _joined(directory, word)
            if "=" in word:
                yield _joined(directory, word.partition("=")[2])
    yield from _modules((directory, *homes), words)


def _modules(homes: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    for place, word in enumerate(words):
        module = words[place + 1] if word == "-m" and place + 1 < len(words) else word.removeprefix("-m")
        for home in homes if word.startswith("-m") and _MODULE.fullmatch(module) else ():
            yield from module_files(home, module)
            yield _joined(home, f"{module.replace('.', '/')}/__main__.py")


def _may_be_path(word: str) -> bool:
    return len(word) < _LONGEST and _NOT_IN_PATHS.search(word) is None


def _joined(directory: str, word: str) -> str:
    return os.path.normpath(os.path.join(directory, word))  # Path keeps '..'
