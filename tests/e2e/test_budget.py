"""Limits of budgets, servers and the machine: a run stops before it overspends, waits for free slots, and goes on."""

import time
from collections.abc import Iterator
from zlib import crc32

import pytest

from agentv.testing import ModelServer
from doubles.misbehaving_server import MisbehavingServer, misbehaving_server
from doubles.waiting import until
from e2e.command import AGENTV, stopped

AGENT = """
import asyncio

def asked(name):
    with open("asked.txt", "a") as file:
        file.write(name + "\\n")

async def answer(prompt, case_id):
    asked(case_id)
    await asyncio.sleep(0.01)
    return {"output": "fine", "cost_usd": 0.1, "token_usage": {"input": 6, "output": 4}}

def judge(prompt):
    asked("judge")
    return {"output": '{"score": 1, "reason": "good"}', "cost_usd": 0.05, "token_usage": {"input": 9, "output": 1}}

def silent(prompt):
    return "fine"

def unpriced(prompt):
    return {"output": "fine", "token_usage": {"input": 6, "output": 4}}
"""


def suite(project, *, cases: int = 20, target: str = "answer", check: str = "contains: fine", more: str = "") -> None:
    project.write("agent.py", AGENT)
    listed = "".join(f"  - {{id: c{number}, input: hello {number}, assert: [{check}]}}\n" for number in range(cases))
    project.write("a.eval.yaml", f"{more}target: 'python:agent.py:{target}'\ntests:\n{listed}")


def ran(project, *words: str, **how):
    return project.run("eval", "a.eval.yaml", "--out", "out", *words, **how)


@pytest.mark.parametrize("journal", ["as it is", "of an earlier agentv"])
def test_a_run_that_goes_on_knows_what_a_call_takes(project, journal):
    suite(project, cases=3)
    assert ran(project, "--budget-usd", "0.15").status == 3
    path = project.path / "out" / "journal.jsonl"
    lines = path.read_text().splitlines()
    assert '"target":"python:agent.py:answer"' in lines[1]
    if journal != "as it is":
        body = "{" + lines[1][len('{"crc32":"00000000",') :].replace('"target":"python:agent.py:answer",', "")
        lines[1] = f'{{"crc32":"{crc32(body.encode()):08x}",{body[1:]}'
        path.write_text("".join(f"{line}\n" for line in lines))
    ran(project, "--resume", status=3, says="a call of 'python:agent.py:answer' may take up to $0.1000")
    assert (len(project.asked), project.summary()["budget"]["spent_usd"]) == (1, 0.1)


def test_it_stops_before_more_is_spent_and_goes_on_with_a_larger_budget(project):
    suite(project)
    ended = ran(project, "--budget-usd", "0.55", status=3)
    assert "$0.5000 of the budget of $0.5500 is spent, and a call of 'python" in ended.stderr
    assert "budget: $0.5000 of $0.5500 spent; 5 of 20 trials run, 15 not run" in ended.stderr
    assert "agentv eval a.eval.yaml --out out --budget-usd=MORE --resume=out" in ended.stderr
    assert (len(project.asked), len(project.rows("out"))) == (5, 5)
    found = project.summary()
    assert found["trials"] == {"total": 20, "passed": 5, "failed": 0, "errored": 0, "skipped": 15, "shown": 0}
    assert found["budget"] == {"usd": 0.55, "tokens": None, "spent_usd": 0.5, "spent_tokens": 50, "used_up": True}
    project.run("results", "export", "out", "-o", "report.xml")
    report = (project.path / "report.xml").read_text()
    assert 'tests="6" failures="0" errors="1"' in report
    assert '<testsuite name="not run" ' in report
    ran(project, "--budget-usd", "3", "--resume", status=0)
    assert sorted(project.asked) == sorted(f"c{number}" for number in range(20))
    assert project.summary()["budget"]["spent_usd"] == 2.0


def test_a_budget_of_the_file_in_tokens(project):
    suite(project, more="run: {budget_tokens: 35, workers: 4}\n")
    ran(project, status=3, says="30 of the budget of 35 tokens are spent, and a call of 'python")
    assert len(project.asked) == 3
    assert ran(project, "--budget-tokens", "1000", "--resume").status == 0


def test_judges_spend_of_it_and_an_answer_that_is_paid_for_waits_for_its_verdict(project):
    check = "{type: llm-rubric, value: is friendly}"
    suite(project, check=check, more="judge: 'python:agent.py:judge'\nrun: {workers: 1}\n")
    ran(project, "--budget-usd", "0.42", status=3)
    assert project.asked == ["c0", "judge", "c1", "judge", "c2"]
    assert len(project.rows("out")) == 2
    ran(project, "--budget-usd", "0.45", "--resume")
    assert project.asked[5:] == ["judge"]
    assert [row["status"] for row in project.rows("out")] == ["passed"] * 3


def test_answers_that_are_there_cost_nothing(project):
    suite(project)
    assert ran(project, "--record", "all.jsonl").status == 0
    project.run("eval", "a.eval.yaml", "--out", "other", "--replay", "all.jsonl", "--budget-usd", "0.0001", status=0)
    assert len(project.asked) == 20
    project.run("eval", "a.eval.yaml", "--out", "third", "--regrade=out", "--budget-usd", "0.0001", status=0)


