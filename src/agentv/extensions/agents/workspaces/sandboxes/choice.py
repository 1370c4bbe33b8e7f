"""Choice of the sandbox of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from agentv.app.wiring import WorkspaceSettings
from agentv.extensions.agents.workspaces.capabilities import WITHOUT_BWRAP, Capabilities, capabilities
from agentv.extensions.agents.workspaces.files.measuring import MEGABYTE
from agentv.extensions.agents.workspaces.sandboxes.bubblewrap import Bubblewrap
from agentv.extensions.agents.workspaces.sandboxes.docker import Docker
from agentv.extensions.agents.workspaces.sandboxes.places import Places
from agentv.extensions.agents.workspaces.sandboxes.process_group import ProcessGroup
from agentv.model.suite.workspace import DockerImage, Network, SandboxName, WorkspaceSpec
from agentv.model.values.response import Failure

ConfinedPrograms = ProcessGroup | Bubblewrap | Docker


@dataclass(frozen=True, slots=True)
class SandboxMaker:
    """Makes the sandboxes of one case.

    Attributes:
        name: of the sandbox that was chosen.
        spec: of the case.
        settings: of the run.
        found: what works here.
        run: the directory of the run.
        image: of docker, where that is what the case runs in.
    """

    name: SandboxName
    spec: WorkspaceSpec
    settings: WorkspaceSettings
    found: Capabilities
    run: str
    image: str = ""

    def make(self, places: Places, env: Mapping[str, str], *, setup: bool = False) -> ConfinedPrograms:
        """A sandbox.

        Args:
            places: where the program may write.
            env: what is set for every program.
            setup: it is for commands that prepare the workspace, which have the host's network.
        """
        spec, name = self.spec, self.name
        inner = ProcessGroup(places, env, spec.max_mb * MEGABYTE)
        network = "host" if setup else spec.network
        if name == "docker" and self.found.docker:
            recipe = spec.docker or DockerImage()
            root = next((path for path, below in spec.mounts.items() if not below), "")
            recipe = structs.replace(recipe, workdir=recipe.workdir or root)
            return Docker(self.found.docker, self.image, recipe, inner, network, self.run, spec.mounts)
        if name == "bwrap" and self.found.bwrap:
            program, user_namespaces = self.found.bwrap, self.found.user_namespaces
            return Bubblewrap(program, user_namespaces, inner, network, self._private(), mounts=spec.mounts)
        return inner

    def _private(self) -> tuple[str, ...]:
        hidden = (one.source for one in self.spec.hidden)
        template = self.spec.template.source if self.spec.template else ""
        places = (*self.settings.private, *hidden, self.settings.kept_directory, template, self.run)
        return tuple(filter(None, places))


def chosen_sandbox(wanted: Sequence[SandboxName], network: Network, found: Capabilities) -> SandboxName | Failure:
    """The first sandbox that works here and gives the network that is asked for; why none does."""
    problems = []
    for name in wanted:
        problem = _problem(name, network, found)
        if not problem:
            return name
        problems.append(problem.rstrip("."))
    why = f"nothing was run: {'; '.join(problems)}"
    if tuple(wanted) == ("docker",) and not found.docker:
        return Failure("no-docker", why)
    return Failure("sandbox-unavailable", why)


def _problem(name: SandboxName, network: Network, found: Capabilities) -> str:
    """Why a sandbox cannot be used here; empty: it can."""
    if name == "docker":
        if not found.docker:
            return f"docker is not available. {found.docker_problem}"
        return "`network: loopback` is not available in docker: it needs `sandbox: bwrap`" * (network == "loopback")
    if name == "bwrap":
        return "" if found.bwrap else f"bwrap is not available. {found.bwrap_problem}"
    return "" if network == "host" else f"`network: {network}` needs `sandbox: bwrap`"


class LocalSandboxes:
    """What can confine agents here. An `agentv.work_ports.Sandboxes`."""

    warning = WITHOUT_BWRAP

    def choose(self, wanted: Sequence[SandboxName], network: Network) -> SandboxName | Failure:
        """The sandbox that works here."""
        return chosen_sandbox(wanted, network, capabilities())

    def problem(self, name: SandboxName) -> str:
        """Why one is not available."""
        found = capabilities()
        return {"none": "", "bwrap": found.bwrap_problem}[name] if name != "docker" else found.docker_problem

    def lines(self) -> tuple[str, ...]:
        """What there is."""
        return capabilities().lines()
