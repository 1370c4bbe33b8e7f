"""`agentv validate`: every mistake in every file, without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentv.app.wiring import registries
from agentv.errors import Diagnostic
from agentv.spec.check import check_file
from agentv.spec.files import repository_root
from agentv.spec.load import LoadRequest, eval_files


@dataclass(frozen=True, slots=True)
class Checked:
    """One file that was asked for, and what is wrong with it, sorted by place.

    What several files share, such as a template, is told with the first of them.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...]


class Validation:
    """The files that paths mean, each checked when it is its turn, so that the first mistake is told at once.

    Raises:
        UsageError: a path does not exist, or a directory holds no eval file.
    """

    def __init__(self, paths: tuple[str, ...], process_env: Mapping[str, str]) -> None:
        self.files = tuple(dict.fromkeys(eval_files(paths)))
        self._request = LoadRequest(paths, process_env=process_env, for_run=False)

    def __iter__(self) -> Iterator[Checked]:
        """The files in their order."""
        known = registries()
        told: set[tuple[object, ...]] = set()
        for path in self.files:
            fresh = []
            for one in check_file(path, self._request, known):
                key = (one.code, one.span, one.message)
                if key not in told:
                    told.add(key)
                    fresh.append(one)
            yield Checked(path, tuple(fresh))


def validate(paths: tuple[str, ...], process_env: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """All that is wrong, sorted by file and place.

    Raises:
        UsageError: a path does not exist, or a directory holds no eval file.
    """
    found = (one for checked in Validation(paths, process_env) for one in checked.diagnostics)
    return tuple(sorted(found, key=lambda one: one.order))


def root_of(directory: str) -> str:
    """The root of the repository that a directory is in."""
    return repository_root(directory)
