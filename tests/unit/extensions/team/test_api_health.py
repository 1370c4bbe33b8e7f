"""Health and metrics are answered at once, whatever others do with the database."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import httpx
import pytest

from doubles.waiting import until


@pytest.fixture(scope="module")
def client():
    with httpx.Client(timeout=30) as found:
        yield found


def timed(client, address, **options):
    began = time.monotonic()
    answer = client.get(address, **options)
    return answer, time.monotonic() - began


def test_a_database_that_hangs_is_busy(server, client, monkeypatch):
    going_on = Event()
    reading = server.state.database.reading

    @contextmanager
    def hanging():
        going_on.wait(20)
        with reading() as transaction:
            yield transaction

    token = server.token("read")
    monkeypatch.setattr(server.state.database, "reading", hanging)
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: timed(client, f"{server.root}/health"), range(12)))
        assert {one.status_code for one, _ in answers} == {503}
        assert max(took for _, took in answers) < 2
        error = answers[0][0].json()["error"]
        assert (error["code"], error["message"][:13]) == ("database-busy", "database busy")
        headers = {"Authorization": f"Bearer {token}"}
        answers = list(threads.map(lambda _: timed(client, f"{server.root}/metrics", headers=headers), range(12)))
        assert {one.json()["error"]["code"] for one, _ in answers} == {"database-busy"}
        assert max(took for _, took in answers) < 2
    monkeypatch.undo()
    going_on.set()
    until(lambda: timed(client, f"{server.root}/health")[0].status_code == 200)
