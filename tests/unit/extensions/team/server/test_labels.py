"""Labels that two people make in the pages of a team's server, up to the files of the project on a laptop."""

from __future__ import annotations

import re
from contextlib import ExitStack

import httpx
import pytest

from agentv.extensions.labels.keeping import LabelFiles
from agentv.extensions.team.push.connection import Connection
from agentv.extensions.team.push.labels import pull_labels
from agentv.extensions.team.push.pushing import RunPush, redactor_of
from agentv.extensions.team.push.remote import Remote
from agentv.extensions.team.server.serving import copying
from agentv.extensions.team.store.audit import audit_lines
from doubles.judged_runs import judged_run
from doubles.team_servers import is_complete, team_server_in, wait_for


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

    def label(self, run, verdict, queued, token=None):
        body = {"run": run, "id": queued["answer"]["id"], "verdict": verdict}
        headers = {"X-Agentv-Token": token or self.token}
        return self.post("/projects/support/api/labels", json=body, headers=headers)


def test_two_people_label_one_answer_in_the_pages_and_a_laptop_pulls_both_labels(tmp_path):
    laptop, other = tmp_path / "laptop", tmp_path / "other"
    laptop.mkdir()
    run = judged_run(laptop, [True, False, True])
    with ExitStack() as closing:
        server = closing.enter_context(team_server_in(tmp_path / "server"))
        connection = closing.enter_context(Connection(Remote.of(server.address, server.token("push", "read"))))
        copies = closing.enter_context(copying(server.state, server.data, pytest.fail))
        RunPush(laptop / ".agentv/results" / run, connection, redactor_of({}, "")).push()
        wait_for(lambda: is_complete(copies.root("support") / ".agentv/results" / run))
        people = [Person(server, name, "read", "label") for name in ("ana", "ben")]
        eve = Person(server, "eve", "read")
        for one in (*people, eve):
            closing.callback(one.close)
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
        wait_for(lambda: len(LabelFiles(copies.root("support")).read()) == 2)
        for root in (other, copies.root("support")):
            labels = LabelFiles(root).read()
            assert [(one.person, one.verdict) for one in labels] == wanted
            assert len({one.item for one in labels}) == 1
        (judge,) = eve.get("/projects/support/api/judges").json()["judges"]
        assert judge["people"]["answers"] == 1, "both said something of the same answer"
        added = [one.actor for one in audit_lines(server.state.database, "support") if one.action == "labels added"]
        assert added == [ben.actor, ana.actor]
