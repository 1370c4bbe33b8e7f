"""All that names in authored files can mean, joined for the loader. Nothing here is of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentv.app.plugins.sources import source, warnings
from agentv.assertions.catalogue import registry as assertion_registry
from agentv.authoring.fields.agentv.names import type_name
from agentv.authoring.fields.request import Registries
from agentv.authoring.source.files import nearest_in_agentv
from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.response import Failure
from agentv.registry.extensions import ASSERTIONS, PORTS, PROVIDERS, loaded
from agentv.registry.types import Checkouts, CustomTypes, Discovered
from agentv.targets.catalogue import registry as target_registry
from agentv.work_ports import Sandboxes

if TYPE_CHECKING:
    from agentv.model.suite.repository import Checkout, RepositoryFile, Unavailable
    from agentv.user_code.repositories.repositories import Repositories


def registries() -> Registries:
    """All that names in authored files can mean."""
    known = assertion_registry(source(ASSERTIONS)), target_registry(source(PROVIDERS))
    return Registries(*known, _custom_types(), _checkouts(), tuple(warnings()), _sandbox)


def _sandbox(wanted: Sequence[SandboxName], network: Network) -> SandboxName | Failure:
    """The sandbox that works here."""
    sandboxes: Sandboxes = loaded(PORTS, "Sandboxes")()  # only a project with workspaces pays for this
    return sandboxes.choose(wanted, network)


def _custom_types() -> CustomTypes:
    found: dict[tuple[str, str], Discovered] = {}

    def discover(directory: str, root: str) -> Discovered:
        if (directory, root) not in found:
            found[directory, root] = _discovered(directory, root)
        return found[directory, root]

    return discover


def _discovered(directory: str, root: str) -> Discovered:
    folder, tried = nearest_in_agentv(directory, root, "assertions")
    if folder is None:
        return Discovered({}, tuple(tried))
    from agentv.assertions.user_code.custom import discover  # only a project with assertions of its own pays for this

    return discover(directory, root, type_name)


def _checkouts() -> Checkouts:
    repositories: list[Repositories] = []

    def checkout(wanted: RepositoryFile, env: Mapping[str, str]) -> Checkout | Unavailable:
        if not repositories:
            from agentv.user_code.repositories.repositories import (
                Repositories,  # only a project that names such files pays for this
            )

            repositories.append(Repositories())
        return repositories[0].checkout(wanted, env)

    return checkout
