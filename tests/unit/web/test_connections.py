"""Connections that send nothing, or a byte now and then, do not stay; streams and whoever reads slowly do."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from agentv.extensions.view import events
from agentv.extensions.view.app import static_files, static_version
from agentv.web.connections import LimitedConnection, most_connections
from doubles.team_servers import team_server_in
from doubles.waiting import until

HEAD = b"POST /sign-in/token HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with team_server_in(tmp_path_factory.mktemp("server")) as found:
        yield found


def connected(server):
    address = urlsplit(server.root)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def rest_of(connection):
    found = b""
    while piece := connection.recv(1 << 16):
        found += piece
    return found


@pytest.mark.parametrize(
    ("sent", "status"), [(b"", b""), (HEAD[:20], b"408"), (HEAD, b"408")], ids=["nothing", "half a line", "headers"]
)
def test_a_request_that_does_not_come_ends_its_connection(server, monkeypatch, sent, status):
    monkeypatch.setattr(LimitedConnection, "request_s", 0.2)
    began = time.monotonic()
    with connected(server) as connection:
        connection.sendall(sent)
        assert rest_of(connection)[9:12] == status
    assert time.monotonic() - began < 5


def test_the_second_request_of_a_connection_has_a_deadline_too(server, monkeypatch):
    with connected(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in connection.recv(1 << 16)
        monkeypatch.setattr(LimitedConnection, "request_s", 0.2)
        connection.sendall(b"GET /hea")
        assert b"408" in rest_of(connection)


def test_a_body_that_trickles_ends_its_connection(server, monkeypatch):
    monkeypatch.setattr(LimitedConnection, "body_s", 0.2)
    host = urlsplit(server.root).netloc.encode()
    origin = b"Origin: " + server.root.encode() + b"\r\n"
    with connected(server) as connection:
        connection.sendall(HEAD.replace(b"Host: x", b"Host: " + host) + origin + b"\r\n{")
        assert rest_of(connection) == b""
    until(lambda: not server.connections)


def test_beyond_the_limit_there_is_an_answer_that_says_so(server, monkeypatch):
    monkeypatch.setattr(LimitedConnection, "most", 3)
    until(lambda: not server.connections)
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(connected(server))
        until(lambda: len(server.connections) == 3)
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda _: httpx.get(f"{server.root}/health"), range(8)))
        assert {one.status_code for one in answers} == {503}
        assert answers[0].json()["error"]["message"] == "the server has 3 open connections; try again in a moment"
        assert answers[0].headers["retry-after"]
    until(lambda: not server.connections)
    assert httpx.get(f"{server.root}/health").status_code == 200
    assert 0 < most_connections() <= 500


def test_a_client_that_reads_nothing_of_its_answers_is_let_go(server, monkeypatch):
    monkeypatch.setattr(LimitedConnection, "flush_s", 0.2)
    address = urlsplit(server.root)
    request = f"GET /static/{static_version()}/app.js HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
    until(lambda: not server.connections)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((address.hostname, address.port))
        connection.sendall(request * 40)  # more than the system buffers
        until(lambda: server.connections)
        until(lambda: not server.connections)


def test_a_client_that_reads_slowly_gets_all_of_its_answer(server, monkeypatch):
    monkeypatch.setattr(LimitedConnection, "flush_s", 0.2)
    address = urlsplit(server.root)
    head = f"GET /static/{static_version()}/app.js HTTP/1.1\r\nHost: {address.netloc}\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((address.hostname, address.port))
        connection.sendall(f"{head}\r\n".encode() * 20 + f"{head}Connection: close\r\n\r\n".encode())
        found = 0
        while piece := connection.recv(1 << 16):
            found += len(piece)
            time.sleep(0.0005)
    assert found > 21 * len(static_files()["app.js"])


def test_streams_leave_connections_to_others(server, monkeypatch):
    monkeypatch.setattr(events, "MOST_STREAMS", 2)
    headers = {"Authorization": f"Bearer {server.token('read')}"}
    address = f"{server.address}/api/events"

    def status():
        with httpx.stream("GET", address, headers=headers) as answer:
            return answer.status_code

    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(httpx.stream("GET", address, headers=headers))
        until(lambda: status() == 503)
    until(lambda: status() == 200)
