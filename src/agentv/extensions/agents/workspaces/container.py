"""Program that starts `docker run` with the environment of an agent.

Every variable of its own environment goes into the container by name, so that no value appears in a command line; those
of the docker client do not, and HOME is the user's for the client alone, which keeps its configuration there.
"""

from __future__ import annotations

import os
import sys

OF_CLIENT = ("DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY")
"""Variables that docker's client reads."""

_NOT_INSIDE = {*OF_CLIENT, "PATH", "PWD", "SHLVL", "OLDPWD", "_"}


def command_line(program: str, options: tuple[str, ...], image: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that runs a program in a container.

    Args:
        program: path of `docker`.
        options: of `docker run`.
        image: what it runs in.
        argv: the program, and its arguments.
    """
    home = os.path.expanduser("~")  # noqa: PTH111  # pathlib takes as long as Python itself
    here = os.path.abspath(__file__)  # noqa: PTH100  # as above
    return (sys.executable, "-I", "-S", here, home, str(len(options)), program, *options, image, *argv)


def _main(home: str, count: str, program: str, *words: str) -> None:
    options, rest = words[: int(count)], words[int(count) :]
    names = sorted(name for name in os.environ if name not in _NOT_INSIDE | {"HOME"})
    inside = [word for name in names for word in ("--env", name)]
    env = {**os.environ, "HOME": home}
    os.execve(program, [program, "run", *options, *inside, "--env", f"HOME={os.environ['HOME']}", *rest], env)  # noqa: S606


if __name__ == "__main__":
    _main(*sys.argv[1:])
