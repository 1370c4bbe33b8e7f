"""Test `agentv.extensions.team.database.Database` and its users on SQLite and on a real PostgreSQL."""

import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.errors import StoreError, UsageError
from agentv.extensions.labels.labelling import LabelFiles
from agentv.extensions.team.database import DatabaseUnavailableError, audit_lines
from agentv.extensions.team.endpoints import TeamState, of_token
from agentv.extensions.team.labels import TeamLabels
from agentv.extensions.team.opening import Migration, migrate, migrations, open_database
from agentv.extensions.team.people import Members, Person, Sessions, Tokens, member_name
from agentv.extensions.team.postgresql import PostgresDatabase
from agentv.extensions.team.replica import Replica
from agentv.extensions.team.serving import copying
from agentv.extensions.team.uploaded import RowBatch, RunName, UploadConflictError, UploadRefusedError
from agentv.extensions.team.uploads import Uploads
from agentv.model.run.labels import Label
from agentv.store.files.directory import is_being_written
from agentv.store.journal.verification import check_rows, stored_summary
from agentv.store.labels import labels_directory
from doubles.postgresql import postgres_server
from doubles.team_servers import with_project
from doubles.waiting import until

RUN_ID = "20261121T140322Z-7f3a"
NAME = RunName("support", RUN_ID, "tester")
RECORD = json.dumps({"schema_version": 1, "run_id": RUN_ID, "started": "2026-11-21T14:03:22.000Z"}).encode()


@pytest.fixture(scope="session")
def server():
    with postgres_server() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/team.sqlite"
    return request.getfixturevalue("server").new_database()


@pytest.fixture
def database(address):
    found = open_database(address)
    migrate(found)
    yield found
    found.close()


@pytest.fixture
def uploads(database):
    with_project(database, "support")
    return Uploads(database)


def row(trial, text="x"):
    return (
        json.dumps(
            {"test_id": trial, "target": "gpt", "status": "passed", "key": trial, "eval_path": "a.yaml", "output": text}
        ).encode()
        + b"\n"
    )


def batch(start, lines, generation=1, replace=False):
    return RowBatch(start, generation, lines, replace)


@pytest.fixture
def replica(database, tmp_path):
    with closing(Replica(database, tmp_path / "copies")) as found:
        yield found


def test_a_transaction_takes_effect_whole_or_not_at_all(database):
    def add(name, then="SELECT 1"):
        with database.transaction() as transaction:
            transaction.run("INSERT INTO projects (name, created) VALUES (:name, '')", name=name)
            transaction.run(then)

    add("kept")
    with pytest.raises(StoreError) as raised:
        add("lost", then="SELECT * FROM nowhere")
    assert not isinstance(raised.value, DatabaseUnavailableError)  # a retry would not help
    assert Tokens(database).projects() == ["kept"]


