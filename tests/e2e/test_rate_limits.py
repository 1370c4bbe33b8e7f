"""Servers that break, or have no room: what is asked again, how soon, and what is in the rows."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator

import pytest

from doubles.misbehaving_server import MisbehavingServer, misbehaving_server


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def suite(project, target: str, *, cases: int = 1, more: str = "", check: str = "contains: hello") -> None:
    listed = "".join(f"  - {{id: c{number}, input: hello {number}, assert: [{check}]}}\n" for number in range(cases))
    project.write("a.eval.yaml", f"{more}target: {target}\ntests:\n{listed}")


def ran(project, *words: str):
    return project.run("eval", "a.eval.yaml", "--out", "out", *words)


def summary(project) -> dict:
    return json.loads((project.path / "out" / "summary.json").read_text())


def test_retry_after_is_obeyed_and_the_attempts_are_in_the_row(project, server):
    server.retry_after = "0.4"
    suite(project, f"{{provider: http, url: '{server.url('429/2')}'}}", check="contains: at last")
    ended = ran(project)
    assert ended.status == 0, ended.stderr
    [row] = project.rows("out")
    assert row["attempts"] == 3
    assert [one["code"] for one in row["retries"]] == ["http-status", "http-status"]
    assert row["retries"][0]["message"] == "HTTP 429 Too Many Requests: no 429"
    assert all(400 <= one["waited_ms"] < 1500 for one in row["retries"])
    assert server.at[1] - server.at[0] >= 0.4
    assert server.at[2] - server.at[1] >= 0.4
    assert row["duration_ms"] < 400  # of the answer, not of what it had to wait for
    assert "retries" in row


def test_a_server_that_allows_less_than_fifty_at_once_is_worn_down_to_none_of_them_failing(project, server):
    server.room = 4
    suite(project, f"{{provider: http, url: '{server.url('crowded/0.02')}'}}", cases=200, check="contains: hello")
    ended = ran(project, "--workers", "50")
    assert ended.status == 0, ended.stderr
    assert summary(project)["trials"]["passed"] == 200
    assert any(row["attempts"] > 1 for row in project.rows("out"))
    assert server.most_at_once <= 4


def test_a_server_that_is_broken_for_good_is_given_up(project, server):
    retry = "{max_retries: 2, retry_initial_delay_ms: 10}"
    suite(project, f"{{provider: http, url: '{server.url('500')}', retry: {retry}}}")
    server.retry_after = None
    ended = ran(project)
    assert ended.status == 3
    [row] = project.rows("out")
    assert (row["status"], row["attempts"], len(row["retries"])) == ("errored", 3, 2)
    message = "HTTP 500 Internal Server Error: no 500; gave up after 3 attempts"
    assert row["error"] == {"code": "http-status", "message": message, "retryable": True}
    assert len(server.seen) == 3


def test_a_refused_key_is_one_error_and_not_a_thousand(project, server):
    suite(project, f"{{provider: http, url: '{server.url('401')}'}}", cases=1000, check="contains: hello")
    ended = ran(project, "--workers", "8")
    assert ended.status == 3
    assert summary(project)["cases"] == {
        "total": 1000,
        "passed": 0,
        "failed": 0,
        "errored": 1,
        "skipped": 999,
        "shown": 0,
    }
    assert len(server.seen) <= 8
    [row] = project.rows("out")
    assert row["error"]["message"] == "HTTP 401 Unauthorized: no 401"
    said = ended.stdout + ended.stderr
    assert said.count("stopped calling 'http'") == 1
    assert "NOT RUN 999 trials: 'http' is stopped\n" in said
    assert len(said.splitlines()) < 10


def test_a_resume_asks_again_all_that_was_refused(project, server):
    target = f"{{provider: http, url: '{server.url('401/1')}', allow_empty: true}}"  # the key is mended after one call
    suite(project, target, cases=5, check="contains: at last")
    assert ran(project, "--workers", "1").status == 3
    resumed = ran(project, "--workers", "1", "--resume")
    assert resumed.status == 0, resumed.stderr
    assert summary(project)["cases"] == {"total": 5, "passed": 5, "failed": 0, "errored": 0, "skipped": 0, "shown": 0}


def test_a_judge_that_refuses_everything_costs_no_further_answer(project, server):
    project.write("agent.py", "def answer(prompt):\n    open('asked', 'a').write('x')\n    return prompt\n")
    judge = f"judge: {{name: j, provider: http, url: '{server.url('401')}'}}\n"
    suite(project, "python:agent.py:answer", cases=40, more=judge, check="llm-rubric: is polite")
    ended = ran(project, "--workers", "4")
    assert ended.status == 3
    assert (ended.stdout + ended.stderr).count("stopped calling 'j'") == 1
    assert len((project.path / "asked").read_text()) <= 4
    cases = summary(project)["cases"]
    assert (cases["errored"], cases["skipped"]) == (1, 39)
    [row] = project.rows("out")
    assert row["error"]["code"] == "judge-http-status"
    assert ran(project, "--workers", "1", "--resume").status == 3
    [again] = project.rows("out")  # the one that was refused was asked again, and refused again
    assert again["timestamp"] != row["timestamp"]
    assert len((project.path / "out" / "history.jsonl").read_text().splitlines()) == 1


def test_ctrl_c_while_a_call_waits_to_be_made_again_ends_at_once(project, server):
    server.retry_after = "60"
    suite(project, f"{{provider: http, url: '{server.url('429')}'}}", cases=20)
    process = project.start("eval", "a.eval.yaml", "--out", "out", "--workers", "4")
    deadline = time.monotonic() + 120
    while not server.seen and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert time.monotonic() - before < 3
    assert "Traceback" not in stderr
    assert "--resume=out" in stderr
    assert project.rows("out") == []
