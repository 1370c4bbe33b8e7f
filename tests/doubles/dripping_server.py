"""A loopback server that sends its response byte by byte and never finishes."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

EVERY_S = 0.02


@contextmanager
def dripping_server(head: bytes = b"HTTP/1.1 200 OK\r\nX-Never-Ends: ") -> Iterator[str]:
    """Yield the address of a server whose responses start with `head` and continue with one byte at a time."""
    ended = Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(head)
            while not ended.wait(EVERY_S):
                connection.sendall(b"x")

    def accept() -> None:
        with suppress(OSError):
            while True:
                Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
