"""The files of an AgentV project, and a copy of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from agentv.app.planning.default_paths import default_paths
from agentv.authoring.loading.load import collected, eval_files
from agentv.authoring.loading.suite_builder import cases_beside
from agentv.authoring.source.files import PASSED_OVER, is_of_project, template_home
from agentv.errors import LoadError, UsageError

NOT_COPIED = PASSED_OVER - {".agentv"}
"""Directories that belong to no project's source."""

_OF_AGENTV = frozenset({"results", "cache", "logs"})
"""Directories of `.agentv` that runs write."""

_YAML = (".yaml", ".yml")


def eval_files_in(directory: Path, process_env: Mapping[str, str]) -> list[str]:
    """The eval files of a project, absolute: those that a run finds, and those of its `eval_patterns`; none in Python.

    Raises:
        UsageError: it cannot be searched.
    """
    home = directory.absolute()
    found = [*collected(str(directory)), *_with_sidecars(home), *_by_patterns(home, process_env)]
    return sorted({path for path in found if not path.endswith(".py") and Path(path).is_relative_to(home)})


def _with_sidecars(home: Path) -> list[str]:
    """JSON Lines files that a YAML file beside them makes a suite."""
    found: list[str] = []
    for folder, folders, files in os.walk(home):
        folders[:] = [name for name in folders if name not in PASSED_OVER]
        beside = (cases_beside(str(Path(folder, name))) for name in files if name.endswith(_YAML))
        found += [path for path in beside if path is not None]
    return found


def _by_patterns(home: Path, process_env: Mapping[str, str]) -> list[str]:
    try:
        return list(eval_files(default_paths(str(home), process_env).paths))
    except (UsageError, LoadError):
        return []  # what is wrong with the configuration is reported with each eval file


def project_files(directory: Path) -> list[str]:
    """The targets, configurations and templates of a project, absolute, wherever in it they are."""
    found: list[str] = []
    for folder, folders, files in os.walk(directory):
        folders[:] = [name for name in folders if name not in NOT_COPIED]
        here = Path(folder)
        templates = template_home(f"{folder}{os.sep}") is not None
        own = (here / name for name in files if (templates and name.endswith(_YAML)) or is_of_project(here / name))
        found += [str(path.absolute()) for path in own]
    return sorted(found)


def refuse_place(source: Path, out: Path) -> None:
    """Refuse a directory that is in use, or that one of the two would be inside the other.

    Raises:
        UsageError: it is.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} would be overwritten", "choose another directory with --out, or use --in-place")
    ours, theirs = source.resolve(), out.resolve()
    if theirs.is_relative_to(ours) or ours.is_relative_to(theirs):
        raise UsageError(f"{out} and {source} are inside each other", "choose a directory beside the project")


def copied(source: Path, out: Path, undo: ExitStack) -> tuple[str, ...]:
    """Copy a project; what was left out, as paths from it.

    Links that lead out of the project are left out, so that nothing outside the copy is ever written; so are pipes.

    Raises:
        OSError: a file cannot be read or written; what was copied is taken away again by `undo`.
    """
    left: list[str] = []
    home = source.resolve()

    def ignored(folder: str, names: list[str]) -> set[str]:
        here = Path(folder)
        out_of = {name for name in names if (here / name).is_symlink() and not _is_portable_link(here / name, home)}
        runs = _OF_AGENTV if here.name == ".agentv" else frozenset()
        passed = {name for name in names if name in (NOT_COPIED | runs) and (here / name).is_dir()} | out_of
        passed |= {name for name in names if not _is_plain(here / name)}
        left.extend(str((here / name).relative_to(source)) for name in sorted(passed))
        return passed

    if not out.exists():
        undo.callback(shutil.rmtree, out, ignore_errors=True)
    shutil.copytree(source, out, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    return tuple(left)


def _is_plain(path: Path) -> bool:
    """Whether a path can be copied: no pipe, socket or device."""
    return path.is_symlink() or path.is_dir() or path.is_file()


def _is_portable_link(link: Path, home: Path) -> bool:
    """Whether a link leads to a place inside a project, by a way that is right in a copy as well."""
    target = link.readlink()
    return not target.is_absolute() and link.resolve().is_relative_to(home)
