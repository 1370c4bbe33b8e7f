"""Relay between standard streams and a Unix socket: the end of a scripted MCP server that an agent starts.

It is under the agent's control and knows nothing: tools, results and the record of calls are in our process, at the
other end of the socket. A file of its own, so that any Python can run it without this package.

Usage: python relay.py SOCKET
"""

import os
import socket
import sys
import threading

_CHUNK = 1 << 16


def relay(path: str) -> None:
    """Copy both ways until either side ends."""
    directory, _, name = path.rpartition("/")
    if directory:
        os.chdir(directory)  # a socket's path must be short
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(name)
    threading.Thread(target=_send, args=(connection,), daemon=True).start()
    while chunk := connection.recv(_CHUNK):
        left = memoryview(chunk)
        while left:
            left = left[os.write(1, left) :]


def _send(connection: socket.socket) -> None:
    while chunk := os.read(0, _CHUNK):
        connection.sendall(chunk)
    connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    relay(sys.argv[1])
