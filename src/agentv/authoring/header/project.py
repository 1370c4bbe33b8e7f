"""A project's files together: its targets and its configuration, which may contradict each other."""

from __future__ import annotations

from pathlib import Path

from agentv.authoring.fields.reading import Reading
from agentv.authoring.header.config import Config, read_config
from agentv.authoring.source.nodes import Scalar
from agentv.authoring.source.spellings import TARGET
from agentv.authoring.targets.catalog import one_default, open_registry
from agentv.authoring.targets.registry import DEFAULT, TargetRegistry
from agentv.authoring.targets.suite_targets import default_of
from agentv.registry.table import Registry
from agentv.registry.types import Provider


def open_project(directory: str, providers: Registry[Provider], reading: Reading) -> tuple[TargetRegistry, Config]:
    """The targets that a directory can name, with the project's defaults, and its configuration."""
    config = read_config(directory, reading)
    registry = open_registry(directory, providers, reading, more=config.providers)
    together = registry.path is not None and config.path is not None and _folder(registry.path) == _folder(config.path)
    target = default_of(config.target, config.nodes, "target")
    judge = default_of(config.judge, config.nodes, "judge")
    registry.default_target = _default("target", registry.default_target, target, reading, together=together)
    registry.default_judge = _default("judge", registry.default_judge, judge, reading, together=together)
    if registry.default_target is None:
        registry.default_target = _called_default(registry)
    return registry, config


def _called_default(registry: TargetRegistry) -> Scalar | None:
    """The name of the target that is called `default`: the project's default target where nothing names another."""
    entry = registry.entries.get(DEFAULT)
    names = (entry.get(key) for key in TARGET.spelled("name")) if entry is not None else ()
    return next((name for name in names if isinstance(name, Scalar)), None)


def _folder(path: str) -> Path:
    return Path(path).parent


def _default(
    role: str, of_targets: Scalar | None, of_config: Scalar | None, reading: Reading, *, together: bool
) -> Scalar | None:
    """The default of `targets.yaml`, else of the configuration; where both are of one project they must agree."""
    if not together:
        return of_targets or of_config
    return one_default(role, [of_config] if of_config is not None else [], of_targets, reading)
