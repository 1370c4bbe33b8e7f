"""Choose the sandbox of a trial from those that this machine supports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.response import Failure

_PROBE_S = 10.0
_PROBE = ("--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true")

WITHOUT_BWRAP = (
    "Without bwrap, agents can read the user's files, hidden tests among them, and can write outside their workspaces; "
    "the network is the host's. Processes still end with their trial, unless an agent sets out to stop agentv itself. "
    "The environment is an allowlist."
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Sandboxes that work on this machine. Each `…_problem` is empty, or says why one does not and how to get it.

    Attributes:
        bwrap: path of a working `bwrap`, or None.
        user_namespaces: whether `bwrap` can create user namespaces, so that it does not need root.
    """

    bwrap: str | None
    bwrap_problem: str
    user_namespaces: bool

    @property
    def docker(self) -> str | None:
        """Path of `docker` if its daemon responds, or None. Probed on first access, since the daemon may be remote."""
        return _docker()[0]

    @property
    def docker_problem(self) -> str:
        """Why docker is not available; empty if it is."""
        return _docker()[1]


@cache
def capabilities() -> Capabilities:
    """Probe this machine for sandboxes, once per process. Blocks for some milliseconds."""
    if sys.platform != "linux":
        problem = "It exists for Linux only. Use `sandbox: docker`, or run agentv in a virtual machine."
        return Capabilities(None, problem, False)
    program = shutil.which("bwrap")
    if program is None:
        return Capabilities(None, "Install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`.", False)
    error = _error_of(program, "--unshare-user", *_PROBE)
    if not error:
        return Capabilities(program, "", True)
    if os.geteuid() == 0 and not _error_of(program, *_PROBE):
        return Capabilities(program, "", False)
    return Capabilities(None, f"{program} does not work here ({error}). {_remedy(error)}", False)


def _remedy(error: str) -> str:
    """Return how to enable namespaces, according to the error message of bubblewrap."""
    if "proc" in error:
        return "In a container, start it with `--security-opt systempaths=unconfined`, or privileged."
    return (
        "The kernel gives no user namespaces: on Ubuntu, `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; "
        "elsewhere `sysctl user.max_user_namespaces=10000` or `kernel.unprivileged_userns_clone=1`; in a container, "
        "start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`, or privileged."
    )


@cache
def _docker() -> tuple[str | None, str]:
    program = shutil.which("docker")
    if program is None:
        return None, "Install Docker, whose `docker` must be on PATH."
    error = _error_of(program, "version", "--format", "{{.Server.Version}}")
    return (None, f"{error}. Start the Docker daemon, or set DOCKER_HOST.") if error else (program, "")


def _error_of(*argv: str) -> str:
    """Run a program; return the last line of its error output if it fails, otherwise an empty string."""
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=_PROBE_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return (lines[-1] if lines else f"exit {ended.returncode}").rstrip(".?") if ended.returncode else ""


def chosen_sandbox(wanted: Sequence[SandboxName], network: Network, found: Capabilities) -> SandboxName | Failure:
    """Return the first sandbox that works here and supports the network, or a Failure that says why none does."""
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
    """Return why a sandbox cannot be used here, or an empty string if it can."""
    if name == "docker":
        if not found.docker:
            return f"docker is not available. {found.docker_problem}"
        return "`network: loopback` is not available in docker: it needs `sandbox: bwrap`" * (network == "loopback")
    if name == "bwrap":
        return "" if found.bwrap else f"bwrap is not available. {found.bwrap_problem}"
    return "" if network == "host" else f"`network: {network}` needs `sandbox: bwrap`"


class LocalSandboxes:
    """The sandboxes of this machine. Implements `agentv.work_ports.Sandboxes`."""

    warning = WITHOUT_BWRAP

    def choose(self, wanted: Sequence[SandboxName], network: Network) -> SandboxName | Failure:
        """Return the first sandbox that works here, or a Failure."""
        return chosen_sandbox(wanted, network, capabilities())

    def problem(self, name: SandboxName) -> str:
        """Return why a sandbox is not available, or an empty string if it is."""
        found = capabilities()
        return "" if name == "none" else found.bwrap_problem if name == "bwrap" else found.docker_problem

    def lines(self) -> tuple[str, ...]:
        """Return the state of each sandbox, one line each, for people."""
        found = capabilities()
        bwrap = f"bwrap: works ({found.bwrap})" if found.bwrap else f"bwrap: not available. {found.bwrap_problem}"
        docker = f"docker: works ({found.docker})" if found.docker else f"docker: not available. {found.docker_problem}"
        return (bwrap, *(() if found.bwrap else (WITHOUT_BWRAP,)), docker)
