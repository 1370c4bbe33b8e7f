"""Cases that are run again: the command that is shown, as words, and only where that is allowed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from time import monotonic, sleep

from agentv.web.context import ViewOptions
from doubles.viewed_project import viewed

HOSTILE = ["--out=/tmp/x", "-x", "a b; touch hacked", "$(touch hacked)'\"", "[a]*?", "--help"]
SLOW = "import time\ndef answer(input):\n    time.sleep(60 if 'wait' in str(input) else 0)\n    return 'fine'\n"


def ended(client, state):
    begun = monotonic()
    while (found := client.get("/api/rerun").json())["state"] == "running":
        assert monotonic() - begun < 60, found
        sleep(0.05)
    assert found["state"] == state, found
    return found


def test_a_case_is_run_again_by_the_command_that_is_shown(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "agent.py").write_text(SLOW)
    (tmp_path / "click.py").write_text("raise SystemExit('the working directory was imported')\n")
    tests = [{"id": one, "input": one, "assert": [{"type": "contains", "value": "fine"}]} for one in HOSTILE]
    tests.append({"id": "wait", "input": "wait", "assert": [{"type": "contains", "value": "fine"}]})
    suite = {"name": "s", "target": "python:agent.py:answer", "tests": tests}
    (tmp_path / "-a b.eval.yaml").write_text(json.dumps(suite))
    words = [sys.executable, "-P", "-m", "agentv", "eval", "./-a b.eval.yaml"]
    (tmp_path / "agent.py").write_text(SLOW.replace("60", "0"))
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "agent.py").write_text(SLOW)
    with viewed(tmp_path, ViewOptions(run=True)) as client:
        assert client.get("/api/project").json()["run"]
        (run,) = (one["run_id"] for one in client.get("/api/runs").json()["runs"])
        cases = {one["id"]: one for one in client.get(f"/api/runs/{run}/cases").json()["cases"]}
        for at, name in enumerate(HOSTILE):
            trial = cases[name]["trials"][0]["trial"]
            shown = client.get(f"/api/runs/{run}/trials/{trial}").json()["rerun"]
            begun = client.post(f"/api/runs/{run}/trials/{trial}/run").json()
            assert (begun["command"], shlex.split(shown)[:3]) == (shown, ["agentv", "eval", "./-a b.eval.yaml"])
            found = ended(client, "ended")
            assert found["status"] == 0, found["output"]
            (again,) = client.get(f"/api/runs/{found['run_id']}/cases").json()["cases"]
            assert again["id"] == name
            assert client.get("/api/runs").json()["total"] == at + 2
        trial = cases["wait"]["trials"][0]["trial"]
        assert client.post(f"/api/runs/{run}/trials/{trial}/run").status_code == 200
        assert client.post(f"/api/runs/{run}/trials/{trial}/run").status_code == 422, "one at a time"
        client.delete("/api/rerun")
        assert ended(client, "cancelled")["status"] != 0
        assert client.post(f"/api/runs/{run}/trials/99999/run").status_code == 404
        for headers in ({"X-Agentv-Token": "x"}, {"Origin": "https://evil.example"}):
            refused = client.post(f"/api/runs/{run}/trials/{trial}/run", headers=headers)
            assert refused.status_code == 403, headers
        refused = client.post(f"/api/runs/{run}/run")
        assert (refused.status_code, "newer run" in refused.text) == (422, True)
    assert not (tmp_path / "hacked").exists()
    with viewed(tmp_path, ViewOptions(edit=True)) as client:
        assert client.post(f"/api/runs/{run}/trials/{trial}/run").status_code == 403
        assert client.get("/api/rerun").status_code == 403


def test_the_failed_cases_of_the_newest_run_are_run_again(tmp_path):
    (tmp_path / ".git").mkdir()
    tests = [{"id": one, "input": one, "assert": [{"type": "contains", "value": one}]} for one in ("good", "bad")]
    suite = {"name": "s", "target": "mock:good", "tests": tests}
    (tmp_path / "s.eval.yaml").write_text(json.dumps(suite))
    words = [sys.executable, "-P", "-m", "agentv", "eval", "s.eval.yaml"]
    subprocess.run(words, cwd=tmp_path, check=False, capture_output=True)
    with viewed(tmp_path, ViewOptions(run=True)) as client:
        (run,) = (one["run_id"] for one in client.get("/api/runs").json()["runs"])
        shown = client.get(f"/api/runs/{run}").json()["failures"]["rerun"]
        assert client.post(f"/api/runs/{run}/run").json()["command"] == shown == "agentv eval s.eval.yaml --last-failed"
        found = ended(client, "ended")
        (again,) = client.get(f"/api/runs/{found['run_id']}/cases").json()["cases"]
        assert (again["id"], found["trial"]) == ("bad", "")
