"""A process that has imported agentv and forks for each command, so that a command starts in hundredths of a second.

A fork runs what the script `agentv` runs, in a process with its own environment, directory, streams, signals and modules.
It differs from a real start in one thing: agentv and the libraries that most commands use are imported already. What is
about imports, about files that hide modules, or about Python's own settings needs a real start.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
PROJECT = "target: echo\ntests:\n  - {id: a, input: hello, assert: [contains: hello]}\n"
"""A file of which everything is right."""

_READ_AT_START = re.compile(r"PYTHON(?!_BIN$)|LC_|LANG|LD_")
"""Names of variables that matter when a process starts, and not again; PYTHON_BIN is our own."""

_LARGEST = 1 << 20


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether Python would start in this environment as it did for the tests."""
    return _read_at_start(environment) == _read_at_start(os.environ)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _READ_AT_START.match(name)}


class ForkServer:
    """The process, as a test sees it. It ends with the process of the tests."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agentv-fork-")
        self._address = str(Path(self._folder.name) / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self._address)
            listening.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())],
                pass_fds=[listening.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()

    def run(
        self, words: Sequence[str], path: Path, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Exit status, standard output and error of a command.

        Raises:
            TimeoutExpired: it did not end in so many seconds, and was killed.
        """
        out, err = os.pipe(), os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(self._address)
            command = {"words": words, "path": str(path), "environment": dict(environment)}
            socket.send_fds(connection, [json.dumps(command).encode()], [out[1], err[1]])
            os.close(out[1])
            os.close(err[1])
            pid = int(connection.recv(64))
            try:
                printed = _read_all((out[0], err[0]), time.monotonic() + timeout)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired([AGENTV, *words], timeout) from None
            finally:
                os.close(out[0])
                os.close(err[0])
            return int(connection.recv(64)), *(text.decode() for text in printed)


def _read_all(descriptors: tuple[int, int], until: float) -> tuple[bytes, ...]:
    found: dict[int, list[bytes]] = {one: [] for one in descriptors}
    still = list(descriptors)
    while still:
        ready, _, _ = select.select(still, (), (), max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        for one in ready:
            piece = os.read(one, 1 << 16)
            found[one].append(piece)
            if not piece:
                still.remove(one)
    return tuple(b"".join(pieces) for pieces in found.values())


def serve(listening: socket.socket) -> None:
    """Fork for each command that is sent, until standard input is closed."""
    import_agentv()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes in between
    while True:
        ready, _, _ = select.select((0, listening), (), ())
        if 0 in ready:
            return
        connection, _ = listening.accept()
        with connection:
            sent, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, 2)
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                _start(json.loads(sent), descriptors, connection)
            for one in descriptors:
                os.close(one)


def import_agentv(imported: Callable[[], list[str]] | None = None) -> None:
    """Import what common commands import. More than that would cost more in each fork than it spares.

    Args:
        imported: gives the names of modules that other commands import; it is called in a fork.
    """
    reading, writing = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writing, "w") as names:
            json.dump((imported or _imported_by_commands)(), names)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as names:
        for name in json.load(names):
            with suppress(ImportError):  # parts of packages that only the package itself can import
                importlib.import_module(name)


def _imported_by_commands() -> list[str]:
    """The names of modules that a run, and a file with a mistake, import, in the order in which they are."""
    before = set(sys.modules)
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nothing:
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
        os.chdir(folder)
        Path("a.eval.yaml").write_text(PROJECT, encoding="utf-8")
        Path("b.eval.yaml").write_text(PROJECT.replace("input", "inputt"), encoding="utf-8")
        from agentv.cli.main import run

        for words in (["eval", "a.eval.yaml"], ["eval", "b.eval.yaml"], ["validate", "b.eval.yaml"]):
            run(words)
    return [name for name in sys.modules if name not in before]


def _start(command: dict, descriptors: list[int], connection: socket.socket) -> None:
    """Start the command in a process of its own, and tell its id and its exit status."""
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(command, descriptors)
    for one in descriptors:
        os.close(one)
    connection.send(str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(command: dict, descriptors: list[int]) -> None:
    """What the script does, and nothing of this process is left that it could see."""
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    for number, one in enumerate(descriptors, 1):
        os.dup2(one, number)
        os.close(one)
    os.chdir(command["path"])
    os.environ.clear()
    os.environ.update(command["environment"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.argv = [AGENTV, *command["words"]]
    sys.path[0] = str(Path(AGENTV).parent)
    sys.modules["__main__"].__file__ = AGENTV  # which processes that multiprocessing starts import
    from agentv.__main__ import main
    from agentv.user_code.processes import orphans

    orphans._RUN = os.urandom(8).hex()  # drawn at import: the programs of one command are not those of another
    main()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        serve(listening)
