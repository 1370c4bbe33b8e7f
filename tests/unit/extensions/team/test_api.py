import gzip
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import sha256

import httpx
import pytest
from msgspec.structs import replace
from starlette.requests import ClientDisconnect

from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.labels.ratings import ratings_of_run
from agentv.extensions.team import endpoints
from agentv.extensions.team.connection import Connection
from agentv.extensions.team.database import DatabaseUnavailableError, audit_lines
from agentv.extensions.team.endpoints import TeamState
from agentv.extensions.team.pushing import RunPush, pull_labels, redactor_of
from agentv.extensions.team.remote import Remote
from agentv.extensions.team.serving import copying, team_routes
from agentv.model.run.labels import Label
from agentv.store.labels import label_line
from doubles.judged_runs import judged_run
from doubles.stored_runs import write_run
from doubles.team_servers import RUN_ID, is_complete, row, team_server_in
from doubles.trials import finished, trial
from doubles.waiting import until

RECORD = json.dumps({"schema_version": 1, "run_id": RUN_ID, "started": "2026"}).encode()


@pytest.fixture
def client(server):
    headers = {"Authorization": f"Bearer {server.token('push', 'admin')}"}
    with httpx.Client(base_url=server.address, headers=headers) as found:
        yield found


def code(response):
    return response.status_code, response.json()["error"]["code"]


def test_every_address_but_health_needs_a_token_with_its_scope(server):
    open_addresses = set()
    scoped = server.token("read")
    for route in team_routes(server.state):
        path = route.path.format(project="support", run=RUN_ID, sha256="0" * 64, token="x")
        for method in route.methods - {"HEAD"}:
            if path.startswith("/sign-"):
                continue  # covered by test_sign_in.py
            without = httpx.request(method, server.root + path)
            if without.status_code == 200:
                open_addresses.add(path)
                continue
            assert code(without) == (401, "no-token"), path
            given = httpx.request(method, server.root + path, headers={"Authorization": f"Bearer {scoped}"})
            readable = path in ("/api/projects", "/api/openapi.json", "/metrics")
            readable = readable or (method == "GET" and path.endswith("/labels/lines"))
            assert given.status_code == (200 if readable else 403), path
    assert open_addresses == {"/health"}


def test_bodies_that_are_cut_or_too_large_or_bombs_change_nothing(client, server):
    base, lines = f"/api/uploads/{RUN_ID}", row(1) * 50
    assert client.put(f"{base}/record", content=RECORD).json() == {"changed": True}
    query = {"start": 0, "generation": 1}
    deep = row(1)[:-2] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    packed = gzip.compress(lines)
    gz = {"content-encoding": "gzip"}
    answers = [
        (client.post(f"{base}/rows", params=query, content=packed[:-20], headers=gz), (400, "bad-request")),
        (client.post(f"{base}/rows", params=query, content=lines, headers=gz), (400, "bad-request")),
        (
            client.post(f"{base}/rows", params=query, content=b"x", headers={"content-encoding": "br"}),
            (415, "unknown-encoding"),
        ),
        (client.post(f"{base}/rows", params=query, content=lines[:-9]), (422, "refused")),
        (client.post(f"{base}/rows", params={**query, "start": -1}, content=lines), (400, "bad-request")),
        (client.post(f"{base}/rows", params={**query, "start": 2**70}, content=lines), (400, "bad-request")),
        (client.post(f"{base}/rows", params={**query, "start": 7}, content=lines), (409, "conflict")),
        (client.post(f"{base}/rows", params={**query, "more": 1}, content=lines), (400, "bad-request")),
        (client.post(f"{base}/files", content=gzip.compress(b"[" * (70 << 20)), headers=gz), (413, "too-large")),
        (client.post(f"{base}/files", content=b"[" * 100_000), (400, "bad-request")),
        (client.post(f"{base}/rows", params=query, content=packed + b"more", headers=gz), (400, "bad-request")),
        (client.post(f"{base}/rows", params=query, content=packed + packed, headers=gz), (400, "bad-request")),
        (client.post(f"{base}/rows", params=query, content=deep), (422, "refused")),
        (client.post("/api/tokens", content=b'{"name": "x", "scopes": ["root"]}'), (400, "bad-request")),
        (client.put("/api/uploads/..%2F..%2Fetc/record", content=RECORD), (404, "no-such-address")),
        (client.put("/api/uploads/x%00y/record", content=RECORD), (422, "refused")),
        (client.get("/api/uploads"), (404, "no-such-address")),
        (client.patch(base), (405, "wrong-method")),
    ]
    for number, (response, expected) in enumerate(answers):
        assert code(response) == expected, (number, response.text)
    assert client.get(base).json()["size"] == 0
    assert client.post(f"{base}/rows", params=query, content=packed, headers=gz).json()["size"] == len(lines)
    assert client.delete(base).json() == {"changed": True}


