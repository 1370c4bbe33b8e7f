"""A team server's page shows a run while it is pushed."""

import fcntl
import json
import socket
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from agentv.errors import UsageError
from agentv.extensions.team.connection import Connection
from agentv.extensions.team.endpoints import TeamState
from agentv.extensions.team.opening import migrate, open_database
from agentv.extensions.team.pushing import RunPush, redactor_of
from agentv.extensions.team.remote import Remote
from agentv.extensions.team.serving import ENDPOINTS, copying, public_addresses, team_application
from agentv.extensions.team.uploaded import RunName
from agentv.extensions.view import events
from agentv.store.journal.verification import stored_summary
from agentv.store.rows.reading import read_rows
from agentv.store.totals.summary import PlannedCounts, summarize
from agentv.web.security import HEADERS
from doubles import stored_runs
from doubles.stored_runs import scored_trials
from doubles.team_servers import RUN_ID, is_complete, row, team_server_in, with_project, write_rows, write_run
from doubles.waiting import until


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
        until(lambda: browser.get("/projects/support/api/runs").json()["total"] == 1)
        assert browser.get("/health", headers={"Host": "[::1]:1"}).status_code == 200
        assert browser.get("/", headers={"Host": "[::1]:1"}).status_code == 403


def events_of(lines):
    """Return events as (name, data)."""
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
        fcntl.flock(writing, fcntl.LOCK_EX)  # as a running run does
        server = closing.enter_context(team_server_in(tmp_path / "server"))
        remote = Remote.of(server.address, server.token("push", "read"))
        connection = closing.enter_context(Connection(remote))
        copies = closing.enter_context(copying(server.state, server.data, pytest.fail))
        push = RunPush(run, connection, redactor_of({}, ""))
        push.push_new_rows()  # only the run, which has no rows yet
        until((copies.root("support") / ".agentv/results" / RUN_ID / "copied.json").exists)
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
        push.send_heartbeat()
        fcntl.flock(writing, fcntl.LOCK_UN)
        (run / "summary.json").write_text(json.dumps({"run_id": RUN_ID}))
        push.push()
        assert next(events) == ("state", {"state": "ended", "problem": ""})


@pytest.mark.parametrize("forged", [{"pass_rate": 1.0, "judged": 2}, {"cases": 7}])
def test_the_totals_of_a_pushed_run_are_those_of_its_rows(tmp_path, forged):
    run = Path(stored_runs.write_run(tmp_path / RUN_ID, scored_trials({"good": 1.0, "bad": 0.0})))
    true = summarize(read_rows(run / "index.jsonl"), run_id=RUN_ID, planned=PlannedCounts(2, 2), duration_ms=7.0)
    (run / "summary.json").write_text(json.dumps(true.as_json() | forged))
    with ExitStack() as closing:
        server = closing.enter_context(team_server_in(tmp_path / "server"))
        remote = Remote.of(server.address, server.token("push", "read"))
        copies = closing.enter_context(copying(server.state, server.data, pytest.fail))
        RunPush(run, closing.enter_context(Connection(remote)), redactor_of({}, "")).push()
        copy = copies.root("support") / ".agentv/results" / RUN_ID
        until(lambda: is_complete(copy))
        answer = httpx.get(f"{server.address}/api/runs", headers={"Authorization": f"Bearer {remote.token}"})
    (listed,) = answer.json()["runs"]
    assert (listed["pass_rate"], listed["cases"]["passed"], listed["total"]) == (0.5, 1, 2)
    assert stored_summary(copy).verified


ADDRESS = "https://evals.example.org"
RECORD = b'{"schema_version": 1, "run_id": "%s", "started": "2026-11-21T14:03:22Z"}' % RUN_ID.encode()


@pytest.fixture
def state(tmp_path):
    database = open_database(f"sqlite:///{tmp_path}/team.sqlite")
    migrate(database)
    made = TeamState(database, [ADDRESS])
    for name in ("support", "api", "lock"):
        with_project(made.database, name)
    made.uploads.put_record(RunName("support", RUN_ID, "test"), RECORD, writing=False)
    return made


@pytest.fixture
def client(state, tmp_path):
    with copying(state, tmp_path / "copies", pytest.fail) as replica:
        replica.update()
        with TestClient(team_application(state, tmp_path / "copies"), base_url=ADDRESS) as found:
            yield found


def bearer(state, *scopes, project="support"):
    return {"Authorization": f"Bearer {state.tokens.create('t', project, scopes, None, 'test')[0]}"}


