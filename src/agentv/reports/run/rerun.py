"""Commands that rerun failed cases, ready to be pasted into a shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from glob import escape
from typing import Any

from msgspec import Struct

from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.reports.run.failures import FailedTrial, FailureGroup
from agentv.reports.text import safe, shown_from

MOST_CASES = 10
"""Cases that a command names; for a larger group, it runs only the first case."""

MOST_PATHS = 5
"""Eval files that a command names; for more files, it repeats the paths given to the run."""

_VALUES = {
    "tests_from": "--tests-from",
    "judge": "--judge",
    "env_file": "--env-file",
    "repeat": "--repeat",
    "until": "--until",
    "alpha": "--alpha",
    "threshold": "--threshold",
    "timeout_s": "--timeout",
    "sandbox": "--sandbox",
    "workspace_path": "--workspace-path",
    "replay": "--replay",
}
"""Settings of `run.json` that affect answers or grades → their options."""

_FLAGS = {"allow_outside": "--allow-outside", "trust_data": "--trust-data", "allow_unchecked": "--allow-unchecked"}


class Rerun(Struct, frozen=True):
    """A command that reruns failed cases.

    Attributes:
        words: arguments of the command, as for a process started without a shell.
        cases: number of cases that it runs.
    """

    words: list[str]
    cases: int = 1

    @property
    def command(self) -> str:
        """The command on one line, quoted for a shell (bash, zsh) and safe to print."""
        return " ".join(map(_quoted, self.words))


class RerunOptions(Struct, frozen=True):
    """The options of a run that a command for rerunning its cases needs.

    Attributes:
        here: absolute path of the directory in which the command will be run.
        root: absolute path of the repository root.
        options: arguments that affect answers and grades.
        given: targets of the command line or of AGENTV_TARGET.
        paths: paths of the command line.
        suites: absolute paths of the eval files.
        targets, prompts, variants: absolute path of an eval file → their names or ids, in the order of the file.
        listed: whether the run is in `.agentv/results`, where `--last-failed` looks.
    """

    here: str
    root: str
    options: tuple[str, ...]
    given: tuple[str, ...]
    paths: tuple[str, ...]
    suites: tuple[str, ...]
    targets: dict[str, tuple[str, ...]]
    prompts: dict[str, tuple[str, ...]]
    variants: dict[str, tuple[str, ...]]
    listed: bool = True

    @classmethod
    def of(cls, record: JsonObject, *, here: str, root: str, directory: str = "") -> RerunOptions:
        """Create the options from the record of a run.

        Args:
            record: the object of `run.json`.
            here: absolute path of the directory in which the command will be run.
            root: absolute path of the repository root.
            directory: absolute path of the run's directory; empty if it is in `.agentv/results`.
        """
        settings = record.get("settings")
        chosen: dict[str, Any] = settings if isinstance(settings, dict) else {}
        suites = objects_in(record.get("suites"))
        places = {os.path.join(root, path): one for one in suites if isinstance(path := one.get("path"), str) and path}  # noqa: PTH118  # all paths are strings
        return cls(
            here,
            root,
            tuple(_options(chosen)),
            _texts(chosen.get("targets")),
            _texts(chosen.get("paths")),
            tuple(places),
            {path: _names(one.get("targets")) for path, one in places.items()},
            {path: _names(one.get("prompts"), "id") for path, one in places.items()},
            {path: _names(one.get("variants")) for path, one in places.items()},
            listed=not directory or os.path.dirname(directory).endswith("/.agentv/results"),  # noqa: PTH120
        )

    def rerun(self, group: FailureGroup) -> Rerun | None:
        """The command for a group, or None if its suite has no file.

        It runs all cases of the group if they are few and of one suite, otherwise the first one.
        """
        members: Sequence[FailedTrial] = group.members
        first = members[0]
        ids = list(dict.fromkeys(member.test_id for member in members))
        whole = len(members) == group.trials and len(ids) <= MOST_CASES
        if not whole or len({member.suite_path for member in members}) > 1:
            ids = [first.test_id]
            members = [one for one in members if (one.suite_path, one.test_id) == (first.suite_path, ids[0])]
        return self._rerun_cases(members, ids)

    def rerun_trial(self, trial: FailedTrial) -> Rerun | None:
        """The command that reruns a trial's case with its target, prompt and variant; None if its suite has no file."""
        return self._rerun_cases([trial], [trial.test_id])

    def _rerun_cases(self, members: Sequence[FailedTrial], ids: Sequence[str]) -> Rerun | None:
        if not (path := members[0].suite_path):
            return None
        filters = [word for identity in ids for word in ("--filter", _pattern(identity))]
        selected = [*filters, *self._targets(members), *self._axes(members)]
        return Rerun(["agentv", "eval", _path(shown_from(path, self.here)), *selected, *self.options], len(ids))

    def rerun_all(self) -> Rerun | None:
        """The command that reruns all cases that did not pass; None without files or outside `.agentv/results`."""
        if not self.suites or not self.listed:
            return None
        paths = [_path(shown_from(path, self.here)) for path in self.suites]
        if len(paths) > MOST_PATHS and self.paths:
            paths = [_path(path) for path in self.paths]
        given = [word for name in self.given for word in ("--target", name)]
        return Rerun(["agentv", "eval", *paths, "--last-failed", *given, *self.options])

    def _targets(self, members: Sequence[FailedTrial]) -> list[str]:
        """Options for the targets of the trials, if the eval file has further targets or the user gave them."""
        names = list(dict.fromkeys(member.target for member in members))
        if self.given:
            named = [name for name in names if name in self.given] if len(self.given) > 1 else []
            return [word for name in named or self.given for word in ("--target", name)]
        there = self.targets.get(members[0].suite_path, ())
        if len(there) < 2 or set(names) >= set(there) or not set(names) <= set(there):
            return []
        return [word for name in names for word in ("--target", name)]

    def _axes(self, members: Sequence[FailedTrial]) -> list[str]:
        """Options for the prompts and variants of the trials, if the eval file has more of them."""
        path = members[0].suite_path
        axes = {
            "--prompt": ([member.prompt_id for member in members], self.prompts.get(path, ())),
            "--variant": ([member.variant for member in members], self.variants.get(path, ())),
        }
        words: list[str] = []
        for flag, (found, there) in axes.items():
            names = list(dict.fromkeys(name for name in found if name is not None))
            if not set(names) >= set(there):
                words += [word for name in names for word in (flag, name)]
        return words


