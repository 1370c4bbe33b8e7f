"""Connections of a server: how many there may be, and for how long each may be idle or half-sent.

uvicorn limits only idle connections that had an answer. One that sends nothing, or a byte of its request now and then,
would stay for ever; some hundreds of them take all file descriptors of a server (slow loris).
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Any, ClassVar, Literal

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST = 500
_RESERVED = 2
"""Of so many file descriptors one is for a connection; the others are for runs, databases and streams."""

_REFUSING = 100
"""Connections beyond the limit that get an answer before they are closed."""

Phase = Literal["request", "body"]


def most_connections() -> int:
    """How many connections a server holds at once."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if allowed == resource.RLIM_INFINITY else max(1, min(_MOST, allowed // _RESERVED))


class LimitedConnection(H11Protocol):
    """A connection with deadlines for what its client sends. Answers, such as streams of events, have none.

    Attributes:
        most: connections at once; a further one gets 503.
        request_s: seconds for a request without its body.
        body_s: seconds in which at least `body_bytes` of a body must arrive, if it is not complete.
        flush_s: seconds in which a client must read at least something of an answer that waits for it.
        linger_s: seconds that a refused client has to read why.
    """

    most: ClassVar[int] = most_connections()
    request_s: ClassVar[float] = 10.0
    body_s: ClassVar[float] = 30.0
    body_bytes: ClassVar[int] = 30_000
    flush_s: ClassVar[float] = 30.0
    linger_s: ClassVar[float] = 1.0
    _refused: ClassVar[set[LimitedConnection]] = set()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse_connection()
        else:
            self._enter("request")

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._enter(None)
        for timer in (self._closing, self._writing):
            if timer is not None:
                timer.cancel()
        self._refused.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self in self._refused:
            return
        self._received += len(data)
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """See uvicorn: an answer is complete."""
        self._enter(None)  # idle, for which uvicorn has a limit
        self._received = 0
        super().on_response_complete()
        if self._is_answering:
            self._follow()  # another request came with the one before

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: the client does not read as fast as is written."""
        super().pause_writing()
        self._watch_reader(None)

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _watch_reader(self, left: int | None) -> None:
        size = self._unread()
        if left is not None and size >= left:
            self.transport.abort()
        else:
            self._writing = self.loop.call_later(self.flush_s, self._watch_reader, size)

    def timeout_keep_alive_handler(self) -> None:
        """See uvicorn: nothing came for a while."""
        super().timeout_keep_alive_handler()
        self._flush(None)

    def _follow(self) -> None:
        if not self._is_answering:
            self._enter("request")
        else:
            self._enter("body" if self.cycle.more_body else None)

    @property
    def _is_answering(self) -> bool:
        cycle: Any = self.cycle  # None before the first request, which uvicorn's types do not say
        return cycle is not None and not cycle.response_complete

    def _enter(self, phase: Phase | None) -> None:
        """Wait for a part of a request; the deadline of one that is waited for stays."""
        if phase == self._phase:
            return
        self._phase = phase
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if phase == "request":
            self._timer = self.loop.call_later(self.request_s, self._give_up)
        elif phase == "body":
            self._begin_body()

    def _begin_body(self) -> None:
        self._received = 0
        self._timer = self.loop.call_later(self.body_s, self._check_body)

    def _check_body(self) -> None:
        if self._received < self.body_bytes and not self.flow.read_paused:
            self._give_up()
        else:
            self._begin_body()

    def _give_up(self) -> None:
        if self.transport.is_closing():
            return
        if self._phase == "request" and self._received:
            self.transport.write(_answer(408, "Request Timeout", "too-slow", "the request takes too long"))
        self.transport.close()
        self._flush(None)

    def _refuse_connection(self) -> None:
        self.connections.discard(self)
        if len(self._refused) >= _REFUSING:
            self.transport.abort()
            return
        self._refused.add(self)
        what = f"the server has {self.most} open connections; try again in a moment"
        self.transport.write(_answer(503, "Service Unavailable", "too-many-connections", what))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._closing = self.loop.call_later(
            self.linger_s, self.transport.abort
        )  # at once, the answer could be lost with the request

    def _unread(self) -> int:
        """Bytes that the client has not received: ours, and the system's, which takes more of ours only in lumps."""
        size = self.transport.get_write_buffer_size()
        with suppress(OSError, ValueError):  # it is closed, or a system that does not say
            queued = ioctl(self.transport.get_extra_info("socket").fileno(), TIOCOUTQ, bytes(4))
            size += int.from_bytes(queued, sys.byteorder)
        return size

    def _flush(self, left: int | None) -> None:
        """Wait until a connection that is being closed has sent its answer, as long as the client reads on."""
        size = self._unread()
        if left is not None and size >= left:
            self.transport.abort()
        else:
            self._closing = self.loop.call_later(self.flush_s, self._flush, size)


def quiet_config(application: Any, **options: Any) -> uvicorn.Config:
    """The configuration of a server. It logs nothing: what a client sends is worth no line in a terminal."""
    for name in ("uvicorn", "uvicorn.error", "sse_starlette", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    common: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "ws": "none"}
    return uvicorn.Config(application, http=LimitedConnection, **common, **options)


def _answer(status: int, reason: str, code: str, message: str) -> bytes:
    body = msgspec.json.encode({"error": {"code": code, "message": message}})
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
        f"Retry-After: 2\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
