"""Labels that two people make in the pages of a team's server, up to the files of the project on a laptop."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.labels.ratings import ratings_of_run
from agentv.extensions.team.connection import Connection
from agentv.extensions.team.database import audit_lines
from agentv.extensions.team.pushing import RunPush, pull_labels, redactor_of
from agentv.extensions.team.remote import Remote
from agentv.extensions.team.serving import copying
from doubles.judged_runs import judged_run
from doubles.stored_runs import write_run
from doubles.team_servers import is_complete, team_server_in
from doubles.trials import finished, trial
from doubles.waiting import until


class Person(httpx.Client):
    """A browser in which somebody signed in with a token of this name."""

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
    """A server with a run, a connection to push and pull, the server's copies, and ana, ben, and eve, who may only read."""
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
