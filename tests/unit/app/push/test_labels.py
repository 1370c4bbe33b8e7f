from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import msgspec
import pytest

from agentv.app.labels.keeping import LabelFiles
from agentv.app.push.connection import Connection, PushError
from agentv.app.push.labels import pull_labels, push_labels
from agentv.app.push.pushing import redactor_of
from agentv.app.push.remote import Remote
from agentv.model.run.labelled.labels import Label
from agentv.store.labels.label_files import label_line, labels_file, merge_labels
from doubles.team_servers import RUN_ID, team_server_in


@pytest.fixture
def remote(tmp_path):
    with team_server_in(tmp_path / "server") as server:
        yield Remote.of(server.address, server.token())


ANA = Label(
    "refund", "0" * 64, "1" * 64, "pass", "ana", "2026-11-21T14:03:22Z", "s", "a", RUN_ID, "gpt", "2" * 64, True
)
BEN = replace(ANA, person="ben", verdict="fail")
NOBODY = redactor_of({}, "")


def test_labels_of_two_machines_meet_and_no_line_is_lost(remote, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    later = replace(ANA, verdict="unsure", time="2026-11-22T08:00:00Z")
    LabelFiles(one).add([ANA, BEN])
    LabelFiles(two).add([later, BEN, replace(ANA, suite="t")])
    with Connection(remote) as connection:
        assert [push_labels(root, connection, NOBODY) for root in (one, two, one)] == [2, 2, 0]
        own = labels_file(one, "s")
        own.write_bytes(own.read_bytes() + b"<<<<<<< ours\n" + b'{"case": "torn')  # what only its owner can mend
        before = own.read_bytes()
        assert pull_labels(one, connection) == (2, (own, labels_file(one, "t")))
        assert own.read_bytes() == before + b"\n" + label_line(later) + b"\n"
        assert pull_labels(one, connection) == (0, ())
    with ThreadPoolExecutor(4) as pool, Connection(remote) as connection:
        list(pool.map(lambda _: pull_labels(two, connection), range(4)))
    assert LabelFiles(two).read(["s"]) == [later, BEN, ANA]


def test_a_line_that_was_removed_or_written_otherwise_is_merged_by_what_it_says(tmp_path):
    path = labels_file(tmp_path, "s")
    assert merge_labels(path, [ANA, ANA, BEN]) == 2
    lines = path.read_bytes().splitlines()
    path.write_bytes(msgspec.json.format(lines[1], indent=0).replace(b"\n", b" "))  # another form of it, and no end
    assert merge_labels(path, [ANA, BEN]) == 1
    assert LabelFiles(tmp_path).read() == [BEN, ANA]


def test_secrets_and_strangers_are_refused(remote, tmp_path):
    secret = "hunter2-but-much-longer-93ac"
    LabelFiles(tmp_path).add([replace(ANA, note=f"the key is {secret}")])
    with Connection(remote) as connection:
        with pytest.raises(PushError, match=r"s.jsonl: a label contains a secret") as raised:
            push_labels(tmp_path, connection, redactor_of({"A_KEY": secret}, ""))
        assert secret not in str(raised.value)
        assert pull_labels(tmp_path / "other", connection) == (0, ())
    for answer, message in (
        (b'{"labels": [{"case": 1}], "cursor": 1, "more": false}', "no label"),
        (b'{"labels": [], "cursor": 0, "more": true}', "again and again"),
        (b'{"labels": [], "cursor": 1, "more": true}', "again and again"),
    ):
        transport = httpx.MockTransport(lambda _, answer=answer: httpx.Response(200, content=answer))
        with Connection(remote, transport=transport) as connection, pytest.raises(PushError, match=message):
            pull_labels(tmp_path, connection)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("9999-12-31T23:59:59Z", "more than a day later than now"),
        ("1999-12-31T23:59:59Z", "before the year 2000"),
        ("2026-13-99T00:00:00Z", "no time"),
    ],
)
def test_a_label_with_an_impossible_time_is_refused_and_pulled_by_nobody(tmp_path, time, why):
    wrong = replace(ANA, time=time)
    with team_server_in(tmp_path / "server") as server:
        remote = Remote.of(server.address, server.token())
        headers = {"Authorization": f"Bearer {remote.token}"}
        lines = label_line(BEN) + b"\n" + label_line(wrong)
        answer = httpx.post(f"{server.address}/api/labels/lines", content=lines, headers=headers)
        assert (answer.status_code, why in answer.text, time in answer.text) == (422, True, True)
        LabelFiles(tmp_path).add([BEN, wrong])
        with Connection(remote) as connection:
            with pytest.raises(PushError, match=f"s.jsonl: the time '{time}' of a label of ana is {why}"):
                push_labels(tmp_path, connection, NOBODY)
            with server.state.database.transaction() as transaction:  # as an earlier version took it
                line, columns = (
                    label_line(wrong),
                    ("project", "id", "number", "suite", "person", "time", "actor", "line"),
                )
                transaction.insert("labels", columns, [("support", "x", 1, "s", "ana", time, "ana", line)])
            assert pull_labels(tmp_path / "other", connection) == (0, ())
