"""Unix sockets whose paths may be longer than the system takes."""

from __future__ import annotations

import os
import socket

_LONGEST_PATH = 100


def listening_at(path: str) -> socket.socket:
    """A Unix socket that listens at an absolute path.

    Raises:
        OSError: that is not possible.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = -1
    try:
        if len(path.encode()) > _LONGEST_PATH:
            parent, _, name = path.rpartition("/")
            directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{directory}/{name}"
        made.bind(path)
        made.listen()
    except OSError:
        made.close()
        raise
    finally:
        if directory >= 0:
            os.close(directory)
    return made
