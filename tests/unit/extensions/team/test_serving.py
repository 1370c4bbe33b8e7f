"""A page of a team's server shows a run while it is pushed."""

import fcntl
import json
import socket
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from agentv.extensions.team.connection import Connection
from agentv.extensions.team.pushing import RunPush, redactor_of
from agentv.extensions.team.remote import Remote
from agentv.extensions.team.serving import copying
from agentv.store.journal.verification import stored_summary
from agentv.store.rows.reading import read_rows
from agentv.store.totals.summary import PlannedCounts, summarize
from doubles import stored_runs
from doubles.stored_runs import scoring
from doubles.team_servers import RUN_ID, is_complete, row, team_server_in, wait_for, write_rows, write_run


def has_ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
def test_a_server_on_ipv6_loopback_takes_runs_and_shows_pages(tmp_path):
    run = write_run(tmp_path / "laptop", row(1))
    with team_server_in(tmp_path / "server", host="::1") as server, ExitStack() as closing:
        assert server.root.startswith("http://[::1]:")
        remote = Remote.of(server.address, server.token("push", "read"))
        closing.enter_context(copying(server.state, server.data, pytest.fail))
        connection = closing.enter_context(Connection(remote))
        assert RunPush(run, connection, redactor_of({}, "")).push().rows == 1
        browser = closing.enter_context(httpx.Client(base_url=server.root, headers={"Origin": server.root}))
        assert browser.get("/projects/support/").headers["location"].startswith("../../sign-in")
        assert browser.post("/sign-in/token", json={"token": remote.token}).status_code == 200
        assert "agentv-token" in browser.get("/projects/support/").text
        wait_for(lambda: browser.get("/projects/support/api/runs").json()["total"] == 1)
        assert browser.get("/health", headers={"Host": "[::1]:1"}).status_code == 200
        assert browser.get("/", headers={"Host": "[::1]:1"}).status_code == 403


def events_of(lines):
    """Events as (name, data)."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_every_row_is_an_event_once_and_the_end_of_the_run_is_one(tmp_path):
    rows = [row(number) for number in range(4)]
    run = write_run(tmp_path / "laptop")
    with ExitStack() as closing:
        writing = closing.enter_context((run / "journal.jsonl").open("rb"))
        fcntl.flock(writing, fcntl.LOCK_EX)  # as a run does that goes on
        server = closing.enter_context(team_server_in(tmp_path / "server"))
        remote = Remote.of(server.address, server.token("push", "read"))
        connection = closing.enter_context(Connection(remote))
        copies = closing.enter_context(copying(server.state, server.data, pytest.fail))
        push = RunPush(run, connection, redactor_of({}, ""))
        push.push_new_rows()  # the run alone: it has no row
        wait_for((copies.root("support") / ".agentv/results" / RUN_ID / "copied.json").exists)
        address = f"{server.address}/api/runs/{RUN_ID}/events"
        headers = {"Authorization": f"Bearer {remote.token}"}
        answer = closing.enter_context(httpx.stream("GET", address, headers=headers, timeout=10))
        events = events_of(answer.iter_lines())
        assert next(events) == ("state", {"state": "running", "problem": ""})
        for number in range(4):
            write_rows(run, *rows[: number + 1])
            push.push_new_rows()
            name, data = next(events)
            assert (name, [one["id"] for one in data.get("cases", [])]) == ("rows", [f"case {number}"])
        push.say_that_it_goes_on()
        fcntl.flock(writing, fcntl.LOCK_UN)
        (run / "summary.json").write_text(json.dumps({"run_id": RUN_ID}))
        push.push()
        assert next(events) == ("state", {"state": "ended", "problem": ""})


@pytest.mark.parametrize("forged", [{"pass_rate": 1.0, "judged": 2}, {"cases": 7}])
def test_the_totals_of_a_pushed_run_are_those_of_its_rows(tmp_path, forged):
    run = Path(stored_runs.write_run(tmp_path / RUN_ID, scoring({"good": 1.0, "bad": 0.0})))
    true = summarize(read_rows(run / "index.jsonl"), run_id=RUN_ID, planned=PlannedCounts(2, 2), duration_ms=7.0)
    (run / "summary.json").write_text(json.dumps(true.as_json() | forged))
    with ExitStack() as closing:
        server = closing.enter_context(team_server_in(tmp_path / "server"))
        remote = Remote.of(server.address, server.token("push", "read"))
        copies = closing.enter_context(copying(server.state, server.data, pytest.fail))
        RunPush(run, closing.enter_context(Connection(remote)), redactor_of({}, "")).push()
        copy = copies.root("support") / ".agentv/results" / RUN_ID
        wait_for(lambda: is_complete(copy))
        answer = httpx.get(f"{server.address}/api/runs", headers={"Authorization": f"Bearer {remote.token}"})
    (listed,) = answer.json()["runs"]
    assert (listed["pass_rate"], listed["cases"]["passed"], listed["total"]) == (0.5, 1, 2)
    assert stored_summary(copy).verified