def group_facts(group: FailureGroup, rerun: Rerun | None) -> dict[str, Json]:
    """A group as a JSON object, with the command that reruns its cases."""
    return {
        "status": group.status,
        "code": group.code,
        "cause": group.cause,
        "cases": group.cases,
        "trials": group.trials,
        "suites": list(group.suites),
        "targets": list(group.targets),
        "rerun": None if rerun is None else {"command": rerun.command, "cases": rerun.cases},
    }


def _options(settings: dict[str, Any]) -> Iterable[str]:
    variables = settings.get("variables")
    for name, value in variables.items() if isinstance(variables, dict) else ():
        yield from ("--var", f"{name}={value}")
    for name, flag in _VALUES.items():
        value = settings.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield from (flag, f"{value:g}" if isinstance(value, float) else str(value))
    yield from (flag for name, flag in _FLAGS.items() if settings.get(name) is True)
    if isinstance(regraded := settings.get("regrade"), str):
        yield f"--regrade={regraded}"


def _texts(found: Json) -> tuple[str, ...]:
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _names(found: Json, key: str = "name") -> tuple[str, ...]:
    return tuple(name for one in objects_in(found) if isinstance(name := one.get(key), str))


def _path(path: str) -> str:
    """A path that cannot be parsed as an option."""
    return f"./{path}" if path.startswith("-") else path


def _pattern(identity: str) -> str:
    """A pattern that selects one case: the id, escaped if it has wildcards that would select other cases."""
    return escape(identity) if re.search(r"[*?]|\[.+\]", identity, re.DOTALL) else identity


def _quoted(word: str) -> str:
    r"""The word quoted for a shell (bash, zsh), with unsafe characters escaped: `$'a\x1bb'`."""
    if safe(word) == word and "\n" not in word and "\t" not in word:
        return shlex.quote(word)
    letters = (_escaped(letter) for letter in word)
    return f"$'{''.join(letters)}'"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    if letter not in "\n\t" and safe(letter) == letter:
        return letter
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
