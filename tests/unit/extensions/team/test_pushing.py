import json
import ssl
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from msgspec.structs import replace

from agentv.errors import StoreError, UsageError
from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.team import pushing
from agentv.extensions.team.connection import Connection, PushError
from agentv.extensions.team.pushing import RunPush, pull_labels, push_labels, redactor_of
from agentv.extensions.team.remote import Remote, is_exposed
from agentv.extensions.team.replica import Replica
from agentv.extensions.team.uploaded import RunName
from agentv.model.run.labels import Label
from agentv.store.journal.verification import check_rows
from agentv.store.labels import label_line, labels_file
from doubles.http_server import HttpServer
from doubles.team_servers import RUN_ID, row, team_server_in, write_rows, write_run


@pytest.fixture
def remote(server):
    found = Remote.of(server.address, server.token())
    yield found
    server.state.uploads.delete(RunName("support", RUN_ID, "test"))


def pushed(run, remote, env=None, **options):
    with Connection(remote, **options) as requests:
        return RunPush(run, requests, redactor_of(env or {}, remote.token)).push(), requests.sent


def copy_of(server, tmp_path):
    replica = Replica(server.state.database, tmp_path / "copies")
    replica.update()
    replica.close()
    return tmp_path / "copies/support/.agentv/results" / RUN_ID


def files_in(run):
    names = ("run.json", "index.jsonl", "summary.json", "artifacts")
    return {
        str(path.relative_to(run)): path.read_bytes()
        for name in names
        for path in [run / name, *(run / name).rglob("*")]
        if path.is_file()
    }