def test_tokens_are_made_and_revoked_by_admins_of_the_project(client, server):
    made = client.post("/api/tokens", content=b'{"name": "ci", "scopes": ["push"], "days": 1}').json()
    with httpx.Client(base_url=server.address, headers={"Authorization": f"bearer {made['text']}"}) as other:
        assert other.get(f"/api/uploads/{RUN_ID}").status_code == 200
        assert code(other.get("/api/tokens")) == (403, "missing-scope")
        listed = client.get("/api/tokens")
        assert made["token"] in listed.json()["tokens"]
        assert made["text"] not in listed.text
        assert client.delete(f"/api/tokens/{made['token']['id']}").json() == {"revoked": True}
        assert code(other.get(f"/api/uploads/{RUN_ID}")) == (401, "wrong-token")
    outside = server.state.tokens.create("all", None, ("admin",), None, "test")[1]
    assert code(client.delete(f"/api/tokens/{outside.id}")) == (404, "no-such-token")
    actions = [line["action"] for line in client.get("/api/audit", params={"limit": 2}).json()["lines"]]
    assert actions == ["token revoked", "token created"]


def test_lines_of_no_project_are_for_admins_of_all_projects(server, client):
    text, everywhere = server.state.tokens.create("all", None, ("admin",), None, "test")

    def details(**headers):
        return [line["detail"] for line in client.get("/api/audit", headers=headers).json()["lines"]]

    assert not [one for one in details() if everywhere.id in one or "all" in one]
    assert [one for one in details(Authorization=f"Bearer {text}") if everywhere.id in one or "all" in one]


def test_an_address_that_tries_tokens_is_locked_out(tmp_path):
    with team_server_in(tmp_path) as server:
        good = {"Authorization": f"Bearer {server.token()}"}
        wrong = {"Authorization": "Bearer agentv_guess"}
        with httpx.Client(base_url=server.address) as client:
            answers = [client.get(f"/api/uploads/{RUN_ID}", headers=wrong) for _ in range(21)]
            assert [one.status_code for one in answers] == [401] * 20 + [429]
            locked = client.get(f"/api/uploads/{RUN_ID}", headers=good)
        assert code(locked) == (429, "too-many-attempts")
        assert 0 < int(locked.headers["retry-after"]) <= 61


def test_a_database_that_is_away_gives_503_and_a_time_to_try_again(server, client, monkeypatch):
    class Away:
        def reading(self):
            raise DatabaseUnavailableError("cannot reach the database: password=hunter2")

        transaction = reading

    assert client.get("/../../health").json()["status"] == "ok"
    monkeypatch.setattr(server.state, "database", Away())
    monkeypatch.setattr(server.state, "tokens", TeamState(Away()).tokens)
    for path in (f"{server.address}/api/uploads/{RUN_ID}", f"{server.root}/health", f"{server.root}/metrics"):
        answer = client.get(path)
        assert code(answer) == (503, "database-unavailable")
        assert "hunter2" not in answer.text
        assert answer.headers["retry-after"] == "3"
    monkeypatch.undo()
    assert 'agentv_answers_total{status="503"} 3\n' in client.get(f"{server.root}/metrics").text


