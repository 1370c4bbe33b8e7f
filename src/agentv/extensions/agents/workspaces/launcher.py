"""Supervise a confined program: end it together with every process that it started.

Two processes run above the program, so that killing the first does not kill the second:

    front    the process that agentv starts; a SIGKILL to its process group ends it
    guard    has its own session, and is a subreaper: it adopts every descendant whose parent exits
    program

The guard ends all its descendants when the program has ended, on SIGTERM, and when the front dies. It sends SIGTERM,
waits `GRACE_S` seconds, and then sends SIGKILL until none is left. SIGINT is passed on to the descendants, which may
exit by themselves. The front exits with the status of the program.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence

GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL."""

SANDBOX_PROGRAM = "bwrap"
"""Name of the processes that get no SIGTERM and no SIGINT: they exit with the program inside."""

DOCKER_CLIENT_VARIABLES = ("DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY")
"""Environment variables that the docker client reads."""

_NOT_INSIDE = {*DOCKER_CLIENT_VARIABLES, "PATH", "PWD", "SHLVL", "OLDPWD", "_", "HOME"}
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HANDLED = (*_ENDING, signal.SIGCHLD)
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
GIVE_UP_S = 30.0
"""Seconds after the grace period until processes that cannot be killed are given up."""

_POLL_S = 0.01
_ROUNDS = 50
_CANNOT_START = 127


def command_line(argv: Sequence[str], *, hidden_variable: str = "") -> tuple[str, ...]:
    """Return the command line that runs a program behind a front and a guard.

    Args:
        argv: the program, and its arguments.
        hidden_variable: environment variable of the front that the guard and the program do not get.
    """
    return (*_python(), "front", str(os.getpid()), hidden_variable, *argv)


def _python() -> tuple[str, ...]:
    return sys.executable, "-I", "-S", os.path.abspath(__file__)  # noqa: PTH100  # importing pathlib takes as long as Python's start


def container_command_line(
    program: str, options: Sequence[str], image: str, argv: Sequence[str], *, hidden_variable: str
) -> tuple[str, ...]:
    """Return the command line that runs a program in a container, behind a front and a guard.

    Environment variables are passed to the container by name, so that no value appears in a command line. Those of the
    docker client are not passed. Only the client gets the user's HOME, which contains its configuration.

    Args:
        program: path of `docker`.
        options: options of `docker run`.
        image: image of the container.
        argv: the program, and its arguments.
        hidden_variable: as in `command_line`.
    """
    home = os.path.expanduser("~")  # noqa: PTH111
    client = (*_python(), "container", home, str(len(options)), program, *options, image, *argv)
    return command_line(client, hidden_variable=hidden_variable)


def _container(arguments: Sequence[str]) -> None:
    """Replace this process with the docker client, which passes the program's environment to the container."""
    home, count, program, *words = arguments
    names = sorted(name for name in os.environ if name not in _NOT_INSIDE)
    inside = [word for name in names for word in ("--env", name)]
    own = ("--env", f"HOME={os.environ['HOME']}")
    argv = [program, "run", *words[: int(count)], *inside, *own, *words[int(count) :]]
    os.execve(program, argv, {**os.environ, "HOME": home})  # noqa: S606  # no shell is needed


def _front(arguments: Sequence[str]) -> None:
    """Start the guard, pass signals on to it, and exit as it does."""
    parent, hidden_variable, *rest = arguments
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if not _is_alive(int(parent)):  # agentv died before the death signal was set
        return
    guard = os.fork()
    if not guard:
        os.setsid()
        env = {name: value for name, value in os.environ.items() if name != hidden_variable}
        os.execve(sys.executable, (*_python(), "guard", str(os.getppid()), *rest), env)  # noqa: S606  # no shell is needed
    _release_streams()
    while True:
        number = signal.sigwait(_HANDLED)
        if number in _ENDING:
            os.kill(guard, number)
        ended, status = os.waitpid(guard, os.WNOHANG)
        if ended:
            _exit_like(status)


