"""A request ends at its deadline, however its answer arrives."""

from __future__ import annotations

import time

import httpx
import pytest

from agentv.extensions.team.request_deadline import Connections, DeadlineExceededError
from doubles.dripping_server import dripping_server

HEADS = {
    "headers": b"HTTP/1.1 200 OK\r\nX: ",
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
    "body without a length": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_byte_at_a_time_does_not_make_a_request_last(head):
    connections = Connections()
    with dripping_server(head) as address, httpx.Client(timeout=5) as client:
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError, match=r"within 0\.2 seconds"), connections.within(0.2):
            client.get(address, extensions=connections.extensions)
        assert time.monotonic() - began < 4
