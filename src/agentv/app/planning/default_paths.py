"""Default paths of a command without a path, and the files of an AgentV project (SPEC section 12)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.config import Config, read_config
from agentv.authoring.dialects.recognition import by_name
from agentv.authoring.fields.reading import Reading
from agentv.authoring.loading.load import collected, eval_files, is_named_eval_file
from agentv.authoring.loading.suite_builder import cases_beside
from agentv.authoring.prompt_library import library_reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE, Boundary, boundary_around
from agentv.authoring.source.files import (
    SKIPPED_DIRECTORIES,
    climbs,
    is_directory,
    is_file,
    is_of_project,
    literal_part,
    matched,
    shown,
    template_home,
    upwards,
)
from agentv.authoring.source.nodes import ListNode, Node, span_of
from agentv.errors import LoadError, UsageError
from agentv.model.values.formatting import plural

DIRECTORY = "evals"
"""Directory searched for eval files if the configuration does not set `eval_patterns`."""

_HINT = "give a file or a directory, or list patterns of eval files as 'eval_patterns' in .agentv/config.yaml"


class DefaultPaths(Struct, frozen=True):
    """Paths to use if none is given.

    Attributes:
        paths: as the user would type them in the working directory.
        notes: which paths were chosen and why.
    """

    paths: tuple[str, ...]
    notes: tuple[str, ...]


def default_paths(working: str, env: Mapping[str, str], *, allow_outside: bool = False) -> DefaultPaths:
    """Return the eval files for a command that names none.

    Args:
        working: the working directory, absolute.
        env: the environment of the process.
        allow_outside: patterns may match files outside the repository.

    Raises:
        LoadError: the configuration is invalid, or a pattern leads out of the repository.
        UsageError: there is no eval file.
    """
    reading = library_reading(working, env)
    root = reading.places.root
    boundary = boundary_around(working, root)
    boundary.is_open = allow_outside
    reading = replace(reading, places=replace(reading.places, boundary=boundary))
    config = read_config(working, reading)
    if reading.report.failed:
        raise LoadError(reading.report.diagnostics)
    if config.eval_patterns is not None:
        return _by_patterns(config, config.eval_patterns, reading, boundary)
    homes = (os.path.join(parent, DIRECTORY) for parent in upwards(working, root))  # noqa: PTH118
    found = next((path for path in homes if is_directory(path)), None)
    if found is None:
        others = sorted(name for name in os.listdir(working) if by_name(name))  # noqa: PTH208
        if others:
            return DefaultPaths(tuple(others), tuple(f"no path given: using {name}" for name in others))
        what = f"no path given, no configuration sets 'eval_patterns', and there is no {DIRECTORY}/"
        raise UsageError(what, _HINT)
    return DefaultPaths((shown(found),), (f"no path given: using {shown(found)}/",))


def _by_patterns(config: Config, patterns: tuple[str, ...], reading: Reading, boundary: Boundary) -> DefaultPaths:
    node = config.nodes["eval_patterns"]
    file = span_of(node.at).file
    base = str(Path(file).parent.parent)
    items: list[Node] = list(node.items) if isinstance(node, ListNode) else [node] * len(patterns)
    found: dict[str, None] = {}
    empty = []
    for pattern, item in zip(patterns, items, strict=True):
        paths = list(_matching(pattern, base, item, reading, boundary))
        found.update(dict.fromkeys(paths))
        if not paths:
            empty.append(pattern)
    if reading.report.failed:
        raise LoadError(reading.report.diagnostics)
    listed = "'eval_patterns' in " + shown(file)
    if not found:
        named = ", ".join(f"'{one}'" for one in patterns)
        raise UsageError(
            f"no path given, and {listed} matches no eval file: {named}",
            f"patterns are relative to {shown(base)}; fix them, or give a file or a directory",
        )
    taken = f"no path given: using {plural(len(found), 'eval file')} of {listed}"
    return DefaultPaths(
        tuple(map(shown, found)), (taken, *(f"'{one}' of {listed} matches no eval file" for one in empty))
    )


def _matching(pattern: str, base: str, node: Node, reading: Reading, boundary: Boundary) -> Iterator[str]:
    """Yield the eval files that a pattern matches, directly or by a directory; report paths outside the repository."""
    home = "/" if pattern.startswith("/") else base
    written = pattern.strip("/")
    start = os.path.normpath(Path(home) / literal_part(written))
    if not boundary.admits(start) or (climbs(written) and not boundary.admits(os.sep)):
        reading.report.error(OUTSIDE, node, f"'{pattern}' points outside the repository", hint=ALLOW)
        return
    for relative in matched(written, home):
        path = os.path.normpath(Path(home) / relative)
        if not SKIPPED_DIRECTORIES.isdisjoint(Path(relative).parts):
            continue
        if not boundary.admits(path):
            reading.report.error(OUTSIDE, node, f"'{pattern}' matches {shown(path)}, which is outside", hint=ALLOW)
        elif is_directory(path):
            yield from collected(path)
        elif is_file(path) and is_named_eval_file(path):
            yield cases_beside(path) or path


NOT_COPIED = SKIPPED_DIRECTORIES - {".agentv"}
"""Directories that are not copied with a project, such as `.git`."""

_WRITTEN_BY_RUNS = frozenset({"results", "cache", "logs"})
"""Directories in `.agentv` that runs write."""

_YAML = (".yaml", ".yml")


def eval_files_in(directory: Path, process_env: Mapping[str, str]) -> list[str]:
    """Return the absolute paths of a project's eval files, found by name or by `eval_patterns`, except Python files.

    Raises:
        UsageError: the directory cannot be searched.
    """
    home = directory.absolute()
    found = list(collected(str(directory)))
    for folder, folders, files in os.walk(home):
        folders[:] = [name for name in folders if name not in SKIPPED_DIRECTORIES]
        # JSON Lines files that form a suite with a YAML file beside them
        beside = (cases_beside(str(Path(folder, name))) for name in files if name.endswith(_YAML))
        found += [path for path in beside if path is not None]
    with suppress(UsageError, LoadError):  # each eval file reports errors of the configuration
        found += list(eval_files(default_paths(str(home), process_env).paths))
    return sorted({path for path in found if not path.endswith(".py") and Path(path).is_relative_to(home)})


def project_files(directory: Path) -> list[str]:
    """Return the absolute paths of all target, configuration and template files in a project."""
    found: list[str] = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        here = Path(folder)
        templates = template_home(f"{folder}{os.sep}") is not None
        own = (here / name for name in files if (templates and name.endswith(_YAML)) or is_of_project(here / name))
        found += [str(path.absolute()) for path in own]
    return sorted(found)


def check_output(source: Path, out: Path) -> None:
    """Raise if an output directory cannot be used.

    Raises:
        UsageError: it is not empty, or one of the two directories is inside the other.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} would be overwritten", "choose another directory with --out, or use --in-place")
    ours, theirs = source.resolve(), out.resolve()
    if theirs.is_relative_to(ours) or ours.is_relative_to(theirs):
        raise UsageError(f"{out} and {source} are inside each other", "choose a directory beside the project")