def test_people_add_labels_of_their_own_and_those_who_push_add_any(server, client):
    with httpx.Client(base_url=server.address) as other:
        text, token = server.state.tokens.create("ana", "support", ("label", "read"), None, "test")
        other.headers["Authorization"] = f"Bearer {text}"
        own = label(token.actor)
        first = other.post("/api/labels/lines", content=own + b"\n" + own + b"\n")
        assert (first.status_code, first.json()) == (200, {"added": 1})
        assert other.post("/api/labels/lines", content=own).json() == {"added": 0}
        assert code(other.post("/api/labels/lines", content=label("ben"))) == (403, "other-person")
        refused = [
            label("ben", note="x" * (64 << 10)),
            label("ben", suite="s" * 300),
            label("be\0n"),
            b"[" * 100_000,
            b'{"case": "x"}',
        ]
        for number, line in enumerate(refused):
            answer = client.post("/api/labels/lines", content=label("ben") + b"\n" + line)
            assert code(answer) == (422, "refused"), number
        assert client.post("/api/labels/lines", content=label("ben")).json() == {"added": 1}
        found = other.get("/api/labels/lines").json()["labels"]
        assert [one["person"] for one in found] == [token.actor, "ben"], "a batch with a wrong line added nothing"
        reader = {"Authorization": f"Bearer {server.token('read')}"}
        assert code(other.post("/api/labels/lines", content=own, headers=reader)) == (403, "missing-scope")


def label(person, **other):
    hashes, at = ("0" * 64, "1" * 64), "2026-11-21T14:03:22Z"
    given = Label("refund", *hashes, "pass", person, at, "support", "helpful", RUN_ID, "gpt", "2" * 64, True)
    return label_line(replace(given, **other))


def test_a_run_with_a_name_that_could_not_be_given_is_not_stored(client):
    for name in ("x" * 201, ["x"], {"x": 1}, 7):
        record = json.dumps({**json.loads(RECORD), "name": name}).encode()
        answer = client.put(f"api/uploads/{RUN_ID}/record", content=record)
        assert code(answer) == (422, "refused"), name
        assert "200 characters at most" in answer.text
    for name in ("\x1b[31mred", "two\nlines", "\u202etxt.exe"):
        record = json.dumps({**json.loads(RECORD), "name": name}).encode()
        assert code(client.put(f"api/uploads/{RUN_ID}/record", content=record)) == (422, "refused"), name


SECOND_ID = "20261122T140322Z-0001"


def test_only_who_began_a_run_and_admins_change_it(server):
    """An outsider with their own push token: every change is refused and has no effect."""
    own, other, admin = (server.token(scope) for scope in ("push", "push", "admin"))

    def sent(token, method, what, content=b"", **query):
        address = f"{server.address}/api/uploads/{SECOND_ID}{what}"
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, address, params=query, content=content, headers=headers)

    def rows(token, lines, **query):
        return sent(token, "POST", "/rows", lines, **query)

    record = json.dumps({"schema_version": 1, "run_id": SECOND_ID, "started": "2026"}).encode()
    renamed = json.dumps({"schema_version": 1, "run_id": SECOND_ID, "started": "2026", "name": "x"}).encode()
    summary = json.dumps({"run_id": SECOND_ID}).encode()
    failed, passed = row(1, "failed"), row(1, "passed!")
    assert sent(own, "PUT", "/record", record, writing=True).status_code == 200
    assert sent(other, "PUT", "/record", record, writing=True).json()["error"]["code"] == "other-token"
    assert rows(own, failed, start=0, generation=1).status_code == 200
    assert sent(own, "PUT", "/summary", summary).status_code == 200
    empty = sha256(b"").hexdigest()
    sent_content = httpx.put(
        f"{server.address}/api/contents/{empty}", headers={"Authorization": f"Bearer {own}"}, content=b""
    )
    assert sent_content.status_code == 200
    files = json.dumps({"artifacts/x/y": empty}).encode()
    before = sent(own, "GET", "").json()
    for attempt in (
        sent(other, "PUT", "/record", renamed),
        sent(other, "PUT", "/record", record, writing=True),
        rows(other, passed, start=0, generation=1, replace=True),
        rows(other, passed, start=len(failed), generation=1),
        rows(other, b"", start=0, generation=1, replace=True),
        sent(other, "PUT", "/summary"),
        sent(other, "PUT", "/summary", summary, writing=True),
        sent(other, "POST", "/files", files),
    ):
        assert code(attempt) == (403, "other-token")
        assert "push it with that token, or with one that has the scope 'admin'" in attempt.text
    assert code(sent(other, "DELETE", "")) == (403, "missing-scope")
    assert sent(own, "GET", "").json() == before
    # anybody may resend what the server already has
    assert sent(other, "PUT", "/record", record).json() == {"changed": False}
    assert rows(admin, passed, start=0, generation=1, replace=True).json()["generation"] == 2
    assert rows(own, failed, start=0, generation=2, replace=True).json()["generation"] == 3
    assert sent(admin, "DELETE", "").json() == {"changed": True}


