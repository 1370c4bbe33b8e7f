"""What a page may run again: what this user ran on this machine, or what the project itself defines.

A run that came from elsewhere says in its own files how it was started: targets such as `cli:…`, paths, flags. Whoever
wrote it would decide what the button executes. So of such a run only names that the project defines are taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentv.app.authored.project_files import eval_files_in
from agentv.app.planning.preparation import prepare
from agentv.app.registries import registries
from agentv.app.run_signature import is_signed_here
from agentv.app.settings import EvalSettings
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.loading.inventory import inventory
from agentv.errors import AgentvError, UsageError
from agentv.extensions.view.viewed.trial import RerunCommand
from agentv.model.suite.suite import Suite
from agentv.model.values.values import JsonObject, objects_in
from agentv.reports.text.escaping import one_line
from agentv.store.files.directory import RUN

_ALONE = frozenset({"--last-failed"})
"""Options that select among the cases of the eval files, and have no value."""

_SELECTING = frozenset({"--filter", "--prompt", "--variant"})
"""Options that select by name among what the eval files define."""

_TARGET, _JUDGE = "--target", "--judge"
_HINT = "read the command; if you trust it, run it in a terminal"


@dataclass(frozen=True, slots=True)
class _Command:
    """The words of `agentv eval`, taken apart.

    Attributes:
        files: eval files, absolute.
        targets, judges: as they are named.
        other: options of which only somebody who trusts the run may say that they are harmless.
    """

    files: tuple[str, ...]
    targets: tuple[str, ...]
    judges: tuple[str, ...]
    other: tuple[str, ...]


def check_rerun(found: RerunCommand, root: str, directory: Path) -> None:
    """Refuse a command of a run's files that neither this user nor the project vouches for.

    Args:
        found: the command.
        root: of the repository that the run lies in, absolute.
        directory: of the project, in which the command runs.

    Raises:
        UsageError: the text says what.
    """
    command = _taken_apart(found.words, directory)
    if is_signed_here(found.record, root):
        recorded = {_real(path) for path in _recorded_files(found.record, root, directory)}
        strange = [path for path in command.files if _real(path) not in recorded]
        _refuse([_shown(path, directory) for path in strange], "a row names an eval file that the run did not run")
        return
    what = "the run was not started by you in this project on this machine, and the project does not define"
    _refuse(command.other, what)
    own = set(_own_files(directory))
    _refuse([_shown(path, directory) for path in command.files if _real(path) not in own], what)
    _refuse(_undefined(command, directory), what)


def _refuse(found: Sequence[str], what: str) -> None:
    if found:
        raise UsageError(f"not run from this page: {what}: {one_line(', '.join(found))[:300]}", _HINT)


def _taken_apart(words: Sequence[str], directory: Path) -> _Command:
    """The parts of a command that `RerunOptions` made: a path never begins with a dash."""
    rest = iter(words[2:])
    files: list[str] = []
    named: dict[str, list[str]] = {_TARGET: [], _JUDGE: []}
    other: list[str] = []
    for word in rest:
        if not word.startswith("-"):
            files.append(os.path.join(directory, word))  # noqa: PTH118  # text, as all paths are
        elif word in named:
            named[word].append(next(rest, ""))
        elif word in _SELECTING:
            next(rest, "")
        elif word not in _ALONE:
            value = () if "=" in word or word in _FLAGS else (next(rest, ""),)
            other.append(" ".join((word, *value)))
    return _Command(tuple(files), tuple(named[_TARGET]), tuple(named[_JUDGE]), tuple(other))


_FLAGS = frozenset({"--allow-outside", "--trust-data", "--allow-unchecked"})


def _recorded_files(record: JsonObject, root: str, directory: Path) -> Iterator[str]:
    """The eval files of a signed `run.json`, and what its command line named."""
    settings = record.get("settings")
    paths = settings.get("paths") if isinstance(settings, dict) else None
    for path in paths if isinstance(paths, list) else ():
        yield os.path.join(directory, str(path))  # noqa: PTH118  # text, as all paths are
    for suite in objects_in(record.get("suites")):
        if suite.get("path"):
            yield os.path.join(root, str(suite["path"]))  # noqa: PTH118  # as above


def _own_files(directory: Path) -> Iterator[str]:
    """The real paths of the project's eval files, without files that came with a run, such as artifacts."""
    home = directory.resolve()
    for path in map(_real, eval_files_in(directory, os.environ)):
        above = [one for one in Path(path).parents if one.is_relative_to(home)]
        if above and not any((one / RUN).exists() for one in above):
            yield path


def _undefined(command: _Command, directory: Path) -> list[str]:
    """The names of targets and judges that neither the project nor each eval file of the command defines."""
    wanted = [*command.targets, *command.judges]
    env = {name: value for name, value in os.environ.items() if name not in _CHOSEN_BY}
    try:
        unlisted = set(wanted) - _listed(directory, env) if wanted else set()
        if unlisted:
            by_file = [
                _names(prepare(EvalSettings(paths=(file,), asks=False, process_env=env)).suites)
                for file in command.files
            ]
            unlisted = {name for name in unlisted if not all(name in names for names in by_file)}
    except AgentvError:
        return wanted
    return [name for name in wanted if name in unlisted]


_CHOSEN_BY = frozenset({"AGENTV_TARGET", "AGENTV_JUDGE"})


def _names(suites: Iterable[Suite]) -> set[str]:
    """The targets and judges of an eval file."""
    found: set[str] = set()
    for suite in suites:
        found.update(target.name for target in suite.targets)
        found.update(judge.name for judge in (suite.judge, suite.default_judge) if judge is not None)
        found.update(suite.judges)
    return found


def _listed(directory: Path, env: Mapping[str, str]) -> set[str]:
    """The targets of the project's configuration."""
    request = LoadRequest((), process_env=env, for_run=False)
    return {entry.name for entry in inventory(str(directory), (), request, registries()).entries}


def _real(path: str) -> str:
    return os.path.realpath(path)


def _shown(path: str, directory: Path) -> str:
    return os.path.relpath(path, directory)