def _guard(arguments: Sequence[str]) -> None:
    """Run the program, then end all descendants."""
    front, *argv = arguments
    _prctl(_SET_CHILD_SUBREAPER, 1)
    _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
    program = os.fork()
    if not program:
        _exec_program(argv)
    _release_streams()
    status = None if os.getppid() == int(front) else -1
    while status is None:
        number = signal.sigwait(_HANDLED)
        if number == signal.SIGINT:
            # like a terminal, send SIGINT to all processes
            for one in alive_below({os.getpid()}):
                if name_of(one) != SANDBOX_PROGRAM:
                    send(one, signal.SIGINT)
        ends = number in _ENDING and number != signal.SIGINT
        status = _reaped().get(program, -1 if ends else None)
    ended: dict[int, int] = {}

    def below() -> set[int]:
        ended.update(_reaped())
        return alive_below({os.getpid()})

    end_all(below)
    _exit_like((ended | _reaped()).get(program, 0) if status == -1 else status)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _exec_program(argv: Sequence[str]) -> None:
    """Replace this process with the program."""
    os.setpgid(0, 0)
    for number in (*_ENDING, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606  # no shell is needed
    except (OSError, ValueError) as error:
        os.write(2, f"cannot start {argv[0]}: {error}\n".encode(errors="replace"))
    os._exit(_CANNOT_START)


def end_all(found: Callable[[], set[int]], grace_s: float = GRACE_S) -> bool:
    """Send SIGTERM to processes, and SIGKILL after a grace period; return whether none is left.

    Args:
        found: returns the processes that are alive.
        grace_s: seconds between SIGTERM and SIGKILL.
    """
    started = time.monotonic()
    asked: set[int] = set()
    while alive := found():
        waited = time.monotonic() - started
        if waited > grace_s + GIVE_UP_S:
            return False
        if waited > grace_s:
            kill_all(found)
        for one in alive - asked:
            if name_of(one) != SANDBOX_PROGRAM:
                send(one, signal.SIGTERM)
        asked |= alive
        time.sleep(_POLL_S)
    return True


def kill_all(found: Callable[[], set[int]]) -> None:
    """Kill processes that may be forking. All are stopped first, so that none can start another meanwhile.

    Args:
        found: returns the processes that are alive.
    """
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        new = found() - stopped
        if not new:
            break
        for one in new:
            send(one, signal.SIGSTOP)
        stopped |= new
    for one in stopped:
        send(one, signal.SIGKILL)


def alive_below(roots: set[int]) -> set[int]:
    """Return the descendants of processes that have not ended."""
    below: dict[int, list[int]] = {}
    ended: set[int] = set()
    for process, (parent, state) in process_table().items():
        below.setdefault(parent, []).append(process)
        if state in "ZX":
            ended.add(process)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        for one in below.get(todo.pop(), ()):
            if one not in found:
                found.add(one)
                todo.append(one)
    return found - ended - roots


def process_table() -> Mapping[int, tuple[int, str]]:
    """Return a map from each process to its parent and state."""
    found = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208  # pathlib is not loaded
    except OSError:
        return {}
    for name in names:
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    state, parent, *_ = file.read().rpartition(b")")[2].split()
            except (OSError, ValueError):
                continue
            found[int(name)] = int(parent), state.decode()
    return found


def name_of(process: int) -> str:
    """Return the short name of a process, or an empty string if it is gone."""
    try:
        with open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def send(process: int, number: int) -> None:
    """Send a signal to a process. Do nothing if it is gone or may not be signaled."""
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return


def _reaped() -> dict[int, int]:
    """Reap the children that have ended; return process → wait status."""
    found: dict[int, int] = {}
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not child:
            return found
        found[child] = status


def _release_streams() -> None:
    """Redirect the standard streams to the null device, so that their pipes close when the program closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)


def _exit_like(status: int) -> None:
    """Exit with the status of a child, or by the same signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def _prctl(*arguments: int) -> None:
    """Call `prctl` of the C library, on Linux only. Importing `ctypes` instead would take 10 ms."""
    if sys.platform != "linux":
        return
    from _ctypes import call_function, dlopen, dlsym

    call_function(dlsym(dlopen(None, 0), "prctl"), (*arguments, 0, 0, 0)[:5])  # type: ignore[arg-type]  # None: this program


if __name__ == "__main__":
    {"front": _front, "guard": _guard, "container": _container}[sys.argv[1]](sys.argv[2:])
