"""What this machine can do to confine agents, found by trying it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

_PROBE_S = 10.0
_PROBE = ("--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true")

WITHOUT_BWRAP = (
    "Without bwrap, agents can read the user's files, hidden tests among them, and can write outside their workspaces; "
    "the network is the host's. Processes still end with their trial, unless an agent sets out to stop agentv itself. "
    "The environment is an allowlist."
)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can confine agents here. Each `…_problem` is empty, or says why not and how to get it.

    Attributes:
        bwrap: path of a `bwrap` that works.
        user_namespaces: whether it makes user namespaces, so that it needs no root.
    """

    bwrap: str | None
    bwrap_problem: str
    user_namespaces: bool

    @property
    def docker(self) -> str | None:
        """Path of a `docker` whose daemon answers. It is tried when this is first asked: a daemon may be far."""
        return _docker()[0]

    @property
    def docker_problem(self) -> str:
        """Why docker cannot be used."""
        return _docker()[1]

    def lines(self) -> tuple[str, ...]:
        """What a person reads."""
        bwrap = f"bwrap: works ({self.bwrap})" if self.bwrap else f"bwrap: not available. {self.bwrap_problem}"
        docker = f"docker: works ({self.docker})" if self.docker else f"docker: not available. {self.docker_problem}"
        return (bwrap, *(() if self.bwrap else (WITHOUT_BWRAP,)), docker)


@cache
def capabilities() -> Capabilities:
    """Try what there is, once in a process. It blocks for some milliseconds."""
    bwrap, namespaces, problem = _bwrap()
    return Capabilities(bwrap, problem, namespaces)


def _bwrap() -> tuple[str | None, bool, str]:
    if sys.platform != "linux":
        return None, False, "It exists for Linux only. Use `sandbox: docker`, or run agentv in a virtual machine."
    program = shutil.which("bwrap")
    if program is None:
        return None, False, "Install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`."
    said = _failed(program, "--unshare-user", *_PROBE)
    if not said:
        return program, True, ""
    if os.geteuid() == 0 and not _failed(program, *_PROBE):
        return program, False, ""
    return None, False, f"{program} does not work here ({said}). {_remedy(said)}"


def _remedy(said: str) -> str:
    """How to get namespaces, by what bubblewrap says of them."""
    if "proc" in said:
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
    said = _failed(program, "version", "--format", "{{.Server.Version}}")
    return (None, f"{said}. Start the Docker daemon, or set DOCKER_HOST.") if said else (program, "")


def _failed(*argv: str) -> str:
    """The last line of what a program says that failed; empty where it did not."""
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=_PROBE_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return (lines[-1] if lines else f"exit {ended.returncode}").rstrip(".?") if ended.returncode else ""