def test_who_says_no_price_is_named_and_who_says_only_tokens_is_asked_once(project):
    suite(project, target="silent")
    ended = ran(project, "--budget-usd", "1", status=0)
    assert "does not report what its calls cost: the budget counts them as zero" in ended.stderr
    suite(project, target="unpriced")
    ended = project.run("eval", "a.eval.yaml", "--out", "other", "--budget-usd", "1", status=3)
    assert "so a budget in dollars cannot be enforced; use a budget in tokens (--budget-tokens)" in ended.stderr
    assert len(project.rows("other")) == 1
    assert "Resume with a budget in tokens:" in ended.stderr
    going_on = ended.stderr.split("Resume with a budget in tokens:\n  agentv ", 1)[1].split("\n")[0]
    ended = project.run(*going_on.replace("MORE", "1000").split())
    assert (ended.status, len(project.rows("other"))) == (0, 20), ended.stderr


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def rate_limits_suite(project, target: str, *, cases: int = 1, more: str = "", check: str = "contains: hello") -> None:
    listed = "".join(f"  - {{id: c{number}, input: hello {number}, assert: [{check}]}}\n" for number in range(cases))
    project.write("a.eval.yaml", f"{more}target: {target}\ntests:\n{listed}")


def test_retry_after_is_obeyed_and_the_attempts_are_in_the_row(project, server):
    server.retry_after = "0.4"
    rate_limits_suite(project, f"{{provider: http, url: '{server.url('429/2')}'}}", check="contains: at last")
    ran(project, status=0)
    [row] = project.rows("out")
    assert row["attempts"] == 3
    assert [one["code"] for one in row["retries"]] == ["http-status", "http-status"]
    assert row["retries"][0]["message"] == "HTTP 429 Too Many Requests: no 429"
    assert all(400 <= one["waited_ms"] < 1500 for one in row["retries"])
    assert server.at[1] - server.at[0] >= 0.4
    assert server.at[2] - server.at[1] >= 0.4
    assert row["duration_ms"] < 400  # the time of the answer, without waiting
    assert "retries" in row


def test_a_refused_key_is_one_error_and_not_a_thousand(project, server):
    rate_limits_suite(project, f"{{provider: http, url: '{server.url('401')}'}}", cases=1000, check="contains: hello")
    ended = ran(project, "--workers", "8", status=3)
    shown = project.summary()["cases"]
    assert shown == {"total": 1000, "passed": 0, "failed": 0, "errored": 1, "skipped": 999, "shown": 0}
    assert len(server.seen) <= 8
    [row] = project.rows("out")
    assert row["error"]["message"] == "HTTP 401 Unauthorized: no 401"
    said = ended.stdout + ended.stderr
    assert said.count("stopped calling 'http'") == 1
    assert "NOT RUN 999 trials: 'http' is stopped: HTTP 401 Unauthorized: no 401\n" in said
    assert len(said.splitlines()) < 10


def test_a_resume_asks_again_all_that_was_refused(project, server):
    # the key works after one failed call
    target = f"{{provider: http, url: '{server.url('401/1')}', allow_empty: true}}"
    rate_limits_suite(project, target, cases=5, check="contains: at last")
    assert ran(project, "--workers", "1").status == 3
    ran(project, "--workers", "1", "--resume", status=0)
    assert project.summary()["cases"] == {"total": 5, "passed": 5, "failed": 0, "errored": 0, "skipped": 0, "shown": 0}


def test_a_judge_that_refuses_everything_costs_no_further_answer(project, server):
    project.write("agent.py", "def answer(prompt):\n    open('asked', 'a').write('x')\n    return prompt\n")
    judge = f"judge: {{name: j, provider: http, url: '{server.url('401')}'}}\n"
    rate_limits_suite(project, "python:agent.py:answer", cases=40, more=judge, check="llm-rubric: is polite")
    ended = ran(project, "--workers", "4", status=3)
    assert (ended.stdout + ended.stderr).count("stopped calling 'j'") == 1
    assert len((project.path / "asked").read_text()) <= 4
    cases = project.summary()["cases"]
    assert (cases["errored"], cases["skipped"]) == (1, 39)
    [row] = project.rows("out")
    assert row["error"]["code"] == "judge-http-status"
    assert ran(project, "--workers", "1", "--resume").status == 3
    [again] = project.rows("out")  # the refused case was called again and refused again
    assert again["timestamp"] != row["timestamp"]
    assert len((project.path / "out" / "history.jsonl").read_text().splitlines()) == 1


def test_ctrl_c_while_a_call_waits_to_be_made_again_ends_at_once(project, server):
    server.retry_after = "60"
    rate_limits_suite(project, f"{{provider: http, url: '{server.url('429')}'}}", cases=20)
    process = project.start("eval", "a.eval.yaml", "--out", "out", "--workers", "4")
    until(lambda: server.seen)
    time.sleep(0.3)
    before = time.monotonic()
    stderr = stopped(process, status=130)
    assert time.monotonic() - before < 3
    assert "Traceback" not in stderr
    assert "--resume=out" in stderr
    assert project.rows("out") == []


CASES = "".join(f"  - {{id: c{number}, input: hi, assert: [contains: hello]}}\n" for number in range(400))


def test_no_answer_is_lost_where_few_files_may_be_open(project):
    """With 400 concurrent calls, fewer than half of the connections can be open."""
    with ModelServer("hello there", delay_s=0.2) as server:
        project.write("a.eval.yaml", f"target: openai:gpt-4o-mini\ntests:\n{CASES}")
        env = {"OPENAI_API_KEY": "sk-one-1234567890", "OPENAI_BASE_URL": server.openai}
        ended = project.other("bash", "-c", f"ulimit -n 400; exec {AGENTV} eval a.eval.yaml -j 400 --out out", env=env)
    assert ended.returncode == 0, ended.stderr
    assert "note: 400 workers need more than the 400 open files allowed here; using 90 workers" in ended.stderr
    assert len(project.rows("out")) == len(server.calls) == 400
