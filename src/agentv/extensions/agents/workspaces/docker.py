"""Sandbox `docker`: each program runs in a container, started by the docker client.

The workspace and HOME of the trial are mounted at their own paths, its temporary directory at `/tmp`. Nothing else of
the host is mounted unless the suite asks for it. A container outlives a killed client, so that containers are found by
a label and removed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from agentv.extensions.agents.workspaces.launcher import DOCKER_CLIENT_VARIABLES, container_command_line
from agentv.extensions.agents.workspaces.process_group import ProcessGroup, allowed, end_processes
from agentv.model.suite.workspace import DockerImage, SandboxName
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.orphans import MARK as STARTED_BY
from agentv.user_code.processes import run_program

TEMPORARY = "/tmp"  # noqa: S108  # in the container, which has its own
BUILD_S = 3600.0
_LABEL = "agentv.workspace"
_RUN_LABEL = "agentv.run"
_USED = "docker-was-used"
_REMOVE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker(ProcessGroup):
    """The docker sandbox of one trial.

    Attributes:
        program: path of `docker`.
        image: name or id of the image.
        recipe: the suite's `docker` settings.
        run: directory of the run, which labels its containers so that those of a killed run can be found.
        mounts: absolute path in the container → directory of the workspace mounted there. For graders only: a running
            agent could replace the directory with a link.
    """

    name: ClassVar[SandboxName] = "docker"

    program: str
    image: str
    recipe: DockerImage
    run: str
    mounts: Mapping[str, str] = field(default_factory=dict)

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """Return the command line that runs a program in a container, in the workspace or in `cwd`."""
        (Path(self.run) / _USED).touch()
        options = (*self._options(), "--workdir", self._path_in_container(cwd or self.places.workspace))
        return container_command_line(self.program, options, self.image, argv, hidden_variable=STARTED_BY)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """Return the environment of the docker client, which passes all but PATH and its own variables on."""
        return {**ProcessGroup.environment(self, env, (*named, *DOCKER_CLIENT_VARIABLES)), "TMPDIR": TEMPORARY}

    def end(self, grace_s: float) -> bool:
        """End all processes and containers of the trial; return whether none is left. Blocks."""
        ended = end_processes(self.places.trial, grace_s)
        return remove_containers(self.program, f"{_LABEL}={self.places.trial}") and ended

    def _options(self) -> Iterator[str]:
        places = self.places
        yield from ("--rm", "--interactive", "--init", "--label", f"{_LABEL}={places.trial}")
        yield from ("--label", f"{_RUN_LABEL}={self.run}", "--network", self.network)
        yield from ("--user", f"{os.getuid()}:{os.getgid()}", "--cap-drop", "ALL")
        yield from ("--security-opt", "no-new-privileges")
        mounts = {places.workspace: places.workspace, places.home: places.home, TEMPORARY: places.temporary}
        if self.recipe.workdir:
            mounts[self.recipe.workdir] = places.workspace
        if self.grading:
            real = os.path.realpath(places.workspace)
            below = {path: f"{real}/{one}" for path, one in self.mounts.items() if one}
            mounts |= {path: one for path, one in below.items() if _ensure_directory(one)}
        for inside, outside in mounts.items():
            yield from ("--mount", f"type=bind,source={outside},target={inside}")
        for one in self.recipe.mounts:
            yield from ("--volume", one)

    def _path_in_container(self, path: str) -> str:
        """Return the path in the container of a directory of the workspace."""
        workdir, workspace = self.recipe.workdir, self.places.workspace
        if not workdir or (path != workspace and not path.startswith(workspace + os.sep)):
            return path
        return workdir.rstrip("/") + path.removeprefix(workspace)


def _ensure_directory(directory: str) -> bool:
    """Create a directory if its path contains no links; return whether it exists."""
    if os.path.realpath(directory) != directory:
        return False
    with suppress(OSError):
        Path(directory).mkdir(parents=True, exist_ok=True)
    return Path(directory).is_dir()


async def copy_workdir(sandbox: Docker) -> Failure | None:
    """Copy the image's files in the working directory into an empty workspace, since the mount hides them."""
    target, words = "/agentv-workspace", 'if [ -d "$0" ]; then cp -R "$0/." "$1"; fi'
    options = ("--rm", "--user", f"{os.getuid()}:{os.getgid()}", "--workdir", "/")
    mount = ("--mount", f"type=bind,source={sandbox.places.workspace},target={target}")
    arguments = ("sh", "-c", words, sandbox.recipe.workdir, target)
    copied = await _run_docker(sandbox.program, "run", *options, *mount, sandbox.image, *arguments)
    if isinstance(copied, Failure):
        return Failure("workspace-failed", f"the files of the docker image cannot be copied: {copied.message}")
    return None


async def build_image(program: str, recipe: DockerImage) -> str | Failure:
    """Return the name or id of the suite's image, after building it if the suite has a build context."""
    if not recipe.context:
        return recipe.image or Failure("sandbox-unavailable", "`sandbox: docker` needs an image, or a context to build")
    tag = ("--tag", recipe.image) if recipe.image else ()
    # docker resolves the path against the working directory, a suite against the build context
    dockerfile = ("--file", str(Path(recipe.context) / recipe.dockerfile)) if recipe.dockerfile else ()
    built = await _run_docker(program, "build", "--quiet", *tag, *dockerfile, recipe.context)
    if isinstance(built, Failure):
        return Failure("sandbox-unavailable", f"the docker image cannot be built: {built.message}")
    return recipe.image or built.rpartition("\n")[2]


async def _run_docker(*argv: str) -> str | Failure:
    """Run the docker client with the user's configuration; return its output or a Failure."""
    env = allowed(os.environ, ("HOME", *DOCKER_CLIENT_VARIABLES))
    ended = await run_program(Command(argv=argv), stdin=b"", env=env, timeout_s=BUILD_S)
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        return Failure("cannot-start", tail(ended.stderr))
    return ended.stdout.decode(errors="replace").strip()


def remove_containers(program: str, label: str) -> bool:
    """Remove all containers with a label, including running ones; return whether none is left. Blocks."""
    found = _docker(program, "ps", "--all", "--quiet", "--filter", f"label={label}")
    if found is None:
        return False
    return not found or _docker(program, "rm", "--force", "--volumes", *found) is not None


def remove_containers_of_run(program: str, directory: str) -> None:
    """Remove the containers that a dead run left. Blocks."""
    if (Path(directory) / _USED).exists():
        remove_containers(program, f"{_RUN_LABEL}={directory}")


def _docker(*argv: str) -> list[str] | None:
    """Run docker; return the words of its output, or None if it fails."""
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=_REMOVE_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.decode(errors="replace").split() if ended.returncode == 0 else None
