"""Runs that change, are damaged or are read by two servers, and clients that do not read."""

import asyncio
import fcntl
import sqlite3

import pytest
from starlette.requests import Request

from agentv.app.results.project import Project
from agentv.extensions.view.events import Events
from agentv.extensions.view.state import ViewOptions, local_context
from agentv.store.files.encoding import to_json
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, finished, trial
from doubles.viewed_project import add_run, viewed

RUN, OTHER = "20261121T140322Z-7f3a", "20261122T140322Z-7f3a"


@pytest.fixture
def path(tmp_path):
    add_run(tmp_path, OTHER, [finished(trial=trial("a"))])
    return add_run(tmp_path, RUN, cases(30))


def cases(number, outcome="passed"):
    return [finished(outcome, trial=trial(f"case-{at}")) for at in range(number)]


def append(path, results):
    with (path / "index.jsonl").open("ab") as file:
        file.writelines(to_json(row_of(one, ROOT)) + b"\n" for one in results)


def test_every_change_gives_another_etag(tmp_path, path):
    paths = ("/api/runs", f"/api/runs/{RUN}", f"/api/runs/{RUN}/cases")
    with viewed(tmp_path, ViewOptions(edit=True)) as client:

        def fresh(change, expected):
            tags = {one: client.get(one).headers["ETag"] for one in paths}
            change()
            for one in paths:
                answer = client.get(one, headers={"If-None-Match": tags[one]})
                assert answer.status_code == expected.get(one, 200), (change, one)

        fresh(lambda: None, dict.fromkeys(paths, 304))
        fresh(lambda: append(path, [finished(trial=trial("later"))]), {})
        assert client.get(paths[2]).json()["total"] == 31
        fresh(lambda: append(path, [finished("failed", trial=trial("later"))]), {})
        assert client.get(f"{paths[2]}?status=failed").json()["total"] == 1
        fresh(lambda: client.post(f"/api/runs/{RUN}/name", json={"name": "new"}), {})
        assert client.get(paths[1]).json()["name"] == "new"
        fresh(lambda: client.delete(f"/api/runs/{RUN}"), {paths[1]: 404, paths[2]: 404})


def test_two_servers_on_one_project_say_the_same_and_leave_a_whole_index(tmp_path, path):
    with viewed(tmp_path) as one, viewed(tmp_path) as other:
        for number in range(4):
            append(path, [finished(trial=trial(f"later-{number}"))])
            found = [client.get(f"/api/runs/{RUN}/cases?q=case").json() for client in (one, other, other, one)]
            assert {answer["total"] for answer in found} == {30}
            assert {client.get(f"/api/runs/{RUN}/cases").json()["total"] for client in (one, other)} == {31 + number}
    with viewed(tmp_path) as client:
        assert client.get(f"/api/runs/{RUN}/cases").json()["total"] == 34
    for file in path.glob("view.sqlite"):
        assert sqlite3.connect(file).execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list(path.glob(".view.sqlite*"))


def test_a_client_that_takes_nothing_costs_one_event_and_gets_all_later(tmp_path, path):
    context = local_context(Project(tmp_path, ()), ViewOptions())
    scope = {"type": "http", "method": "GET", "headers": [], "query_string": b"", "path_params": {"id": RUN}}

    async def watch():
        stream = (await Events(context).of_run(Request(scope))).body_iterator
        first = await anext(stream)
        assert first.event == "state"
        append(path, [finished(trial=trial(f"later-{at}")) for at in range(1000)])
        got = []
        while sum(got) < 1000:
            event = await anext(stream)
            if event.event == "rows":
                got.append(event.data.count('"test_id"') or event.data.count('"route"'))
                assert len(event.data) < 500_000
        await stream.aclose()
        return got

    with (path / "journal.jsonl").open("ab+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        got = asyncio.run(asyncio.wait_for(watch(), 20))
    context.close()
    assert sum(got) == 1000
    assert max(got) <= 200
