"""Rerunning cases: the displayed command, as words, and only where it is allowed."""

import json
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from time import monotonic, sleep

import pytest

from agentv.errors import UsageError
from agentv.extensions.view.growing import GrowingRun
from agentv.extensions.view.state import ViewOptions
from agentv.extensions.view.trial import RerunCommand, check_rerun, rerun_command
from doubles.viewed_project import viewed

HOSTILE = ["--out=/tmp/x", "a b; $(touch hacked)'\"", "[a]*?"]
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


MOCKS = [{"name": "a", "provider": "mock", "response": "good"}, {"name": "b", "provider": "mock", "response": "bad"}]
CASE = {"id": "one", "input": "x", "assert": [{"type": "contains", "value": "good"}]}
SUITE = {"name": "s", "targets": MOCKS, "tests": [CASE]}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A project and the directory of a run that this user made there, with a target from the command line."""
    root = tmp_path_factory.mktemp("ran")
    (root / ".git").mkdir()
    (root / "evals").mkdir()
    for name in ("s", "other"):
        (root / f"evals/{name}.eval.yaml").write_text(json.dumps(SUITE))
    words = [sys.executable, "-P", "-m", "agentv", "eval", "evals/s.eval.yaml", "--target", "mock:bad", "--var", "x=1"]
    subprocess.run(words, cwd=root, check=False, capture_output=True)
    (made,) = (root / ".agentv/results").glob("*/")
    return root, made


@pytest.fixture
def project(ran, tmp_path):
    """The project and the run; changes to its run.json are undone after the test."""
    root, made = ran
    text = (made / "run.json").read_text()
    yield root, made
    (made / "run.json").write_text(text)


def edited(path, *, signed=False, **settings):
    record = json.loads((path / "run.json").read_text())
    record["settings"].update(settings)
    if not signed:
        record.pop("signature", None)
    (path / "run.json").write_text(json.dumps(record))


def words_of(path, root):
    run = GrowingRun(path, str(root), root / "index.sqlite")
    try:
        run.catch_up(10)
        command = rerun_command(run, "1")
        check_rerun(command, run.root, root)
        return command.words
    finally:
        run.close()


def test_what_this_user_ran_is_run_again_and_the_same_from_elsewhere_is_not(project):
    root, path = project
    wanted = ["--target", "mock:bad", "--var", "x=1"]
    with viewed(root, ViewOptions(run=True)) as client:
        assert words_of(path, root)[-4:] == wanted
        edited(path)
        shown = client.get(f"/api/runs/{path.name}/trials/1").json()["rerun"]
        assert shown.endswith(shlex.join(wanted)), "the command is shown in any case"
        for at in ("trials/1/run", "run"):
            answer = client.post(f"/api/runs/{path.name}/{at}")
            assert (answer.status_code, "not started by you" in answer.text) == (422, True), answer.text
        assert client.get("/api/rerun").json()["state"] == "none"


def command_for(path, *words):
    return RerunCommand(["agentv", "eval", *words], "", json.loads((path / "run.json").read_text()))


EXECUTED = {
    "target": {"targets": ["cli:touch hacked"]},
    "judge": {"judge": "cli:touch hacked"},
    "tests": {"tests_from": "elsewhere.jsonl"},
    "variables": {"variables": {"x": "$(touch hacked)"}},
    "sandbox": {"sandbox": "none"},
    "outside": {"allow_outside": True},
    "trust": {"trust_data": True},
    "cassette": {"replay": "other.json"},
    "directory": {"workspace_path": "."},
    "cost": {"repeat": 100_000},
}


@pytest.mark.parametrize("signed", [True, False])
def test_a_run_from_elsewhere_decides_nothing_of_what_is_executed(project, signed):
    root, path = project
    original, taken = (path / "run.json").read_text(), []
    for name, settings in EXECUTED.items():
        (path / "run.json").write_text(original)
        edited(path, **{"targets": ["a"], "variables": None, **settings}, signed=signed)
        with suppress(UsageError):
            taken.append((name, words_of(path, root)))
    assert taken == []


def test_a_run_from_elsewhere_that_consists_of_names_of_the_project_is_run_again(project):
    root, path = project
    edited(path, targets=["a"], variables=None)
    assert words_of(path, root)[-2:] == ["--target", "a"]


def test_a_run_of_this_user_in_another_project_is_one_from_elsewhere(project, tmp_path):
    root, path = project
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    assert words_of(path, root)
    with pytest.raises(UsageError, match="not started by you in this project"):
        words_of(tmp_path / path.relative_to(root), tmp_path)


def test_an_eval_file_that_came_with_a_run_is_not_run(project):
    root, path = project
    foreign = root / "downloaded"
    shutil.copytree(path, foreign)
    (foreign / "artifacts").mkdir()
    (foreign / "artifacts/evil.eval.yaml").write_text(json.dumps(SUITE))
    (root / "linked").symlink_to(foreign / "artifacts")
    (root / "away.eval.yaml").symlink_to(root.parent / "elsewhere.eval.yaml")
    (root / ".agentv/config.yaml").write_text("eval_patterns: ['**/*.eval.yaml', linked/*.yaml]\n")
    (root.parent / "elsewhere.eval.yaml").write_text(json.dumps(SUITE))
    edited(foreign)
    files = ("downloaded/artifacts/evil.eval.yaml", "linked/evil.eval.yaml", "away.eval.yaml", "../elsewhere.eval.yaml")
    for file in (*files, "agent.py"):
        with pytest.raises(UsageError, match=f"does not define: {file}"):
            check_rerun(command_for(foreign, file, "--last-failed"), str(root), root)
    shutil.rmtree(foreign)
    for name in ("linked", "away.eval.yaml", ".agentv/config.yaml"):
        (root / name).unlink()


def test_a_row_cannot_add_an_eval_file_to_a_run_of_this_user(project):
    root, path = project
    check_rerun(command_for(path, "evals/s.eval.yaml", "--filter", "one"), str(root), root)
    with pytest.raises(UsageError, match=r"did not run: evals/other\.eval\.yaml"):
        check_rerun(command_for(path, "evals/other.eval.yaml", "--filter", "one"), str(root), root)