def test_migrations_are_applied_once_by_servers_that_start_at_once(address):
    opened = [open_database(address) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        applied = list(pool.map(migrate, opened))
    every = tuple(f"{step.number:04} {step.name}" for step in migrations())
    assert sorted(applied) == [(), (), every]
    further = (*migrations(), Migration(migrations()[-1].number + 1, "colours", ("CREATE TABLE colours (name TEXT)",)))
    assert migrate(opened[0], further) == (f"{migrations()[-1].number + 1:04} colours",)
    with pytest.raises(StoreError, match=r"schema \d+ \(colours\).*a newer agentv has used it; upgrade this server"):
        migrate(opened[1])
    for one in opened:
        one.close()


def test_tokens_are_stored_as_hashes_and_end(database):
    tokens = Tokens(database)
    text, made = tokens.create("ci", "support", ("push",), 30, "tester")
    found = tokens.find(text)
    assert found == made
    assert found.problem is None
    assert of_token(found).allows("push", "support")
    assert not of_token(found).allows("push", "other")
    assert not of_token(found).allows("read", "support")
    assert tokens.find(text[:-1]) is None
    assert tokens.find("") is None
    _, admin = tokens.create("root", None, ("admin",), None, "tester")
    assert of_token(admin).allows("push", "other")
    expired, _ = tokens.create("old", "support", ("push",), 0, "tester")
    assert "expired" in tokens.find(expired).problem
    assert tokens.revoke(made.id, "tester")
    assert not tokens.revoke(made.id, "tester")
    assert "revoked" in tokens.find(text).problem
    with database.transaction() as transaction:
        every = repr([transaction.rows(f"SELECT * FROM {table}") for table in ("tokens", "audit")])
    assert text not in every
    assert text.removeprefix("agentv_") not in every
    with pytest.raises(UsageError):
        tokens.create("x", "../etc", ("push",), None, "tester")


def rows_in(database):
    with database.reading() as transaction:
        ((found,),) = transaction.rows("SELECT COUNT(*) FROM rows")
    return found


def test_rows_are_stored_once_however_often_they_come(uploads, database, replica):
    first, second = row("a") + row("b"), b"\n" + row("c", "é") + row("a", "again")
    with pytest.raises(UploadConflictError):
        uploads.add_rows(NAME, batch(0, first))  # the run has no record yet
    assert uploads.put_record(NAME, RECORD, writing=True)
    with pytest.raises(UploadConflictError):
        uploads.add_rows(NAME, batch(len(first), second))  # out of order
    assert uploads.add_rows(NAME, batch(0, first)).changed
    with pytest.raises(UploadConflictError):
        uploads.add_rows(NAME, batch(0, first))  # twice
    assert uploads.add_rows(NAME, batch(len(first), second)).changed
    state = uploads.state(NAME)
    assert (state.size, state.rows, state.writing) == (len(first + second), sha256(first + second).hexdigest(), True)
    assert rows_in(database) == 5
    replica.update()
    run = replica.root("support") / ".agentv/results" / RUN_ID
    assert (run / "index.jsonl").read_bytes() == first + second
    check_rows(run)
    assert (run / "run.json").read_bytes() == RECORD
    assert not (run / "summary.json").exists()


def test_what_was_cut_or_is_no_row_changes_nothing(uploads):
    uploads.put_record(NAME, RECORD, writing=False)
    whole = row("a") + row("b")
    wrong = [
        batch(0, whole[:-1]),
        batch(0, row("a") + b'{"no": "row"}\n'),
        batch(0, row("a")[:-2] + b',"schema_version":99}\n'),
        batch(0, b"\n" * 1_100_000),
        batch(0, row("a\nb")),
    ]
    for one in wrong:
        with pytest.raises(UploadRefusedError):
            uploads.add_rows(NAME, one)
    assert uploads.state(NAME).size == 0
    for record in (b"{", b"[]", b"{}", RECORD.replace(b"7f3a", b"0000"), RECORD.replace(b"14:03", b"15:03")):
        with pytest.raises(UploadRefusedError):
            uploads.put_record(NAME, record, writing=False)
    for path in (
        "artifacts/../../etc/passwd",
        "/etc/passwd",
        "run.json",
        "artifacts//x",
        "artifacts/a\0b",
        "artifacts",
        "artifacts/" + "é" * 128,
    ):
        with pytest.raises(UploadRefusedError):
            uploads.put_files(NAME, {path: "0" * 64})
    with pytest.raises(UploadRefusedError, match="both a file and a directory"):
        uploads.put_files(NAME, {"artifacts/a/b/c": "0" * 64, "artifacts/a": "0" * 64})
    with pytest.raises(UploadRefusedError, match="id of a run"):
        uploads.put_record(replace(NAME, run=RUN_ID.replace("2", "٢")), RECORD, writing=False)  # non-ASCII digits


def test_a_rewritten_file_replaces_rows_and_copies_follow(uploads, database, tmp_path, replica):
    first, second, third = row("a") + row("b"), row("c") + row("d"), row("c", "new")
    uploads.put_record(NAME, RECORD, writing=False)
    uploads.add_rows(NAME, batch(0, first))
    uploads.add_rows(NAME, batch(len(first), second))
    assert replica.update() == 1
    assert replica.update() == 0
    with pytest.raises(StoreError, match="another server uses"):
        Replica(database, tmp_path / "copies")
    with pytest.raises(UploadConflictError):
        uploads.add_rows(NAME, batch(len(first), third, replace=True))  # a replacement must start at row 0
    replaced = uploads.add_rows(NAME, batch(0, first + third, replace=True))
    assert (replaced.generation, replaced.size) == (2, len(first + third))
    with pytest.raises(UploadConflictError):  # sent again by a client that does not know of the replacement
        uploads.add_rows(NAME, batch(0, first + second, replace=True))
    index = replica.root("support") / ".agentv/results" / RUN_ID / "index.jsonl"
    assert replica.update() == 1
    assert index.read_bytes() == first + third
    assert json.loads((index.parent / "run.json").read_bytes())["replaced"]["rows"] == 4
    uploads.add_rows(NAME, batch(0, b"", generation=2, replace=True))
    replica.update()
    said = json.loads((index.parent / "run.json").read_bytes())["replaced"]
    assert (said["rows"], said["by"], said["generations"]) == (7, "tester", 2)
    assert (index.read_bytes(), uploads.state(NAME).size) == (b"", 0)
    uploads.delete(NAME)
    assert replica.update() == 1
    assert not index.parent.exists()


@pytest.mark.parametrize("more", [b"", row("b", "new")])
def test_a_run_that_is_deleted_and_pushed_again_leaves_nothing_in_its_copy(uploads, database, replica, more):
    uploads.put_record(NAME, RECORD, writing=False)
    uploads.add_rows(NAME, batch(0, row("a", "old")))
    replica.update()
    uploads.delete(NAME)
    uploads.put_record(NAME, RECORD, writing=False)
    uploads.add_rows(NAME, batch(0, row("a", "new") + more))
    assert replica.update() == 1
    index = replica.root("support") / ".agentv/results" / RUN_ID / "index.jsonl"
    assert index.read_bytes() == row("a", "new") + more


def test_artifacts_and_the_summary_reach_the_copies(uploads, database, tmp_path):
    content = b"\x00\xffdiff"
    digest = sha256(content).hexdigest()
    uploads.put_record(NAME, RECORD, writing=True)
    replica = Replica(database, tmp_path / "copies")
    replica.update()
    run = replica.root("support") / ".agentv/results" / RUN_ID
    assert is_being_written(run)
    files = {"artifacts/trial/changes.diff": digest, "artifacts/other/copy": digest}
    assert uploads.put_files(NAME, files).missing == [digest]
    with pytest.raises(UploadRefusedError):
        uploads.put_content("support", digest, content[:-1])
    uploads.put_content("support", digest, content)
    assert uploads.put_files(NAME, files).missing == []
    assert uploads.put_summary(NAME, json.dumps({"run_id": RUN_ID}).encode(), writing=False)
    assert not uploads.put_summary(NAME, json.dumps({"run_id": RUN_ID}).encode(), writing=False)
    replica.update()
    assert {path: (run / path).read_bytes() for path in files} == dict.fromkeys(files, content)
    again = sha256(b"again").hexdigest()  # the trial ran again
    uploads.put_content("support", again, b"again")
    assert uploads.put_files(NAME, {"artifacts/other/copy": again}).missing == []
    replica.update()
    assert (run / "artifacts/other/copy").read_bytes() == b"again"
    assert (run / "summary.json").exists()
    assert not is_being_written(run)
    replica.close()
    replica = Replica(database, tmp_path / "copies")  # another process finds the existing copies
    assert replica.update() == 0
    replica.close()


def test_totals_of_copies_are_computed_from_their_rows(uploads, database, tmp_path, replica):
    uploads.put_record(NAME, RECORD, writing=False)
    uploads.add_rows(NAME, batch(0, row("a")))
    uploads.put_summary(NAME, json.dumps({"run_id": RUN_ID, "pass_rate": 0.5}).encode(), writing=False)
    copy = replica.root("support") / ".agentv/results" / RUN_ID
    for number in (1, 2):
        assert replica.update() == 1
        found = stored_summary(copy)
        assert (json.loads(found.content)["cases"]["passed"], found.verified) == (number, True)
        check_rows(copy)
        assert not is_being_written(copy)
        uploads.add_rows(NAME, batch(len(row("a")) * number, row("b")))


def test_every_change_is_seen_by_servers(uploads, database):
    labels = TeamLabels(database, "support", "tester")
    changes = [
        lambda: uploads.put_record(NAME, RECORD, writing=True),
        lambda: uploads.add_rows(NAME, batch(0, row("a"))),
        lambda: uploads.put_summary(NAME, None, writing=False),
        lambda: uploads.give_name(NAME, "name"),
        lambda: uploads.delete(NAME),
        lambda: labels.add([labelled("ana")]),
        lambda: with_project(database, "other"),
    ]
    seen = [uploads.changes()]
    for change in changes:
        change()
        seen.append(uploads.changes())
        assert uploads.changes() == seen[-1]
    assert len(set(seen)) == len(changes) + 1


def test_pushers_at_once_store_each_row_once(uploads, database):
    uploads.put_record(NAME, RECORD, writing=False)
    pieces = [row(f"{number}") for number in range(20)]

    def push(_):
        for number, piece in enumerate(pieces):
            with suppress(UploadConflictError):
                uploads.add_rows(NAME, batch(sum(map(len, pieces[:number])), piece))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(push, range(4)))
    assert (uploads.state(NAME).size, rows_in(database)) == (sum(map(len, pieces)), 20)


