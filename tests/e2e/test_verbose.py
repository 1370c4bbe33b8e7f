"""`eval --verbose`: a line for every trial as it finishes."""

from __future__ import annotations

import re

from doubles.misbehaving_server import misbehaving_server

KEY = "sk-Zq81Lm20Xv77Rt46Wb93"
AGENT = """\
import os

def ask(prompt):
    if "boom" in prompt:
        raise ValueError("." * 290 + os.environ["MY_API_KEY"] + "." * 300)
    return {"output": f"{prompt} {os.environ['MY_API_KEY']}", "cost_usd": 0.0123}
"""
SUITE = """\
name: s
target: python:agent.py:ask
tests:
  - {id: good, input: hello, assert: [contains: hello]}
  - {id: bad, input: "hello\\n::error::x", assert: [contains: bye, contains: hello]}
  - {id: broken, input: boom, assert: [contains: hello]}
  - {id: held, depends_on: [broken], input: hello, assert: [contains: hello]}
"""


def test_every_trial_is_told_with_status_score_duration_cost_and_its_failed_checks(project):
    project.write("evals/agent.py", AGENT)
    project.write("evals/a.eval.yaml", SUITE)
    ended = project.run("eval", "evals", "-v", "-j", "1", env={"MY_API_KEY": KEY})
    assert ended.status == 3, ended.stderr
    assert ended.stdout == ""
    told = [re.sub(r"[\d.]+ m?s\b", "T", line) for line in ended.stderr.splitlines()]
    at = "python:agent.py:ask"
    assert told[0] == f"[1/4] PASSED s: good on {at}: score 1.00, T, $0.0123"
    assert told[1] == f"[2/4] FAILED s: bad on {at}: score 0.50, needs 0.80, T, $0.0123"
    assert told[2].startswith("  evals/a.eval.yaml:5: failed: contains 'bye' | hello")
    assert told[3].startswith(f"[3/4] ERRORED s: broken on {at}: target-raised: ask raised ValueError: ....")
    assert told[4].startswith(f"[4/4] NOT RUN s: held on {at}: ")
    assert "4 cases: 1 passed, 1 failed, 1 errored, 1 not run" in ended.stderr
    assert not any(KEY[at : at + 8] in ended.stderr for at in range(len(KEY) - 7))


def test_calls_that_were_made_again_and_their_waits_are_told(project):
    with misbehaving_server() as server:
        server.retry_after = "0.2"
        target = f"{{provider: http, url: '{server.url('429/2')}'}}"
        project.write(
            "a.eval.yaml", f"target: {target}\ntests:\n  - {{id: a, input: x, assert: [contains: at last]}}\n"
        )
        ended = project.run("eval", "a.eval.yaml", "--verbose")
    assert ended.status == 0, ended.stderr
    again = [line for line in ended.stderr.splitlines() if line.startswith("  call ")]
    assert len(again) == 2
    assert re.fullmatch(
        r"  call 1 got no answer after [\d.]+ m?s, waited 0\.\d s: http-status: HTTP 429 Too Many Requests: no 429",
        again[0],
    )
