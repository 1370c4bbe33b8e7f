from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from msgspec.structs import replace

from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.team.connection import Connection, PushError
from agentv.extensions.team.pushing import pull_labels, push_labels, redactor_of
from agentv.extensions.team.remote import Remote
from agentv.model.run.labels import Label
from agentv.store.labels import label_line, labels_file
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
                transaction.run(
                    "INSERT INTO labels (project, id, number, suite, person, time, actor, line) "
                    "VALUES ('support', 'x', 1, 's', 'ana', :time, 'ana', :line)",
                    time=time,
                    line=label_line(wrong),
                )
            assert pull_labels(tmp_path / "other", connection) == (0, ())


def many(count, person="ana", day="2026-11-21"):
    return [replace(ANA, case=f"case-{number}", person=person, time=f"{day}T14:03:22Z") for number in range(count)]


def labels_on(remote, directory):
    with Connection(remote) as connection:
        pull_labels(directory, connection)
    return sorted(map(label_line, LabelFiles(directory).read()))


def sent_by(root, remote):
    """How many labels a push adds, and how many bytes it sends."""
    with Connection(remote) as connection:
        return push_labels(root, connection, NOBODY), connection.sent


def test_a_push_adds_only_labels_that_the_server_lacks(remote, tmp_path):
    root = tmp_path / "root"
    LabelFiles(root).add([*many(400), *many(400, "ben"), *many(400, day="2026-11-22")])
    assert sent_by(root, remote)[0] == 1200
    assert sent_by(root, remote)[0] == 0
    LabelFiles(root).add([replace(ANA, case="new", person="ben")])
    assert sent_by(root, remote)[0] == 1
    with Connection(remote) as connection:  # the server has a label that the project lacks
        connection.send("POST", "labels/lines", {}, label_line(replace(ANA, case="there")), dict)
    assert sent_by(root, remote)[0] == 0


def test_a_file_that_was_edited_and_a_server_that_was_lost_end_with_the_same_labels(tmp_path):
    root = tmp_path / "root"
    LabelFiles(root).add([*many(30), BEN])
    file = labels_file(root, "s")
    lines = file.read_bytes().splitlines(keepends=True)
    with team_server_in(tmp_path / "first") as server:
        remote = Remote.of(server.address, server.token())
        assert sent_by(root, remote)[0] == 31
        file.write_bytes(b"".join(reversed(lines[5:])) + lines[7])  # removed, reordered, and one twice
        assert sent_by(root, remote)[0] == 0
        LabelFiles(root).add([replace(BEN, time="2026-11-23T08:00:00Z")])
        assert sent_by(root, remote)[0] == 1
        everything = labels_on(remote, tmp_path / "copy")
        assert len(everything) == 32
        assert labels_on(remote, root) == sorted([*everything, lines[7].strip()]), "the file keeps its line twice"
    with team_server_in(tmp_path / "second") as server:
        rebuilt = Remote.of(server.address, server.token())
        assert sent_by(root, rebuilt)[0] == 32
        assert labels_on(rebuilt, tmp_path / "other") == everything


def test_pushes_at_once_and_one_that_was_cut_add_each_label_once(remote, tmp_path):
    roots = [tmp_path / name for name in "abc"]
    for number, root in enumerate(roots):
        LabelFiles(root).add(many(60)[number * 10 :])
    with ThreadPoolExecutor(3) as pool:
        assert sum(added for added, _ in pool.map(lambda root: sent_by(root, remote), roots)) == 60
    LabelFiles(roots[0]).add(replace(one, note="x" * 60_000) for one in many(60, "ben"))  # 2 batches
    sending = []

    class Cut(httpx.HTTPTransport):
        def handle_request(self, request):
            if request.url.path.endswith("/lines"):
                sending.append(request)
                if len(sending) == 2:
                    raise KeyboardInterrupt
            return super().handle_request(request)

    with Connection(remote, transport=Cut()) as connection, pytest.raises(KeyboardInterrupt):
        push_labels(roots[0], connection, NOBODY)
    added, _ = sent_by(roots[0], remote)
    assert 0 < added < 60
    assert len(labels_on(remote, tmp_path / "copy")) == 120
