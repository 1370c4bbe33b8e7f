import json
import time
from contextlib import contextmanager
from threading import Event

import httpx
import pytest

from agentv.errors import StoreError
from agentv.extensions.team import live
from agentv.extensions.team.live import LivePush
from agentv.extensions.team.pushing import RunPush
from agentv.extensions.team.remote import Remote
from agentv.extensions.team.uploaded import RunName
from agentv.store.files.directory import is_being_written
from doubles.team_servers import RUN_ID, row, write_rows, write_run
from doubles.waiting import until

WAITS = {
    "FIRST_S": 0.01,
    "LONGEST_S": 0.01,
    "RETRY_S": 0.01,
    "LONGEST_RETRY_S": 0.02,
    "END_S": 1.2,
    "UNREACHABLE_END_S": 0.2,
}
NAME = RunName("support", RUN_ID, "test")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    for name, seconds in WAITS.items():
        monkeypatch.setattr(live, name, seconds)


@pytest.fixture
def remote(server):
    yield Remote.of(server.address, server.token())
    server.state.uploads.delete(NAME)


@contextmanager
def started(run, remote, problems=None, env=None, **options):
    problems = [] if problems is None else problems
    push = LivePush(remote, env or {}, problems.append, options)
    push.start(run)
    yield push
    push.finish()


def test_rows_reach_the_server_while_the_run_goes_on_and_the_end_completes_it(server, remote, tmp_path):
    rows = [row(number) for number in range(6)]
    run = write_run(tmp_path, *rows[:2], b'{"test_id": "half')
    problems = []

    def size():
        return server.state.uploads.state(NAME).size

    with started(run, remote, problems) as push:
        until(lambda: size() == len(b"".join(rows[:2])))
        assert server.state.uploads.state(NAME).writing
        write_rows(run, *rows[:4])  # the same file grew
        until(lambda: size() == len(b"".join(rows[:4])))
        rewritten = run / "index.new"
        rewritten.write_bytes(rows[5])
        rewritten.rename(run / "index.jsonl")  # as when rows are moved away
        until(lambda: size() == len(rows[5]))
        write_rows(run, rows[5], rows[0])
        (run / "summary.json").write_text(json.dumps({"run_id": RUN_ID}))
        done = push.finish()
    state = server.state.uploads.state(NAME)
    assert (state.size, state.writing) == (len(rows[5] + rows[0]), False)
    assert (done.problem, done.page) == (None, f"{server.address}/#/run/{RUN_ID}/")
    assert problems == []
    assert not is_being_written(run)


def test_a_run_is_begun_on_the_server_when_its_run_json_says_what_is_run(server, remote, tmp_path):
    run = write_run(tmp_path)
    described = (run / "run.json").read_bytes()
    bodies, problems = [], []

    class Recording(httpx.HTTPTransport):
        def handle_request(self, request):
            bodies.append((request.method, request.content))
            return super().handle_request(request)

    early = b'{"schema_version": 1, "run_id": "' + RUN_ID.encode() + b'"}'
    (run / "run.json").write_bytes(early)
    with started(run, remote, problems, transport=Recording()) as push:
        time.sleep(0.1)
        (run / "run.json").write_bytes(described)
        until(lambda: server.state.uploads.state(NAME).generation)
        write_rows(run, row(1))
        done = push.finish()
    assert (done.problem, problems) == (None, [])
    assert next(body for method, body in bodies if method == "PUT") == described
    assert server.state.uploads.state(NAME).size == len(row(1))


def test_a_server_that_is_away_and_comes_again_is_continued(server, remote, tmp_path):
    class Away(httpx.HTTPTransport):
        is_away = Event()

        def handle_request(self, request):
            if self.is_away.is_set():
                raise httpx.ConnectError("[Errno 111] Connection refused")
            return super().handle_request(request)

    transport, problems = Away(), []
    transport.is_away.set()
    run = write_run(tmp_path, row(1))
    with started(run, remote, problems, transport=transport) as push:
        until(lambda: problems)
        transport.is_away.clear()
        until(lambda: server.state.uploads.state(NAME).size)
        transport.is_away.set()
        write_rows(run, row(1), row(2), row(3))
        done = push.finish()
    assert done.problem == f"cannot reach {server.address}: [Errno 111] Connection refused"
    assert problems == [f"cannot push now: {done.problem}; trying again while the run goes on"]


