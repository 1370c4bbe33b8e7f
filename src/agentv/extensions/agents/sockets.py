"""Unix sockets through which agents reach agentv: listening on a socket, and forwarding to it from the agent's side.

This file is self-contained: any Python can run it without the package. It only copies bytes; the server is in agentv's
process, at the other end of the socket.

- `python sockets.py SOCKET` copies the standard streams to the socket and back. Agents start it as a scripted MCP
  server.
- `python sockets.py PORT=SOCKET… -- PROGRAM ARGUMENT…` listens on 127.0.0.1 in a network namespace, leaves a
  forwarding process behind, and becomes the program, which therefore has its own streams, exit status and signals. The
  forwarding process ends with its namespace.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

PATH_IN_SANDBOX = "/run/agentv-sockets.py"
"""Path of this file in a sandbox."""

LOOPBACK = "127.0.0.1"
_LONGEST_PATH = 100
_CHUNK = 1 << 16
_CANNOT_START = 127


def listening_at(path: str) -> socket.socket:
    """Return a Unix socket that listens at an absolute path.

    Raises:
        OSError: the socket cannot be created there.
    """
    listener = _socket_at(path, socket.socket.bind)
    listener.listen()
    return listener


def _socket_at(path: str, act: Callable[[socket.socket, str], object]) -> socket.socket:
    """Return a Unix socket that was bound or connected to a path, which may exceed the system's length limit."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = -1
    try:
        if len(path.encode()) > _LONGEST_PATH:
            parent, _, name = path.rpartition("/")
            directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{directory}/{name}"
        act(opened, path)
    except OSError:
        opened.close()
        raise
    finally:
        if directory >= 0:
            os.close(directory)
    return opened


def command_line(forwards: Mapping[int, str]) -> tuple[str, ...]:
    """Return the words to put in front of a program's command line so that ports are forwarded for it.

    Args:
        forwards: port → absolute path of a socket.
    """
    pairs = (f"{port}={path}" for port, path in forwards.items())
    return (os.path.realpath(sys.executable), "-I", "-S", PATH_IN_SANDBOX, *pairs, "--")


def relay(path: str) -> None:
    """Copy stdin to a socket, and what the socket sends to stdout, until the socket is closed."""
    connection = _socket_at(path, socket.socket.connect)
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    while chunk := connection.recv(_CHUNK):
        left = memoryview(chunk)
        while left:
            left = left[os.write(1, left) :]


def _send(connection: socket.socket) -> None:
    while chunk := os.read(0, _CHUNK):
        connection.sendall(chunk)
    connection.shutdown(socket.SHUT_WR)


def _forward_and_exec(pairs: Sequence[str], program: Sequence[str]) -> None:
    try:
        listening = [_listen(one) for one in pairs]
        _spawn_forwarder(listening)
        for one, _ in listening:
            one.close()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would inherit that
        os.execvp(program[0], list(program))  # noqa: S606  # no shell is intended
    except (OSError, ValueError) as error:
        os.write(2, f"cannot start {program[0]}: {error}\n".encode(errors="replace"))
    os._exit(_CANNOT_START)


def _listen(pair: str) -> tuple[socket.socket, str]:
    port, _, path = pair.partition("=")
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((LOOPBACK, int(port)))
    listener.listen(128)
    return listener, path


def _spawn_forwarder(listening: Sequence[tuple[socket.socket, str]]) -> None:
    """Forward in a process that is not a child of this one, so that the program never waits for it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # the program may need the ports while it shuts down
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
    """Copy both ways until both sides have ended. Close the connection if nothing listens at the socket."""
    with connection:
        try:
            outside = _socket_at(path, socket.socket.connect)
        except OSError:
            return
        with outside:
            back = threading.Thread(target=_copy, args=(outside, connection), daemon=True)
            back.start()
            _copy(connection, outside)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    except OSError:
        pass
    for one, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            one.shutdown(how)
        except OSError:  # already closed
            continue


if __name__ == "__main__":
    if "--" in sys.argv:
        end = sys.argv.index("--")
        _forward_and_exec(sys.argv[1:end], sys.argv[end + 1 :])
    else:
        relay(sys.argv[1])
