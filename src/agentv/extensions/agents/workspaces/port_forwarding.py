"""Ports on the loopback of a network namespace that lead to Unix sockets outside of it.

A file of its own, which any Python runs without this package: it listens on 127.0.0.1, leaves a process behind that
forwards, and becomes the program, which so has its own streams, status and signals. The process that forwards ends
with its namespace.

Usage: python port_forwarding.py PORT=SOCKET… -- PROGRAM ARGUMENT…
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence

INSIDE = "/run/agentv-port-forwarding.py"
"""Path of this file in a sandbox."""

LOOPBACK = "127.0.0.1"
_CHUNK = 1 << 16
_CANNOT_START = 127


def command_line(forwards: Mapping[int, str]) -> tuple[str, ...]:
    """What stands in front of a program for which ports are forwarded.

    Args:
        forwards: port → absolute path of a socket.
    """
    pairs = (f"{port}={path}" for port, path in forwards.items())
    return (os.path.realpath(sys.executable), "-I", "-S", INSIDE, *pairs, "--")


def _main(arguments: Sequence[str]) -> None:
    end = arguments.index("--")
    program = arguments[end + 1 :]
    try:
        listening = [_listen(one) for one in arguments[:end]]
        _leave_behind(listening)
        for one, _ in listening:
            one.close()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would too
        os.execvp(program[0], list(program))  # noqa: S606  # no shell is meant
    except (OSError, ValueError) as error:
        os.write(2, f"cannot start {program[0]}: {error}\n".encode(errors="replace"))
    os._exit(_CANNOT_START)


def _listen(pair: str) -> tuple[socket.socket, str]:
    port, _, path = pair.partition("=")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((LOOPBACK, int(port)))
    made.listen(128)
    return made, path


def _leave_behind(listening: Sequence[tuple[socket.socket, str]]) -> None:
    """Forward in a process that is no child of this one, so that the program never waits for it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the program may still need the ports to end
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    for one in listening[1:]:
        threading.Thread(target=_accept, args=one, daemon=True).start()
    _accept(*listening[0])
    os._exit(1)


def _accept(listening: socket.socket, path: str) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except ConnectionError:
            continue
        threading.Thread(target=_forward, args=(connection, path), daemon=True).start()


def _forward(connection: socket.socket, path: str) -> None:
    """Copy both ways until both sides have ended. Nobody at the socket: the connection is closed."""
    with connection:
        try:
            outside = _connected(path)
        except OSError:
            return
        with outside:
            back = threading.Thread(target=_copy, args=(outside, connection), daemon=True)
            back.start()
            _copy(connection, outside)
            back.join()


def _connected(path: str) -> socket.socket:
    """A connection to a socket, whose path may be longer than the system takes."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory, _, name = path.rpartition("/")
    try:
        number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            made.connect(f"/proc/self/fd/{number}/{name}")
        finally:
            os.close(number)
    except OSError:
        made.close()
        raise
    return made


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    except OSError:
        pass
    for one, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            one.shutdown(how)
        except OSError:  # it has ended already
            continue


if __name__ == "__main__":
    _main(sys.argv[1:])