def labelled(person, case="refund", verdict="pass", time="2026-11-21T14:03:22Z", suite="support"):
    digests = ("0" * 64, "1" * 64)
    return Label(case, *digests, verdict, person, time, suite, "helpful", RUN_ID, "gpt", "2" * 64, True)


def test_labels_are_kept_once_in_the_order_of_arrival_and_reach_the_copies(database, replica):
    with_project(database, "support")
    with_project(database, "other")
    labels = TeamLabels(database, "support", "tester")
    two_people, again = [labelled("ana"), labelled("ben", verdict="fail")], labelled("ana", time="2026-11-21T15:00:00Z")
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(labels.merge, [two_people, two_people[::-1], two_people, two_people])) == 2
    labels.add([again, labelled("ana", suite="../../etc/a b")])
    assert sorted(labels.read(["support"])[:2], key=lambda one: one.person) == two_people
    assert labels.read(["support"])[2:] == [again]
    assert len(labels.read()) == 4
    assert TeamLabels(database, "other", "tester").read() == []
    replica.update()
    files = LabelFiles(replica.root("support"))
    assert files.read(["support"]) == labels.read(["support"])
    shown = {one.name for one in labels_directory(replica.root("support")).iterdir()}
    assert shown == {"support.jsonl", "etc-a-b.jsonl"}
    labels.add([labelled("eve")])
    replica.update()
    assert files.read(["support"]) == labels.read(["support"])
    details = [line.detail for line in audit_lines(database, "support") if line.action == "labels added"]
    assert details == ["support: 1", "support: 1", "../../etc/a b: 1", "support: 2"]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 12), max_size=6), order=st.randoms())
