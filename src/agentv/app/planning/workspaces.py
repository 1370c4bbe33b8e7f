"""Checks and notes about a run's workspaces: variants, sandboxes, and existing directories to work in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentv.app.registries import sandboxes
from agentv.app.settings import LOCAL, EvalSettings
from agentv.errors import UsageError
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.suite.workspace import SandboxName
from agentv.model.values.response import Failure

MAX_NAMED = 20
"""Maximum number of variants or targets in a message."""


def existing_directory(path: str | None) -> str | None:
    """Return the absolute directory of `--workspace-path`, or None if the flag is not given.

    Raises:
        UsageError: there is no such directory.
    """
    if path is None:
        return None
    if not Path(path).is_dir():
        raise UsageError(f"--workspace-path {path} is not a directory", "give an existing directory")
    return os.path.realpath(path)


def check_workspaces(settings: EvalSettings, suites: tuple[Suite, ...]) -> None:
    """Raise for options that workspaces do not support.

    Raises:
        UsageError: no suite has a selected variant; variants are used in an existing directory; or trials with
            workspaces, or cassettes of agents' model calls, would be on other machines.
    """
    known = list(dict.fromkeys(variant.name for suite in suites for variant in suite.variants))
    for name in settings.variants:
        if name not in known:
            from agentv.authoring.source.nearest import did_you_mean

            hint = did_you_mean(name, known)
            if hint is None and known:
                hint = f"the variants are {', '.join(known[:MAX_NAMED])}"
            elif hint is None:
                of_skill = any(suite.exam is not None and suite.path.endswith(".json") for suite in suites)
                where_agents = "the evals of a skill have variants where all targets are agents"
                hint = where_agents if of_skill else "no suite has variants"
            raise UsageError(f"--variant {name}: no suite has this variant", hint)
    if settings.executor != LOCAL and any(suite.workspaces for suite in suites):
        what = f"workspaces are made on this machine, and --executor {settings.executor} runs trials on others"
        raise UsageError(what, "omit --executor, or run the suites without workspaces")
    cassette = settings.record or settings.replay
    if settings.executor != LOCAL and cassette and any(spec.upstream for suite in suites for spec in suite.targets):
        what = f"cassettes keep the model calls of agents on this machine, and --executor {settings.executor} does not"
        raise UsageError(what, "omit --executor")
    if any(suite.workspaces.existing and suite.variants for suite in suites):
        what = "variants need a new workspace for each trial, and an existing directory is used as it is"
        raise UsageError(what, "omit --workspace-path, or remove 'variants'")


def works_in_existing(suites: tuple[Suite, ...]) -> bool:
    """Whether agents work in an existing directory of the user, which only one trial at a time can use."""
    return any(suite.workspaces.existing for suite in suites)


def notes_on_workspaces(settings: EvalSettings, suites: tuple[Suite, ...]) -> Iterator[str]:
    """Yield notes about the workspaces and sandboxes of a run's agents."""
    used = [suite.workspaces for suite in suites if suite.workspaces]
    if not used:
        return
    for path in sorted({path for one in used for path in one.existing}):
        yield f"agents work in {path} itself, one at a time: what they change there stays changed"
    if settings.regrade is not None:
        yield "the run kept no workspaces: 'command' and 'file-*' are errored"
        return
    if settings.replay is not None and settings.replay_mode == "strict":
        recorded = [spec.upstream is None for one in suites if one.workspaces for spec in one.targets]
        if any(recorded):
            yield "answers are recorded, and their workspaces are not: what needs a workspace is errored"
        if all(recorded):
            return
    named = {spec.name for suite in suites if suite.workspaces for spec in suite.targets if not _is_confined(spec)}
    if named:
        listed = ", ".join(f"'{name}'" for name in sorted(named)[:MAX_NAMED])
        yield f"{listed} works outside of any sandbox: only programs that agentv starts are confined"
    yield from _notes_on_sandboxes(settings, suites)


def _notes_on_sandboxes(settings: EvalSettings, suites: tuple[Suite, ...]) -> Iterator[str]:
    available, chosen = sandboxes(), _chosen_sandboxes(suites)
    if any(name == wanted[0] == "none" for wanted, name in chosen.items()):
        origin = "flag" if settings.sandbox else "suite"
        yield f"agents run without a sandbox, as the {origin} says. {available.warning}"
    for missing in sorted({wanted[0] for wanted, name in chosen.items() if name == "none" != wanted[0]}):
        why = f"{missing} is not available. {available.problem(missing)} {available.warning}"
        yield f"agents run WITHOUT A SANDBOX, since {why}"
    if any(_is_confined(spec) for suite in suites if suite.workspaces for spec in suite.targets):
        yield from (f"agents run in the sandbox {name}" for name in sorted({*chosen.values()} - {"none"}))


def sandboxes_of(suites: tuple[Suite, ...]) -> list[SandboxName]:
    """Return the sandboxes that the agents of a run use on this machine."""
    return sorted(set(_chosen_sandboxes(suites).values()))


def _chosen_sandboxes(suites: tuple[Suite, ...]) -> dict[tuple[SandboxName, ...], SandboxName]:
    """Return the sandboxes that cases request → the one used on this machine."""
    asked = {one for suite in suites for one in suite.workspaces.sandboxes}
    found = {wanted: sandboxes().choose(wanted, network) for wanted, network in asked}
    return {wanted: name for wanted, name in found.items() if not isinstance(name, Failure)}


def _is_confined(spec: TargetSpec) -> bool:
    return bool(getattr(spec.settings, "confined", False))