def copy_project(source: Path, out: Path, undo: ExitStack) -> tuple[str, ...]:
    """Copy a project, and return the relative paths that were left out.

    Links that lead out of the project are left out, so that nothing outside the copy is ever written. Pipes, sockets
    and devices are left out, too.

    Raises:
        OSError: a file cannot be read or written; `undo` removes a new directory again.
    """
    left: list[str] = []
    home = source.resolve()

    def ignored(folder: str, names: list[str]) -> set[str]:
        here = Path(folder)
        foreign = {name for name in names if (here / name).is_symlink() and not _is_portable_link(here / name, home)}
        runs = _WRITTEN_BY_RUNS if here.name == ".agentv" else frozenset()
        skipped = {name for name in names if name in (NOT_COPIED | runs) and (here / name).is_dir()} | foreign
        for path in (here / name for name in names):
            if not (path.is_symlink() or path.is_dir() or path.is_file()):  # pipe, socket or device
                skipped.add(path.name)
        left.extend(str((here / name).relative_to(source)) for name in sorted(skipped))
        return skipped

    if not out.exists():
        undo.callback(shutil.rmtree, out, ignore_errors=True)
    shutil.copytree(source, out, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    return tuple(left)


def _is_portable_link(link: Path, home: Path) -> bool:
    """Whether a link leads to a path inside the project and is relative, so that it also works in a copy."""
    target = link.readlink()
    return not target.is_absolute() and Path(os.path.realpath(link)).is_relative_to(home)
