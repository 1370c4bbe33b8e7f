"""Choice of the sandbox of a trial."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.lazy_dataclass import dataclass
from agentv.model.suite.workspace import DockerImage, SandboxName, WorkspaceSpec
from agentv.model.values.response import Failure
from agentv.workspaces.capabilities import Capabilities
from agentv.workspaces.files.measuring import MEGABYTE
from agentv.workspaces.sandboxes.bubblewrap import Bubblewrap
from agentv.workspaces.sandboxes.docker import Docker
from agentv.workspaces.sandboxes.places import Places
from agentv.workspaces.sandboxes.process_group import ProcessGroup
from agentv.workspaces.settings import WorkspaceSettings

_INSTEAD = "it needs `sandbox: bwrap`"
ConfinedPrograms = ProcessGroup | Bubblewrap | Docker


@dataclass(frozen=True, slots=True)
class SandboxMaker:
    """Makes the sandboxes of one case.

    Attributes:
        spec: of the case.
        settings: of the run.
        found: what works here.
        run: the directory of the run.
        image: of docker, where that is what the case runs in.
    """

    spec: WorkspaceSpec
    settings: WorkspaceSettings
    found: Capabilities
    run: str
    image: str = ""

    def make(self, places: Places, env: Mapping[str, str], *, setup: bool = False) -> ConfinedPrograms | Failure:
        """A sandbox; why there is none.

        Args:
            places: where the program may write.
            env: what is set for every program.
            setup: it is for commands that prepare the workspace, which have the host's network.
        """
        spec = self.spec
        name = sandbox_name(spec, self.settings, self.found)
        if isinstance(name, Failure):
            return name
        inner = ProcessGroup(places, env, spec.max_mb * MEGABYTE)
        network = "host" if setup else spec.network
        if name == "docker" and self.found.docker:
            return Docker(self.found.docker, self.image, spec.docker or DockerImage(), inner, network, self.run)
        if name == "bwrap" and self.found.bwrap:
            return Bubblewrap(self.found.bwrap, self.found.user_namespaces, inner, network, self._private())
        return inner

    def _private(self) -> tuple[str, ...]:
        hidden = (one.source for one in self.spec.hidden)
        template = self.spec.template.source if self.spec.template else ""
        places = (*self.settings.private, *hidden, self.settings.kept_directory, template, self.run)
        return tuple(filter(None, places))


def sandbox_name(spec: WorkspaceSpec, settings: WorkspaceSettings, found: Capabilities) -> SandboxName | Failure:
    """Which sandbox a case gets: `none` where the `bwrap` of a suite does not work; that of a flag is an error then."""
    wanted = settings.sandbox or spec.sandbox or found.default_sandbox
    if wanted == "docker":
        if not found.docker:
            return Failure("sandbox-unavailable", f"docker is not available: {found.docker_problem}")
        return wanted if spec.network != "loopback" else _no_network(spec, f"is not available in docker; {_INSTEAD}")
    if settings.sandbox == "bwrap" and not found.bwrap:
        return Failure("sandbox-unavailable", f"bwrap is not available: {found.bwrap_problem}")
    name: SandboxName = "bwrap" if wanted == "bwrap" and found.bwrap else "none"
    if spec.network != "host" and name == "none":
        return _no_network(spec, f"needs `sandbox: bwrap`. {found.bwrap_problem}".rstrip())
    return name


def _no_network(spec: WorkspaceSpec, why: str) -> Failure:
    return Failure("sandbox-unavailable", f"`network: {spec.network}` {why}")
