"""Ctrl-C while agents work: the first cancels them and keeps their work, the second ends everything at once."""

import json
import signal
import sys
import time

import pytest

from agentv.app.results.listing import listed_run
from doubles.agents import AGENT
from doubles.processes_alive import alive, ids_in
from doubles.waiting import until
from e2e.command import stopped

STARTED = f"""\
import asyncio, json, os, runpy, sys
from pathlib import Path

sys.argv = [{str(AGENT)!r}, Path(os.environ["SCRIPT"]).read_text()]
sys.path[0] = {str(AGENT.parent)!r}
with open(os.environ["PIDS"], "a") as pids:
    pids.write(f"{{os.getpid()}}\\n")
runpy.run_path(sys.argv[0], run_name="__main__")
"""
CALL = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Bash", "status": "completed"}


@pytest.fixture
def shop(project, tmp_path_factory):
    """Two agents that work until they are cancelled, or that ignore cancelling."""
    apart = tmp_path_factory.mktemp("apart")
    (apart / "tmp").mkdir()
    project.write("agent.py", STARTED)
    project.write(
        "a.eval.yaml",
        f"target: {{provider: acp, command: [{sys.executable}, agent.py]}}\nsandbox: none\nworkspace: {{}}\n"
        f"env: {{SCRIPT: '{apart / 'script.json'}', PIDS: '{apart / 'pids'}'}}\n"
        "tests:\n  - {id: a, input: go, assert: [contains: done]}\n  - {id: b, input: go, assert: [contains: done]}\n",
    )
    return project, apart


def begun(shop, *steps):
    """Start a run and wait until its agents work."""
    project, apart = shop
    (apart / "script.json").write_text(json.dumps({"prompts": [[{"update": CALL}, *steps]]}))
    process = project.start("eval", "a.eval.yaml", "--out", "out", env={"TMPDIR": str(apart / "tmp")})
    agents = ids_in(apart / "pids", 2)
    return process, agents


def test_one_ctrl_c_keeps_what_the_agents_did_and_their_trials_run_again(shop):
    project, apart = shop
    process, agents = begun(shop, {"file": ["at-work", ""]}, {"hang": "until cancelled"})
    until(lambda: len(list((apart / "tmp").rglob("at-work"))) == 2)
    stderr = stopped(process, status=130)
    assert "ERRORED 2 cases: interrupted: the run was interrupted" in stderr
    assert "--resume=out" in stderr
    assert not any(map(alive, agents))
    rows = project.rows("out")
    shown = {(row["test_id"], row["status"], row["error"]["code"]) for row in rows}
    assert shown == {("a", "errored", "interrupted"), ("b", "errored", "interrupted")}
    for row in rows:
        trace = json.loads((project.path / "out" / row["trace_path"]).read_text())
        assert [one["name"] for one in trace["steps"] if "name" in one] == ["shell"]
        assert "session/cancel" in (project.path / "out" / row["native_path"]).read_text()
        assert row.get("workspace_path") is None, "it is no failed trial whose workspace is kept"
    assert list((apart / "tmp").glob("agentv-*")) == []
    listed = listed_run(project.path / "out")
    assert (listed.state, listed.done) == ("interrupted", 0)

    (apart / "script.json").write_text(json.dumps({"prompts": [[{"say": "done"}]]}))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume", status=0)
    begin = "2 trials were interrupted and begin again from the start (cost unknown so far)"
    assert f"0 trials complete, 2 to run\n{begin}" in resumed.stderr
    assert [row["status"] for row in project.rows("out")] == ["passed", "passed"]
    summary = project.summary()
    assert (summary["trials"]["total"], summary["trials"]["errored"]) == (2, 0)


def test_a_second_ctrl_c_ends_agents_that_hear_nothing_at_once(shop):
    project, apart = shop
    process, agents = begun(shop, {"file": ["at-work", ""]}, {"hang": "deaf"})
    until(lambda: len(list((apart / "tmp").rglob("at-work"))) == 2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    before = time.monotonic()
    stderr = stopped(process, status=130)
    assert time.monotonic() - before < 5
    assert "Traceback" not in stderr
    assert not any(map(alive, agents))
    assert list((apart / "tmp").glob("agentv-*")) == []
    assert project.rows("out") == []