@pytest.mark.parametrize("path", ["/", "/health", "/projects/support/api/tokens"])
@pytest.mark.parametrize("named", [None, "evil.example.org"])
def test_a_request_with_two_lengths_closes_the_connection(server, path, named):
    """A proxy may use the other length, and treat a part of this body as the next request."""
    host, port = server.root.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {named or f'{host}:{port}'}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
            f"0\r\n\r\nGET /health HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        )
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "path",
    [
        "artifacts/x/\n",
        "artifacts/\x1b[2J/x",
        "artifacts/x/\u202etxt.exe",
        "artifacts/x/\x7f",
        "artifacts/" + "d/" * 500,
        "artifacts/" + "ü" * 120 + "/" + "ü" * 120 + "/" + "ü" * 120 + "/" + "ü" * 120 + "/" + "ü" * 120,
        "artifacts/" + "x" * 251,
    ],
)
def test_names_of_artifacts_are_bounded_and_printable(client, path):
    assert client.put(f"/api/uploads/{RUN_ID}/record", content=RECORD).status_code == 200
    answer = client.post(f"/api/uploads/{RUN_ID}/files", content=json.dumps({path: "0" * 64}).encode())
    assert code(answer) == (422, "refused")
    assert answer.json()["error"]["message"].isprintable()
    assert client.delete(f"/api/uploads/{RUN_ID}").json() == {"changed": True}


def test_a_client_that_goes_away_is_no_error_of_the_server(server):
    assert endpoints.failed(server.state, ClientDisconnect()).status_code == 400


class Person(httpx.Client):
    """A browser signed in with a token of this name."""

    def __init__(self, server, name, *scopes):
        super().__init__(base_url=server.root, headers={"Origin": server.root})
        text, token = server.state.tokens.create(name, "support", scopes, None, "test")
        self.actor = token.actor
        assert self.post("/sign-in/token", json={"token": text}).status_code == 200
        page = self.get("/projects/support/").text
        self.token = re.search(r'name="agentv-token" content="(\w+)"', page)[1]

    def queue(self, run):
        return self.get("/projects/support/api/labels/queue", params={"run": run})

    def ratings(self, run):
        found = self.get(f"/projects/support/api/runs/{run}/ratings").json()["ratings"]
        return {one["person"]: (one["thumb"], one["comment"], one["mine"]) for one in found}

    def rate(self, run, cell, **said):
        body = {name: cell[name] for name in ("key", "output_sha256")}
        headers = {"X-Agentv-Token": self.token}
        return self.post(f"/projects/support/api/runs/{run}/ratings", json={**body, **said}, headers=headers)

    def label(self, run, verdict, queued, token=None):
        body = {"run": run, "id": queued["answer"]["id"], "verdict": verdict}
        headers = {"X-Agentv-Token": token or self.token}
        return self.post("/projects/support/api/labels", json=body, headers=headers)


@contextmanager
def people_of(tmp_path, run):
    """Return a server with a run, a connection that may push and pull, its replica, and ana, ben, and the read-only
    eve."""
    with ExitStack() as closing:
        server = closing.enter_context(team_server_in(tmp_path / "server"))
        connection = closing.enter_context(Connection(Remote.of(server.address, server.token("push", "read"))))
        copies = closing.enter_context(copying(server.state, server.data, pytest.fail))
        RunPush(run, connection, redactor_of({}, "")).push()
        until(lambda: is_complete(copies.root("support") / ".agentv/results" / run.name))
        people = [
            Person(server, name, *scopes)
            for name, *scopes in (("ana", "read", "label"), ("ben", "read", "label"), ("eve", "read"))
        ]
        for one in people:
            closing.callback(one.close)
        yield server, connection, copies, people


