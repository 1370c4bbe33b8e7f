"""A process that has imported agentv and forks for each command, so that a command starts in hundredths of a second.

A fork runs what the script `agentv` runs, in a process with its own environment, directory, streams, signals and modules.
It differs from a real start in two things: agentv and the libraries that most commands use are imported already, and
after its threads and exit handlers it ends without finalizing its modules. Tests of imports, of files that shadow
modules, or of Python's own settings need a real start.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import re
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

from agentv.authoring.fields import decode

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
PROJECT = "target: echo\ntests:\n  - {id: a, input: hello, assert: [contains: hello]}\n"
"""A valid eval file."""

_READ_AT_START = re.compile(r"PYTHON(?!_BIN$)|LC_|LANG|LD_")
"""Names of variables that are read only when a process starts; PYTHON_BIN is agentv's own."""

_LARGEST = 1 << 20

OFTEN = ("agentv.__main__", "agentv.user_code.command_process", "jinja2", "numpy")
"""Modules that every command imports, and those that one in eight renders or computes with."""

LIBRARIES = (
    "acp",
    "agentv.targets.anthropic.target",
    "agentv.targets.gemini.target",
    "agentv.targets.openai_api.providers",
    "aiohttp",
    "anthropic.resources.messages",
    "genai_prices",
    "google.genai",
    "httpcore2",
    "mcp",
    "scipy.special",
)
"""SDKs of models and agents, and statistics libraries; not LiteLLM, which reads variables when imported."""


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether Python would start in this environment as it did for the tests."""
    return _read_at_start(environment) == _read_at_start(os.environ)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _READ_AT_START.match(name)}


class ForkServer:
    """Client of the process.

    Args:
        libraries: also import the SDKs of model APIs and the statistics libraries.
    """

    def __init__(self, *, libraries: bool = False) -> None:
        session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        kind = "libraries" if libraries else "commands"
        folder = Path(tempfile.gettempdir()) / f"agentv-fork-{session}"
        folder.mkdir(mode=0o700, exist_ok=True)
        self._address = str(folder / kind)
        with (folder / f"{kind}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._is_running():
                self._start(session, kind)

    def _is_running(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            return connection.connect_ex(self._address) == 0

    def _start(self, session: int, kind: str) -> None:
        Path(self._address).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, Path(os.devnull).open("r+") as nothing:
            listening.bind(self._address)
            listening.listen(64)
            listening.set_inheritable(True)
            os.posix_spawn(  # leaves no object behind that would wait for the process's end
                sys.executable,
                [sys.executable, __file__, str(listening.fileno()), str(session), kind],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, nothing.fileno(), stream) for stream in (0, 1)],
            )

    def run(
        self, words: Sequence[str], path: Path, environment: Mapping[str, str], timeout: float
    ) -> tuple[int, str, str]:
        """Return the exit status, stdout and stderr of a command, or of a Python program if the path ends in `.py`.

        Raises:
            TimeoutExpired: it exceeded the timeout and was killed.
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


def serve(listening: socket.socket, session: int) -> None:
    """Fork for each command received, until the process that started the test session has ended."""
    gc.collect()
    gc.freeze()
    ends = os.pidfd_open(session)
    running: dict[int, tuple[int, socket.socket]] = {}
    """Descriptor of each running process → its id, and the socket for its exit status."""
    while True:
        ready, _, _ = select.select((ends, listening, *running), (), ())
        for one in running.keys() & {*ready}:
            _tell_status(one, *running.pop(one))
        if ends in ready:
            return
        if listening in ready:
            connection, _ = listening.accept()
            others = (one.fileno() for _, one in running.values())
            started = _start(connection, (ends, listening.fileno(), *running, *others))
            if started is not None:
                process, pid = started
                running[process] = (pid, connection)


def _tell_status(process: int, pid: int, connection: socket.socket) -> None:
    os.close(process)
    _, status = os.waitpid(pid, 0)
    with connection, suppress(BrokenPipeError):
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def import_agentv(imported: Callable[[], list[str]] | None = None) -> None:
    """Import the modules of common commands, and compile the patterns that they use.

    Importing more would cost each fork more than it saves.

    Args:
        imported: returns the names of modules that other commands import; called in a fork.
    """
    reading, writing = os.pipe()
    learning = os.fork()
    if learning == 0:
        with os.fdopen(writing, "w") as found:
            json.dump([(imported or _imported_by_commands)(), _compiled_patterns(), _shapes()], found)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as found:
        names, patterns, shapes = json.load(found)
    os.waitpid(learning, 0)
    for name in names:
        with suppress(ImportError):  # parts of packages that only the package itself can import
            importlib.import_module(name)
    for pattern, flags in patterns:
        re.compile(pattern, flags)
    for module, cls in shapes:
        decode.shape_of(attrgetter(cls)(sys.modules[module]))


def _compiled_patterns() -> list[tuple[str, int]]:
    """Return the text patterns compiled here, with their flags; `re` caches them."""
    return [(pattern, flags) for kind, pattern, flags in re._cache if kind is str]


def _shapes() -> list[tuple[str, str]]:
    """Return the module and name of each class of options whose declaration was read here."""
    return [(one.__module__, one.__qualname__) for one in decode._SHAPES]


def _imported_by_commands() -> list[str]:
    """Return the names of the modules imported by a run and by a file with a mistake, in order."""
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


def _start(connection: socket.socket, ours: Sequence[int]) -> tuple[int, int] | None:
    """Start the received command, send its process id, and return a descriptor of the process and the id.

    Return None for an empty message, which only checks that this process is alive.
    """
    sent, descriptors, _, _ = socket.recv_fds(connection, _LARGEST, 2)
    if not sent:
        connection.close()
        return None
    pid = os.fork()
    if pid == 0:
        connection.close()
        for one in ours:
            os.close(one)
        _become(json.loads(sent), descriptors)
    for one in descriptors:
        os.close(one)
    connection.send(str(pid).encode())
    return os.pidfd_open(pid), pid


def _become(command: dict, descriptors: list[int]) -> None:
    """Run the command as the script would, with no trace of this process's state."""
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
    sys.modules["__main__"].__file__ = AGENTV  # processes started by multiprocessing import it
    from agentv.user_code import orphans

    orphans._RUN = os.urandom(8).hex()  # drawn at import; must differ between commands
    status: object = 0
    try:
        _run(command["words"])
    except SystemExit as ended:  # raised by the script
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - the program's uncaught exception
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _run(words: list[str]) -> None:
    if words[:1] and words[0].endswith(".py"):
        sys.argv = words
        sys.path[0] = str(Path(words[0]).parent)
        runpy.run_path(words[0], run_name="__main__")
        return
    from agentv.__main__ import main

    main()


def main(listening: int, session: int, kind: str) -> None:
    """Run the server process."""
    os.closerange(3, listening)  # close the descriptors that the user's process left open
    os.closerange(listening + 1, os.sysconf("SC_OPEN_MAX"))
    import_agentv()
    for name in (*OFTEN, *(LIBRARIES if kind == "libraries" else ())):
        importlib.import_module(name)
    if kind == "libraries":
        from agentv.targets.model_api.prices import load_prices

        load_prices()
    assert threading.active_count() == 1, threading.enumerate()  # a fork keeps no other threads
    with socket.socket(fileno=listening) as shared:
        folder = Path(shared.getsockname()).parent
        serve(shared, session)
    shutil.rmtree(folder, ignore_errors=True)  # the folder of the ended session


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
