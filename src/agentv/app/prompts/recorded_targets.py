"""The targets of a project's files as evidence records them, without loading an exam."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from agentv.authoring.source.files import exists
from agentv.model.suite.exam import TARGET
from agentv.prompts.evidence import digests

if TYPE_CHECKING:
    from agentv.authoring.targets.registry import TargetRegistry
    from agentv.registry.table import Registry
    from agentv.registry.types import Provider


class RecordedTargets:
    """Reads the targets that evidence names; those of one directory above prompts are read once.

    Args:
        env: the environment of the process.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._registries: dict[str, TargetRegistry] = {}

    def digests(self, directory: str, recorded: Iterable[str]) -> dict[str, str]:
        """The digests of today of the targets among what a row records.

        What the files do not name, or what needs a variable that is not set here, is left out.

        Args:
            directory: the prompt's.
            recorded: the names in `files` of the row.
        """
        wanted = [path for path in recorded if path.startswith(TARGET)]
        return digests(self._records(directory, wanted)) if wanted else {}

    def _records(self, directory: str, wanted: Iterable[str]) -> dict[str, bytes]:
        from agentv.authoring.loading.exams import target_record
        from agentv.authoring.source.report import Report

        registry, found = self._registry(directory), {}
        for path in wanted:
            name, report = path.removeprefix(TARGET), Report()
            spec = registry.read_alone(name, report) if name in registry.entries else None
            if spec is not None and all(one.code != "unset-environment" for one in report.diagnostics):
                found[path] = target_record(spec, directory)
        return found

    def _registry(self, directory: str) -> TargetRegistry:
        from agentv.authoring.prompt_library.library import library_reading
        from agentv.authoring.source.environment import dotenv_of, merged
        from agentv.authoring.targets.catalog import open_registry

        own = any(exists(os.path.join(directory, name)) for name in (".agentv", ".env"))  # noqa: PTH118  # for thousands of prompts
        home = directory if own else os.path.dirname(directory)  # noqa: PTH120  # as above
        if home not in self._registries:
            reading = library_reading(home, self._env)
            dotenv = dotenv_of(home, reading.places.root, reading.reader, reading.report)
            reading = library_reading(home, merged(self._env, {}, dotenv))
            self._registries[home] = open_registry(home, self._providers, reading)
        return self._registries[home]

    @cached_property
    def _providers(self) -> Registry[Provider]:
        from agentv.app.registries import registries  # only a library with evidence of targets pays for this

        return registries().providers