def test_pages_are_read_with_the_scope_and_by_nobody_else(client, state):
    read, push, everywhere = bearer(state, "read"), bearer(state, "push"), bearer(state, "read", project=None)
    assert client.get("/projects/support/api/runs", headers=read).json()["runs"][0]["run_id"] == RUN_ID
    assert 'src="../../static/' in client.get("/projects/support/", headers=read).text
    assert client.get("/api/projects", headers=read).json() == {"projects": ["support"]}
    assert client.get("/projects/api/api/runs", headers=everywhere).json()["total"] == 0
    for path, headers, status in (
        ("/", {}, 200),  # the sign-in page
        ("/projects/support/", {}, 200),
        ("/projects/support/api/runs", {}, 401),
        ("/projects/support/api/events", {}, 401),
        (f"/projects/support/api/runs/{RUN_ID}/events", bearer(state, "read", project="api"), 403),
        ("/projects/support/api/runs", push, 403),
        ("/projects/support/", push, 403),
        ("/projects/api/", read, 403),
        ("/projects/nothing/", read, 403),  # as for an existing project
        ("/projects/nothing/", everywhere, 404),
        ("/projects/%2e%2e/api/runs", everywhere, 404),
        ("/projects/support%2F..%2Fapi/api/runs", read, 404),
        ("/projects/%3Cb%3E/", everywhere, 404),
    ):
        answer = client.get(path, headers=headers)
        assert answer.status_code == status, (path, answer.text)
        assert "<b>" not in answer.text
        assert ("Sign in" in answer.text) == (answer.status_code == 200)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        is_page = path.endswith("/")
        assert answer.headers["content-type"].startswith("text/html" if is_page else "application/json"), path
    moved = client.get("/projects/support", follow_redirects=False)
    assert (moved.status_code, moved.headers["location"]) == (308, "./support/")


def test_the_endpoints_of_the_server_are_described_with_their_types(client, state):
    assert client.get("/api/openapi.json").status_code == 401
    headers = bearer(state, "admin")
    found = client.get("/api/openapi.json", headers=headers).json()
    described = {(path, method) for path, one in found["paths"].items() for method in one}
    assert described == {(one.path, one.method.lower()) for one in ENDPOINTS}
    schemas = found["components"]["schemas"]
    for one in ENDPOINTS:
        said = found["paths"][one.path][one.method.lower()]
        assert ("requestBody" in said) == (one.method in ("POST", "PUT")), one.path
    assert schemas["NewToken"]["required"] == ["name", "scopes"]
    answer = client.get("/projects/support/api/labels/lines", headers=headers).json()
    assert answer.keys() == schemas["LabelLines"]["properties"].keys()


def test_other_hosts_and_origins_are_refused_but_scripts_need_no_origin(client, state):
    admin = bearer(state, "admin")
    for headers in ({"Host": "evil.org"}, {"Origin": "https://evil.example"}, {"Origin": "http://evals.example.org"}):
        assert client.get("/projects/support/api/runs", headers={**admin, **headers}).status_code == 403
    assert client.get("/health", headers={"Host": "10.0.0.7:4290"}).status_code == 200
    assert client.get("/metrics", headers={"Host": "10.0.0.7:4290"}).status_code == 403
    facts = client.get("/projects/support/api/project", headers=admin).json()
    assert (facts["edit"], facts["label"], facts["run"], facts["team"]) == (True, True, False, True)


def test_a_run_is_named_and_deleted_in_the_database_by_admins(client, state):
    path = f"/projects/support/api/runs/{RUN_ID}"
    refused = client.delete(path, headers=bearer(state, "read", "push"))
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, "this needs the scope 'admin'")
    name, admin = {"name": "before  the fix"}, bearer(state, "admin")
    assert client.post(f"{path}/name", json=name, headers=bearer(state, "read", "push")).status_code == 403
    assert client.post(f"{path}/name", json={"name": "x\x1b[2J"}, headers=admin).status_code == 422
    named = client.post(f"{path}/name", json=name, headers=admin)
    assert named.json() == {"run_id": RUN_ID, "name": "before the fix"}
    (run,) = client.get("/projects/support/api/runs?q=before", headers=bearer(state, "read")).json()["runs"]
    assert run["name"] == "before the fix"
    assert client.delete(path, headers=bearer(state, "admin")).json() == {"run_id": RUN_ID, "left": []}
    assert client.get("/projects/support/api/runs", headers=bearer(state, "read")).json()["total"] == 0
    lines = client.get("/projects/support/api/audit", headers=bearer(state, "admin")).json()["lines"]
    found = [line["action"] for line in lines if line["actor"].endswith("(t)")]
    assert [one for one in found if one.startswith("run")] == ["run deleted", "run named"]


def test_the_address_of_a_server_is_known_or_asked_for():
    assert public_addresses(("https://Evals.example.org/",), "0.0.0.0", 4290) == [ADDRESS]
    assert "http://127.0.0.1:4290" in public_addresses((), "127.0.0.1", 4290)
    assert public_addresses((), "10.0.0.7", 4290) == ["http://10.0.0.7:4290"]
    for given, host in (((), "0.0.0.0"), ((), "::"), (("evals.example.org",), "::1"), (("https://a/b",), "::1")):
        with pytest.raises(UsageError):
            public_addresses(given, host, 4290)


def test_streams_leave_connections_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "MOST_STREAMS", 2)
    with team_server_in(tmp_path) as server:
        asked = {"headers": {"Authorization": f"Bearer {server.token('read')}"}, "url": f"{server.address}/api/events"}

        def status():
            with httpx.stream("GET", **asked) as answer:
                return answer.status_code

        with ExitStack() as held:
            for _ in range(2):
                held.enter_context(httpx.stream("GET", **asked))
            until(lambda: status() == 503)
        until(lambda: status() == 200)
