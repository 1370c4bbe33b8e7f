"""`--budget-usd` and `--budget-tokens`: a run stops before it has spent more, and goes on with a larger one."""

from __future__ import annotations

import json
from zlib import crc32

import pytest

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


def ran(project, *words: str):
    return project.run("eval", "a.eval.yaml", "--out", "out", *words)


def asked(project) -> list[str]:
    path = project.path / "asked.txt"
    return path.read_text().split() if path.exists() else []


def summary(project) -> dict:
    return json.loads((project.path / "out" / "summary.json").read_text())


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
    ended = ran(project, "--resume")
    assert ended.status == 3, ended.stderr
    assert "a call of 'python:agent.py:answer' may take up to $0.1000" in ended.stderr
    assert (len(asked(project)), summary(project)["budget"]["spent_usd"]) == (1, 0.1)


def test_it_stops_before_more_is_spent_and_goes_on_with_a_larger_budget(project):
    suite(project)
    ended = ran(project, "--budget-usd", "0.55")
    assert ended.status == 3, ended.stderr
    assert "$0.5000 of the budget of $0.5500 is spent, and a call of 'python" in ended.stderr
    assert "budget: $0.5000 of $0.5500 spent; 5 of 20 trials run, 15 not run" in ended.stderr
    assert "agentv eval a.eval.yaml --out out --budget-usd=MORE --resume=out" in ended.stderr
    assert (len(asked(project)), len(project.rows("out"))) == (5, 5)
    found = summary(project)
    assert found["trials"] == {"total": 20, "passed": 5, "failed": 0, "errored": 0, "skipped": 15, "shown": 0}
    assert found["budget"] == {
        "usd": 0.55,
        "tokens": None,
        "spent_usd": 0.5,
        "spent_tokens": 50,
        "used_up": True,
    }
    project.run("results", "export", "out", "-o", "report.xml")
    report = (project.path / "report.xml").read_text()
    assert 'tests="6" failures="0" errors="1"' in report
    assert 'message="the budget of the run was used up before they ran"' in report
    ended = ran(project, "--budget-usd", "3", "--resume")
    assert ended.status == 0, ended.stderr
    assert sorted(asked(project)) == sorted(f"c{number}" for number in range(20))
    assert summary(project)["budget"]["spent_usd"] == 2.0


def test_a_budget_of_the_file_in_tokens(project):
    suite(project, more="run: {budget_tokens: 35, workers: 4}\n")
    ended = ran(project)
    assert ended.status == 3
    assert "30 of the budget of 35 tokens are spent, and a call of 'python" in ended.stderr
    assert len(asked(project)) == 3
    assert ran(project, "--budget-tokens", "1000", "--resume").status == 0


def test_judges_spend_of_it_and_an_answer_that_is_paid_for_waits_for_its_verdict(project):
    check = "{type: llm-rubric, value: is friendly}"
    suite(project, check=check, more="judge: 'python:agent.py:judge'\nrun: {workers: 1}\n")
    ended = ran(project, "--budget-usd", "0.42")
    assert ended.status == 3, ended.stderr
    assert asked(project) == ["c0", "judge", "c1", "judge", "c2"]
    assert len(project.rows("out")) == 2
    ended = ran(project, "--budget-usd", "0.45", "--resume")
    assert asked(project)[5:] == ["judge"]
    assert [row["status"] for row in project.rows("out")] == ["passed"] * 3


def test_answers_that_are_there_cost_nothing(project):
    suite(project)
    assert ran(project, "--record", "all.jsonl").status == 0
    ended = project.run("eval", "a.eval.yaml", "--out", "other", "--replay", "all.jsonl", "--budget-usd", "0.0001")
    assert ended.status == 0, ended.stderr
    assert len(asked(project)) == 20
    regraded = project.run("eval", "a.eval.yaml", "--out", "third", "--regrade=out", "--budget-usd", "0.0001")
    assert regraded.status == 0, regraded.stderr


def test_who_says_no_price_is_named_and_who_says_only_tokens_is_asked_once(project):
    suite(project, target="silent")
    ended = ran(project, "--budget-usd", "1")
    assert ended.status == 0
    assert "does not report what its calls cost: the budget counts them as zero" in ended.stderr
    suite(project, target="unpriced")
    ended = project.run("eval", "a.eval.yaml", "--out", "other", "--budget-usd", "1")
    assert ended.status == 3
    assert "so a budget in dollars cannot be enforced; use a budget in tokens (--budget-tokens)" in ended.stderr
    assert len(project.rows("other")) == 1
    assert "Resume with a budget in tokens:" in ended.stderr
    going_on = ended.stderr.split("Resume with a budget in tokens:\n  agentv ", 1)[1].split("\n")[0]
    ended = project.run(*going_on.replace("MORE", "1000").split())
    assert (ended.status, len(project.rows("other"))) == (0, 20), ended.stderr