def test_a_new_run_counts_as_running_until_all_of_its_rows_are_sent(server, remote, tmp_path, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH", 200)
    run, name, going = write_run(tmp_path, *map(row, range(40))), RunName("support", RUN_ID, "test"), []

    def progress(**_):
        going.append(server.state.uploads.state(name).writing)

    with Connection(remote) as requests:
        RunPush(run, requests, redactor_of({}, remote.token), progress).push()
    assert len(going) > 1
    assert set(going) == {True}
    assert not server.state.uploads.state(name).writing


def test_a_run_reaches_the_server_whole_and_the_same_again_sends_nothing(server, remote, tmp_path, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH", 200)
    run = write_run(tmp_path, *(row(number, "é" * number) for number in range(40)))
    (run / "artifacts" / "trial").mkdir(parents=True)
    (run / "artifacts" / "trial" / "changes.diff").write_bytes(b"\x00\xff" * 1000)
    (run / "artifacts" / "trial" / "link").symlink_to("/etc/passwd")
    (run / "summary.json").write_text(json.dumps({"run_id": RUN_ID}))
    first, _ = pushed(run, remote)
    assert (first.rows, first.artifacts, first.changed) == (40, 1, True)
    shown, own = files_in(copy_of(server, tmp_path)), files_in(run)
    assert shown.keys() == own.keys() - {"artifacts/trial/link"}
    assert all(shown[name] == own[name] for name in shown if name != "summary.json")
    again, sent = pushed(run, remote)
    assert (again.rows, again.changed) == (0, False)
    assert sent < 500  # the list of artifacts


def test_a_run_that_cannot_be_copied_keeps_no_other_from_it(server, remote, tmp_path):
    name = RUN_ID.replace("20261121", "20261122")
    pushed(write_run(tmp_path, row(1)), remote)
    pushed(write_run(tmp_path, row(1), run_id=name), remote)
    in_the_way = tmp_path / "copies/support/.agentv/results" / name
    in_the_way.parent.mkdir(parents=True)
    in_the_way.touch()
    replica = Replica(server.state.database, tmp_path / "copies")
    try:
        with pytest.raises(StoreError, match=f"cannot write .*{name}: "):
            replica.update()
    finally:
        replica.close()
        server.state.uploads.delete(RunName("support", name, "test"))
    assert (in_the_way.with_name(RUN_ID) / "index.jsonl").read_bytes() == row(1)


def test_a_file_that_grew_or_was_rewritten_is_followed(server, remote, tmp_path, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH", 200)
    rows = [row(number) for number in range(20)]
    run = write_run(tmp_path, *rows, b'{"test_id": "half of a r')
    assert pushed(run, remote)[0].rows == 20
    for now, sent in (
        ([*rows, row(20)], 1),
        ([*rows[:15], row(17, "again")], 16),  # a rerun moved rows away
        (rows[:12], 12),
        ([], 0),
    ):
        write_rows(run, *now)
        found, _ = pushed(run, remote)
        assert found.rows == sent
        copy = copy_of(server, tmp_path)
        assert (copy / "index.jsonl").read_bytes() == b"".join(now)
        check_rows(copy)


def test_rows_that_were_edited_are_not_pushed(remote, tmp_path):
    run = write_run(tmp_path, row(1), row(2))
    index = run / "index.jsonl"
    index.write_bytes(index.read_bytes().replace(b'"output": "x"', b'"output": "y"', 1))
    with pytest.raises(StoreError, match=r"index.jsonl:1: this row was changed after it was written"):
        pushed(run, remote)


def test_pushes_at_once_give_the_file(server, remote, tmp_path, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH", 300)
    run = write_run(tmp_path, *(row(number) for number in range(60)))
    with ThreadPoolExecutor(3) as pool:
        assert len(list(pool.map(lambda _: pushed(run, remote), range(3)))) == 3
    assert (copy_of(server, tmp_path) / "index.jsonl").read_bytes() == (run / "index.jsonl").read_bytes()


def test_a_push_that_was_cut_goes_on_where_it_stopped(server, remote, tmp_path, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH", 200)
    run = write_run(tmp_path, *(row(number) for number in range(40)))

    class Cut(httpx.HTTPTransport):
        left = 8

        def handle_request(self, request):
            self.left -= 1
            if self.left < 0:
                raise httpx.ReadError("connection reset by peer")
            return super().handle_request(request)

    waited = []
    with pytest.raises(PushError, match=r"cannot reach http://127.*connection reset by peer"):
        pushed(run, remote, transport=Cut(), sleep=waited.append)
    assert waited == [0.5, 1, 2, 4, 8]
    before = server.state.uploads.state(RunName("support", RUN_ID, "test")).size
    assert before > 0
    rest, _ = pushed(run, remote)
    assert 0 < rest.rows < 40
    assert (copy_of(server, tmp_path) / "index.jsonl").read_bytes() == (run / "index.jsonl").read_bytes()


def test_a_server_that_is_away_for_a_moment_is_tried_again(server, remote, tmp_path):
    class Restarting(httpx.HTTPTransport):
        left = 2

        def handle_request(self, request):
            self.left -= 1
            return (
                httpx.Response(503, headers={"retry-after": "3"}) if self.left >= 0 else super().handle_request(request)
            )

    waited = []
    run = write_run(tmp_path, row(1))
    assert pushed(run, remote, transport=Restarting(), sleep=waited.append)[0].rows == 1
    assert waited == [3, 6]


def test_what_must_not_leave_stays(server, remote, tmp_path):
    secret = "hunter2-but-much-longer-93ac"
    run = write_run(tmp_path, row(1, f"the key is {secret}"))
    with pytest.raises(PushError, match="contains a secret of this environment") as raised:
        pushed(run, remote, {"SUPPORT_API_KEY": secret})
    assert secret not in str(raised.value)
    assert server.state.uploads.state(RunName("support", RUN_ID, "test")).size == 0


def test_refusals_are_said_plainly_and_never_show_the_token(server, remote, tmp_path):
    run, other = write_run(tmp_path, row(1)), f"{server.root}/projects/other"
    wrong = {
        "does not know this token; check AGENTV_TOKEN, or make": Remote(remote.address, "agentv_wrong"),
        "you have no access to the project 'other'": Remote(other, remote.token),
        "this needs the scope 'push'": Remote(remote.address, server.token("read")),
        "no project 'other'": Remote(other, server.token("push", project=None)),
        "nothing at this address": Remote(f"{server.root}/x/projects/support", remote.token),
    }
    for message, one in wrong.items():
        with pytest.raises(PushError, match=message) as raised:
            pushed(run, one)
        assert one.token not in str(raised.value)
    write_rows(run, row(1), b"{}\n")
    with pytest.raises(PushError, match="not a row of a run"):
        pushed(run, remote)
    (run / "run.json").write_text("{}")
    with pytest.raises(StoreError, match="it has no run_id"):
        pushed(run, remote)


def test_certificates_and_strangers_are_named(remote, tmp_path):
    run = write_run(tmp_path, row(1))

    def untrusted(request):
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_message = "self-signed certificate"
        raise httpx.ConnectError("TLS") from error

    with pytest.raises(PushError, match=r"certificate is not valid: self-signed certificate; .*SSL_CERT_FILE"):
        pushed(run, remote, transport=httpx.MockTransport(untrusted))
    for page in (b"<html>", b"[]"):
        answer = httpx.MockTransport(lambda request, page=page: httpx.Response(200, content=page))
        with pytest.raises(PushError, match="not an agentv server"):
            pushed(run, remote, transport=answer)


def test_a_server_that_always_has_other_rows_ends_the_push(remote, tmp_path):
    def claiming(request):
        if request.method == "GET":
            return httpx.Response(200, json={"generation": 0, "size": 7, "files": 0})
        return httpx.Response(409, json={"error": {"message": "others came first"}})

    with pytest.raises(PushError, match="other pushes of this run always come first"):
        pushed(write_run(tmp_path, row(1)), remote, transport=httpx.MockTransport(claiming))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_other_server_gets_the_token_or_a_row(remote, tmp_path, status):
    with (
        HttpServer(lambda _: (200, {}, b"")) as other,
        HttpServer(lambda _: (status, {"Location": other.url}, b"")) as first,
    ):
        own = Remote.of(f"{first.url}/projects/support", remote.token)
        with pytest.raises(PushError, match=f"it redirects to {other.url}") as raised:
            pushed(write_run(tmp_path, row(1)), own)
        with pytest.raises(PushError, match=f"it redirects to {other.url}"), Connection(own) as connection:
            pull_labels(tmp_path, connection)
    assert not raised.value.temporary
    assert [one.headers["Authorization"] for one in first.requests] == [f"Bearer {remote.token}"] * 2
    assert other.requests == []


def test_addresses_and_tokens_are_checked_before_anything_is_sent():
    good = "https://evals.example.org/projects/support"
    assert Remote.of(f" {good}/ ", "agentv_x\n") == Remote(good, "agentv_x")
    assert is_exposed(good.replace("https", "http"))
    assert not is_exposed("http://localhost:4290/projects/a")
    for address in (
        "",
        "evals.example.org",
        "ftp://h/projects/a",
        "https:///projects/a",
        "https://h/",
        "http://[x/projects/a",
    ):
        with pytest.raises(UsageError):
            Remote.of(address, "agentv_x")
    with pytest.raises(UsageError, match="contains a password") as raised:
        Remote.of("https://me:secret@h/projects/a", "agentv_x")
    assert "secret" not in str(raised.value)
    for token in ("", "  ", "two words", "agentv_é", "a\nb"):
        with pytest.raises(UsageError) as raised:
            Remote.of(good, token)
        assert not token.strip() or token not in str(raised.value)


def test_a_run_without_new_rows_is_said_to_go_on(server, remote, tmp_path):
    run = write_run(tmp_path, row(1))

    def pushed_at():
        with server.state.database.reading() as transaction:
            return transaction.rows("SELECT pushed FROM runs WHERE name = :run", run=RUN_ID)[0][0]

    with Connection(remote) as requests:
        push = RunPush(run, requests, redactor_of({}, remote.token))
        push.push(writing=True)
        with server.state.database.transaction() as transaction:
            transaction.run("UPDATE runs SET pushed = '2026-11-21T14:00:00.000Z' WHERE name = :run", run=RUN_ID)
        push.send_heartbeat()
        assert pushed_at() > "2026-11-21T14:00:00.000Z"
        push.push_new_rows()
        assert push.rows == 1
        server.state.uploads.delete(RunName("support", RUN_ID, "test"))  # an admin deletes it in between
        write_rows(run, row(1), row(2))
        push.push_new_rows()
        assert push.rows == 3
    assert server.state.uploads.state(RunName("support", RUN_ID, "test")).size == (run / "index.jsonl").stat().st_size


def test_artifacts_that_are_a_link_to_another_directory_stay(remote, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    (private / "key").write_bytes(b"x")
    run = write_run(tmp_path, row(1))
    (run / "artifacts").symlink_to(private, target_is_directory=True)
    assert pushed(run, remote)[0].artifacts == 0


@pytest.fixture
def lone_remote(tmp_path):
    with team_server_in(tmp_path / "server") as server:
        yield Remote.of(server.address, server.token())


ANA = Label(
    "refund", "0" * 64, "1" * 64, "pass", "ana", "2026-11-21T14:03:22Z", "s", "a", RUN_ID, "gpt", "2" * 64, True
)
BEN = replace(ANA, person="ben", verdict="fail")
NOBODY = redactor_of({}, "")


def test_labels_of_two_machines_meet_and_no_line_is_lost(lone_remote, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    later = replace(ANA, verdict="unsure", time="2026-11-22T08:00:00Z")
    LabelFiles(one).add([ANA, BEN])
    LabelFiles(two).add([later, BEN, replace(ANA, suite="t")])
    with Connection(lone_remote) as connection:
        assert [push_labels(root, connection, NOBODY) for root in (one, two, one)] == [2, 2, 0]
        own = labels_file(one, "s")
        own.write_bytes(own.read_bytes() + b"<<<<<<< ours\n" + b'{"case": "torn')  # only its owner can repair this
        before = own.read_bytes()
        assert pull_labels(one, connection) == (2, (own, labels_file(one, "t")))
        assert own.read_bytes() == before + b"\n" + label_line(later) + b"\n"
        assert pull_labels(one, connection) == (0, ())
    with ThreadPoolExecutor(4) as pool, Connection(lone_remote) as connection:
        list(pool.map(lambda _: pull_labels(two, connection), range(4)))
    assert LabelFiles(two).read(["s"]) == [later, BEN, ANA]


def test_secrets_and_strangers_are_refused(lone_remote, tmp_path):
    secret = "hunter2-but-much-longer-93ac"
    LabelFiles(tmp_path).add([replace(ANA, note=f"the key is {secret}")])
    with Connection(lone_remote) as connection:
        with pytest.raises(PushError, match=r"s.jsonl: a label contains a secret") as raised:
            push_labels(tmp_path, connection, redactor_of({"A_KEY": secret}, ""))
        assert secret not in str(raised.value)
        assert pull_labels(tmp_path / "other", connection) == (0, ())
    strange = httpx.MockTransport(lambda _: httpx.Response(200, content=b'{"labels": [{"case": 1}]}'))
    with Connection(lone_remote, transport=strange) as connection, pytest.raises(PushError, match="no label"):
        pull_labels(tmp_path / "other", connection)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("9999-12-31T23:59:59Z", "more than a day later than now"),
        ("1999-12-31T23:59:59Z", "before the year 2000"),
        ("2026-13-99T00:00:00Z", "no time"),
    ],
)
def test_a_label_with_an_impossible_time_is_refused(tmp_path, time, why):
    wrong = replace(ANA, time=time)
    with team_server_in(tmp_path / "server") as server:
        lone_remote = Remote.of(server.address, server.token())
        headers = {"Authorization": f"Bearer {lone_remote.token}"}
        lines = label_line(BEN) + b"\n" + label_line(wrong)
        answer = httpx.post(f"{server.address}/api/labels/lines", content=lines, headers=headers)
        assert (answer.status_code, why in answer.text, time in answer.text) == (422, True, True)
        LabelFiles(tmp_path).add([BEN, wrong])
        refusal = f"s.jsonl: the time '{time}' of a label of ana is {why}"
        with Connection(lone_remote) as connection, pytest.raises(PushError, match=refusal):
            push_labels(tmp_path, connection, NOBODY)


def many(count, person="ana", day="2026-11-21"):
    return [replace(ANA, case=f"case-{number}", person=person, time=f"{day}T14:03:22Z") for number in range(count)]


def labels_on(lone_remote, directory):
    with Connection(lone_remote) as connection:
        pull_labels(directory, connection)
    return sorted(map(label_line, LabelFiles(directory).read()))


def sent_by(root, lone_remote):
    """Return the number of labels added by a push, and of bytes sent."""
    with Connection(lone_remote) as connection:
        return push_labels(root, connection, NOBODY), connection.sent


def test_a_push_adds_only_labels_that_the_server_lacks(lone_remote, tmp_path):
    root = tmp_path / "root"
    LabelFiles(root).add([*many(400), *many(400, "ben"), *many(400, day="2026-11-22")])
    assert sent_by(root, lone_remote)[0] == 1200
    assert sent_by(root, lone_remote)[0] == 0
    LabelFiles(root).add([replace(ANA, case="new", person="ben")])
    assert sent_by(root, lone_remote)[0] == 1
    with Connection(lone_remote) as connection:  # the server has a label that the project does not
        connection.send("POST", "labels/lines", {}, label_line(replace(ANA, case="there")), dict)
    assert sent_by(root, lone_remote)[0] == 0


def test_a_file_that_was_edited_and_a_server_that_was_lost_end_with_the_same_labels(tmp_path):
    root = tmp_path / "root"
    LabelFiles(root).add([*many(30), BEN])
    file = labels_file(root, "s")
    lines = file.read_bytes().splitlines(keepends=True)
    with team_server_in(tmp_path / "first") as server:
        lone_remote = Remote.of(server.address, server.token())
        assert sent_by(root, lone_remote)[0] == 31
        file.write_bytes(b"".join(reversed(lines[5:])) + lines[7])  # lines removed, reordered, and one duplicated
        assert sent_by(root, lone_remote)[0] == 0
        LabelFiles(root).add([replace(BEN, time="2026-11-23T08:00:00Z")])
        assert sent_by(root, lone_remote)[0] == 1
        everything = labels_on(lone_remote, tmp_path / "copy")
        assert len(everything) == 32
        assert labels_on(lone_remote, root) == sorted([*everything, lines[7].strip()]), "the file keeps its line twice"
    with team_server_in(tmp_path / "second") as server:
        rebuilt = Remote.of(server.address, server.token())
        assert sent_by(root, rebuilt)[0] == 32
        assert labels_on(rebuilt, tmp_path / "other") == everything


def test_pushes_at_once_add_each_label_once(lone_remote, tmp_path):
    roots = [tmp_path / name for name in "abc"]
    for number, root in enumerate(roots):
        LabelFiles(root).add(many(60)[number * 10 :])
    with ThreadPoolExecutor(3) as pool:
        assert sum(added for added, _ in pool.map(lambda root: sent_by(root, lone_remote), roots)) == 60
    assert len(labels_on(lone_remote, tmp_path / "copy")) == 60