def test_two_people_rate_one_answer_at_once_and_each_sees_the_other(tmp_path):
    laptop, home = tmp_path / "laptop", tmp_path / "home"
    laptop.mkdir()
    run = "20261121T140322Z-aaaa"
    record = {"suites": [{"name": "refunds"}]}
    write_run(laptop / ".agentv/results" / run, [finished(trial=trial("c0")), finished(trial=trial("c1"))], record)
    with people_of(tmp_path, laptop / ".agentv/results" / run) as (_, connection, _, (ana, ben, eve)):
        cell = eve.get(f"/projects/support/api/runs/{run}/grid").json()["rows"][0]["cells"][0]
        with ThreadPoolExecutor(4) as together:
            said = [(one, number) for number in range(4) for one in (ana, ben)]
            answers = list(together.map(lambda each: each[0].rate(run, cell, thumb="down", comment=f"{each[1]}"), said))
        assert {one.status_code for one in answers} == {200}
        ana.rate(run, cell, thumb="up", comment="fine")
        assert ben.rate(run, cell, comment="too long").status_code == 200
        mine, other = ("up", "fine"), ("", "too long")
        assert ana.ratings(run) == {ana.actor: (*mine, True), ben.actor: (*other, False)}
        assert ben.ratings(run) == {ana.actor: (*mine, False), ben.actor: (*other, True)}
        assert eve.ratings(run) == {ana.actor: (*mine, False), ben.actor: (*other, False)}
        assert eve.rate(run, cell, thumb="up").json()["error"]["code"] == "read-only"
        shown = [row["id"] for row in eve.get(f"/projects/support/api/runs/{run}/grid?show=rated").json()["rows"]]
        assert shown == ["c0"]
        pull_labels(home, connection)
        found = ratings_of_run(laptop / ".agentv/results" / run, LabelFiles(home))
        assert [sorted(one.note for one in given) for given in found.values()] == [["fine", "too long"]]


def test_two_people_label_one_answer_in_the_pages_and_a_laptop_pulls_both_labels(tmp_path):
    laptop, other = tmp_path / "laptop", tmp_path / "other"
    laptop.mkdir()
    run = judged_run(laptop, [True, False, True])
    with people_of(tmp_path, laptop / ".agentv/results" / run) as (server, connection, copies, (*people, eve)):
        ana, ben = people
        seen = [one.queue(run).json() for one in people]
        assert seen[0]["answer"]["id"] == seen[1]["answer"]["id"]
        assert seen[0]["person"] == ana.actor != seen[1]["person"]
        assert eve.queue(run).status_code == 403
        assert eve.label(run, "pass", seen[0]).json()["error"]["code"] == "read-only"
        assert ana.label(run, "pass", seen[0], token=ben.token).json()["error"]["code"] == "wrong-token"
        saved = [ana.label(run, "pass", seen[0]), ben.label(run, "fail", seen[1])]
        assert [one.json()["next"]["left"] for one in saved] == [2, 2]
        wanted = [(ana.actor, "pass"), (ben.actor, "fail")]
        assert pull_labels(other, connection)[0] == 2
        assert pull_labels(other, connection)[0] == 0
        until(lambda: len(LabelFiles(copies.root("support")).read()) == 2)
        for root in (other, copies.root("support")):
            labels = LabelFiles(root).read()
            assert [(one.person, one.verdict) for one in labels] == wanted
            assert len({one.item for one in labels}) == 1
        (judge,) = eve.get("/projects/support/api/judges").json()["judges"]
        assert judge["people"]["answers"] == 1, "both said something of the same answer"
        added = [one.actor for one in audit_lines(server.state.database, "support") if one.action == "labels added"]
        assert added == [ben.actor, ana.actor]
