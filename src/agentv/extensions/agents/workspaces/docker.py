"""Sandbox `docker`: a container for each program, through the command line of docker.

The workspace, HOME and the temporary directory of the trial are mounted at their own paths, and nothing else of the
host is. A container outlives its client where that is killed, so that containers are found by a label and removed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from agentv.extensions.agents.workspaces.launcher import OF_DOCKER_CLIENT, container_command_line
from agentv.extensions.agents.workspaces.process_group import ProcessGroup, allowed, end_processes
from agentv.model.suite.workspace import DockerImage, SandboxName
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.excerpts import tail
from agentv.user_code.orphans import MARK as STARTED_BY
from agentv.user_code.processes import run_program

TEMPORARY = "/tmp"  # noqa: S108  # in the container: a directory of its own
BUILD_S = 3600.0
_LABEL = "agentv.workspace"
_RUN_LABEL = "agentv.run"
_USED = "docker-was-used"
_REMOVE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker(ProcessGroup):
    """Programs of one trial, in containers.

    Attributes:
        program: path of `docker`.
        image: name or id of the image.
        recipe: what the suite says of containers.
        run: the directory of the run, by which containers are found that a killed run left.
        mounts: further path of a directory of the workspace → that directory. Only graders have them: while an agent
            runs, it could make the directory a link.
    """

    name: ClassVar[SandboxName] = "docker"

    program: str
    image: str
    recipe: DockerImage
    run: str
    mounts: Mapping[str, str] = field(default_factory=dict)

    def argv(self, argv: Sequence[str], cwd: str = "") -> tuple[str, ...]:
        """The command line that runs a program in a container, in the workspace or in `cwd`."""
        (Path(self.run) / _USED).touch()
        options = (*self._options(), "--workdir", self._inside(cwd or self.places.workspace))
        return container_command_line(self.program, options, self.image, argv, hidden_variable=STARTED_BY)

    def environment(self, env: Mapping[str, str], named: Iterable[str] = ()) -> dict[str, str]:
        """The environment of the client. Its variables are in the container, but for PATH, which is the image's."""
        return {**ProcessGroup.environment(self, env, (*named, *OF_DOCKER_CLIENT)), "TMPDIR": TEMPORARY}

    def end(self, grace_s: float) -> bool:
        """End all processes and containers of the trial; whether nothing is left. It blocks."""
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
            mounts |= {path: one for path, one in below.items() if _made(one)}
        for inside, outside in mounts.items():
            yield from ("--mount", f"type=bind,source={outside},target={inside}")
        for one in self.recipe.mounts:
            yield from ("--volume", one)

    def _inside(self, path: str) -> str:
        """A directory of the workspace as the container has it."""
        workdir, workspace = self.recipe.workdir, self.places.workspace
        if not workdir or (path != workspace and not path.startswith(workspace + os.sep)):
            return path
        return workdir.rstrip("/") + path.removeprefix(workspace)


def _made(directory: str) -> bool:
    """Whether a directory is there or can be made, without links on the way."""
    if os.path.realpath(directory) != directory:
        return False
    with suppress(OSError):
        Path(directory).mkdir(parents=True, exist_ok=True)
    return Path(directory).is_dir()


async def copy_workdir(sandbox: Docker) -> Failure | None:
    """Copy what the image has in the working directory into an empty workspace, which hides it; why it failed."""
    target, words = "/agentv-workspace", 'if [ -d "$0" ]; then cp -R "$0/." "$1"; fi'
    options = ("--rm", "--user", f"{os.getuid()}:{os.getgid()}", "--workdir", "/")
    mount = ("--mount", f"type=bind,source={sandbox.places.workspace},target={target}")
    arguments = ("sh", "-c", words, sandbox.recipe.workdir, target)
    copied = await _by_client(sandbox.program, "run", *options, *mount, sandbox.image, *arguments)
    if isinstance(copied, Failure):
        return Failure("workspace-failed", f"the files of the docker image cannot be copied: {copied.message}")
    return None


async def build_image(program: str, recipe: DockerImage) -> str | Failure:
    """The image that a suite asks for, built if it says how, or a Failure."""
    if not recipe.context:
        return recipe.image or Failure("sandbox-unavailable", "`sandbox: docker` needs an image, or a context to build")
    tag = ("--tag", recipe.image) if recipe.image else ()
    # docker counts a relative path from the working directory, a recipe from its context
    dockerfile = ("--file", str(Path(recipe.context) / recipe.dockerfile)) if recipe.dockerfile else ()
    built = await _by_client(program, "build", "--quiet", *tag, *dockerfile, recipe.context)
    if isinstance(built, Failure):
        return Failure("sandbox-unavailable", f"the docker image cannot be built: {built.message}")
    return recipe.image or built.rpartition("\n")[2]


async def _by_client(*argv: str) -> str | Failure:
    """What the docker client prints, with the user's configuration; why it failed."""
    env = allowed(os.environ, ("HOME", *OF_DOCKER_CLIENT))
    ended = await run_program(Command(argv=argv), stdin=b"", env=env, timeout_s=BUILD_S)
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        return Failure("cannot-start", tail(ended.stderr))
    return ended.stdout.decode(errors="replace").strip()


def remove_containers(program: str, label: str) -> bool:
    """Remove all containers with a label, running ones too; whether none is left. It blocks."""
    found = _docker(program, "ps", "--all", "--quiet", "--filter", f"label={label}")
    if found is None:
        return False
    return not found or _docker(program, "rm", "--force", "--volumes", *found) is not None


def remove_containers_of_run(program: str, directory: str) -> None:
    """Remove the containers that a dead run left, if it started any. It blocks."""
    if (Path(directory) / _USED).exists():
        remove_containers(program, f"{_RUN_LABEL}={directory}")


def _docker(*argv: str) -> list[str] | None:
    """The words that docker prints; None where it fails."""
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=_REMOVE_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.decode(errors="replace").split() if ended.returncode == 0 else None