def test_any_order_and_repetition_of_batches_gives_the_file(uploads, database, cuts, order):
    uploads.delete(NAME)
    uploads.put_record(NAME, RECORD, writing=False)
    borders = sorted({0, 12, *cuts})
    lines = [row(f"t{number}", "é" * number) for number in range(12)]
    pieces = [b"".join(lines[first:last]) for first, last in itertools.pairwise(borders)]
    whole = b"".join(pieces)
    for _ in range(len(pieces)):
        for number in order.sample(range(len(pieces)), len(pieces)):
            try:
                uploads.add_rows(NAME, batch(len(b"".join(pieces[:number])), pieces[number]))
            except UploadConflictError:
                continue
    assert (uploads.state(NAME).size, rows_in(database)) == (len(whole), 12)


def test_two_servers_show_the_same_at_once(address, uploads, tmp_path):
    states = [TeamState(open_database(address)) for _ in range(2)]
    problems = []
    with (
        copying(states[0], tmp_path / "one", problems.append) as one,
        copying(states[1], tmp_path / "two", problems.append) as two,
    ):
        until(lambda: all(state.copied >= 0 for state in states))
        first = row("a")
        states[0].uploads.put_record(NAME, RECORD, writing=False)
        states[0].uploads.add_rows(NAME, batch(0, first))
        indexes = [root.root("support") / ".agentv/results" / RUN_ID / "index.jsonl" for root in (one, two)]
        began = time.monotonic()
        until(lambda: all(index.exists() and index.read_bytes() == first for index in indexes))
        assert time.monotonic() - began < 4
    assert problems == []