def test_a_refused_token_and_a_secret_are_told_at_once_and_nothing_waits(server, remote, tmp_path):
    secret = "hunter2-but-much-longer-93ac"
    run = write_run(tmp_path, row(1, secret))
    for one, env, expected in (
        (Remote(remote.address, "agentv_wrong"), {}, "does not know this token"),
        (remote, {"SUPPORT_API_KEY": secret}, "contains a secret of this environment"),
    ):
        problems = []
        with started(run, one, problems, env) as push:
            until(lambda problems=problems: problems)
            began = time.monotonic()
            done = push.finish()
            assert time.monotonic() - began < 1
        assert expected in problems[0]
        assert expected in done.problem
        assert secret not in problems[0]
        assert len(problems) == 1
    assert server.state.uploads.state(NAME).size == 0


def test_what_cannot_be_read_for_a_moment_is_pushed_in_the_end(server, remote, tmp_path, monkeypatch):
    def vanished(*_):
        raise StoreError("cannot read artifacts: it does not exist")

    monkeypatch.setattr(RunPush, "push_new_rows", vanished)
    run, problems = write_run(tmp_path, row(1), row(2)), []
    with started(run, remote, problems) as push:
        until(lambda: problems)
        assert push.finish().problem is None
    assert problems == ["cannot push now: cannot read artifacts: it does not exist; the run goes on without it"]
    assert server.state.uploads.state(NAME).size == len(row(1) + row(2))


def test_a_server_that_never_answers_is_waited_for_a_bounded_time(remote, tmp_path):
    never = Event()

    class Hanging(httpx.BaseTransport):
        def handle_request(self, request):
            never.wait(20)
            raise httpx.ReadTimeout("timed out")

    waiting, told = [], []
    push = LivePush(remote, {}, told.append, {"transport": Hanging()})
    push.start(write_run(tmp_path, row(1)))
    began = time.monotonic()
    done = push.finish(lambda: waiting.append(1))
    assert time.monotonic() - began < 2.5
    assert done.problem == f"{remote.address} did not take them in time"
    assert (done.rows, waiting) == (0, [1])
    never.set()


def test_a_bug_of_the_push_is_no_bug_of_the_run(remote, tmp_path):
    class Broken(httpx.BaseTransport):
        def handle_request(self, request):
            raise RuntimeError("boom")

    problems = []
    with started(write_run(tmp_path, row(1)), remote, problems, transport=Broken()) as push:
        until(lambda: problems)
        assert "RuntimeError: boom" in push.finish().problem


def test_a_run_that_never_began_is_not_pushed(remote):
    assert LivePush(remote, {}, print).finish() is None


def test_artifacts_follow_while_the_run_goes_on(server, remote, tmp_path):
    run = write_run(tmp_path, row(1))
    with started(run, remote) as push:
        until(lambda: server.state.uploads.state(NAME).size)
        file = run / "artifacts" / "trial" / "changes.diff"
        file.parent.mkdir(parents=True)
        file.write_text("diff")
        (run / "artifacts" / "trial" / "hunter2-but-much-longer-93ac.txt").write_text("x")
        assert push.finish().problem is None
    with server.state.database.reading() as transaction:
        assert transaction.rows("SELECT COUNT(*) FROM files") == [(2,)]
    (run / "artifacts" / "trial" / "more").write_text("y")
    with started(run, remote, env={"A_TOKEN": "hunter2-but-much-longer-93ac"}) as push:
        problem = push.finish().problem
    assert "the name of an artifact" in problem
    assert "hunter2" not in problem