def test_a_server_that_is_down_or_goes_away_is_said_plainly(server, tmp_path):
    address = server.new_database()
    database = PostgresDatabase(address, timeout_s=0.3)
    migrate(database)
    state, problems = TeamState(database), []
    with copying(state, tmp_path, problems.append) as replica:
        until(lambda: state.copied >= 0)
        server.stop()
        try:
            with pytest.raises(DatabaseUnavailableError, match="cannot reach the database"):
                Tokens(database).projects()
            with pytest.raises(DatabaseUnavailableError, match="cannot reach the database"):
                open_database(address)
            until(lambda: problems)
        finally:
            server.start()
        until(lambda: _works(database))
        until((replica.root("late") / ".agentv/results").exists)  # it recovers by itself


def _works(database):
    try:
        with_project(database, "late")
    except DatabaseUnavailableError:
        return False
    return True


@pytest.mark.parametrize("password", ["hunter2%zz", "hunt@hunter2", "hunter2/x", "hunter2#"])
def test_a_password_that_is_not_encoded_is_refused_without_showing_it(password):
    with pytest.raises(UsageError, match="percent-encoded") as raised:
        open_database(f"postgresql://agentv:{password}@127.0.0.1:1/agentv?application_name=a@b")
    assert "hunter2" not in f"{raised.value}{raised.value.hint}"
    for fine in ("agentv:a%40b@127.0.0.1:1/agentv", "127.0.0.1:1/agentv?application_name=a@b"):
        with pytest.raises(DatabaseUnavailableError):
            open_database(f"postgresql://{fine}")


def test_members_and_sessions(database):
    people, tokens = Members(database), Tokens(database)
    ada, subject = member_name("Ada@Example.org", None), member_name("42", "https://id.example")
    people.add(ada, "support", ("read",), "tester")
    people.add(ada, "support", ("label", "read"), "tester")
    people.add(ada, None, ("admin",), "tester")
    people.add(subject, "other", ("read",), "tester")
    signed_in = Person("https://id.example", "42", "ada@example.org")
    held = {"support": {"read", "label"}, None: {"admin"}, "other": {"read"}}
    assert people.scopes(signed_in) == held
    assert people.scopes(Person("https://evil.example", "42")) == {}
    assert people.scopes(Person("https://id.example", "ada@example.org")) == {}
    assert tokens.projects() == ["other", "support"]
    assert people.remove(ada, "support", "tester")
    assert people.scopes(signed_in) == {None: {"admin"}, "other": {"read"}}
    assert people.remove(ada, None, "tester")
    assert not people.remove(ada, None, "tester")
    assert [one.name for one in people.all()] == [subject]
    sessions = Sessions(database)
    text = sessions.begin(signed_in)
    assert sessions.find(text).person == signed_in
    _, token = tokens.create("ci", "support", ("read",), None, "tester")
    assert sessions.find(sessions.begin(token)).token == token.id
    assert sessions.end(text, "ada@example.org")
    assert not sessions.end(text, "ada@example.org")
    assert sessions.find(text) is None
    actions = [line.action for line in audit_lines(database, "support")]
    assert [actions.count(one) for one in ("member added", "member removed")] == [3, 2]
    # the third starts with a Cyrillic letter
    for wrong in ("ada", "ada@", "аda@example.org", "ada@example.org\n", "ada @example.org"):
        with pytest.raises(UsageError):
            member_name(wrong, None)
