"""Agents in workspaces, end to end: variants, hidden files, Ctrl-C, and resuming a killed run."""

import json
import signal
import time
from pathlib import Path

import pytest

from doubles.processes_alive import alive
from doubles.waiting import until
from needs import needs

AGENT = """\
import os, sys, time
from pathlib import Path

prompt = sys.stdin.read()
if "wait" in prompt:
    Path("agent.pid").write_text(str(os.getpid()))
    Path(os.environ["PIDS"], str(os.getpid())).touch()
    time.sleep(60)
Path("price.txt").write_text("2 " + os.environ.get("SHOP_API_KEY", ""))
skill = Path(".claude/skills/refund/SKILL.md").exists()
print("skill" if skill else "no skill", "hidden" if Path("hidden").exists() else "nothing hidden", sorted(os.environ))
"""

SUITE = """\
target: {provider: cli, command: [python3, agent.py]}
sandbox: none
env: {SHOP_API_KEY: sk-shop-1234567890abcdef}
workspace: {template: ./repo, hidden: ./hidden}
variants: [{name: bare}, {name: with-skill, overlay: ./skills/refund}]
tests:
  - {id: a, input: go, assert: [contains: skill, contains: nothing hidden]}
  - {id: b, input: go, assert: [regex: "^skill"]}
"""


@pytest.fixture
def shop(project):
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", SUITE)
    project.write("repo/price.txt", "1")
    project.write("hidden/check.py", "# hidden")
    project.write("skills/refund/SKILL.md", "How to refund.")
    return project


def test_variants_run_apart_and_are_compared(shop):
    ended = shop.run("eval", "a.eval.yaml", "--out", "out", "-o", "out.xml", "-o", "out.html", "-o", "out.md", status=1)
    assert "FAILED b as bare" in ended.stderr
    rows = {(row["test_id"], row["variant"]): row for row in shop.rows("out")}
    assert {key: row["status"] for key, row in rows.items()} == {
        ("a", "bare"): "passed",
        ("a", "with-skill"): "passed",
        ("b", "bare"): "failed",
        ("b", "with-skill"): "passed",
    }
    assert len({row["key"] for row in rows.values()}) == 4
    kept = [row.get("workspace_path") for row in rows.values()]
    assert [bool(path) for path in kept].count(True) == 1, "the workspace of the failed trial"
    assert (shop.path / "out" / rows["b", "bare"]["workspace_path"] / "hidden/check.py").is_file()
    summary = shop.summary()
    shown = {name: group["cases"]["passed"] for name, group in summary["by_variant"].items()}
    assert shown == {"bare": 1, "with-skill": 2}
    assert (summary["cases"]["total"], summary["trials"]["total"]) == (2, 4)
    record = json.loads((shop.path / "out/run.json").read_text())
    assert [one["name"] for one in record["suites"][0]["variants"]] == ["bare", "with-skill"]
    assert record["sandboxes"] == ["none"]
    assert "variant: with-skill" in (shop.path / "out.xml").read_text()
    assert "| | `bare` | `with-skill` |" in (shop.path / "out.md").read_text()
    shown = '"variants":["bare","with-skill"]'
    assert shown in (shop.path / "out.html").read_text().replace(", ", ",").replace(": ", ":")
    compared = json.loads(shop.run("compare", "out", "--by", "variant", "--json").stdout)
    assert [compared["base"]["variants"], compared["candidate"]["variants"]] == [["bare"], ["with-skill"]]


def test_artifacts_hold_no_secret_and_the_environment_is_the_agents_own(shop):
    shop.run("eval", "a.eval.yaml", "--out", "out", "--variant", "bare", env={"HOST_SECRET_OF_MINE": "x"})
    rows = shop.rows("out")
    assert {row["variant"] for row in rows} == {"bare"}
    patch = (shop.path / "out" / rows[0]["diff_path"]).read_text()
    assert "+2 [redacted]" in patch
    assert "HOST_SECRET_OF_MINE" not in rows[0]["output"]
    assert "SHOP_API_KEY" in rows[0]["output"]
    assert "sk-shop-1234567890abcdef" not in "".join(
        path.read_text() for path in (shop.path / "out/artifacts").rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_agent_and_can_be_resumed(shop, number, tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    shop.write(
        "a.eval.yaml",
        f"target: {{provider: cli, command: [python3, agent.py]}}\nsandbox: none\nenv: {{PIDS: '{pids}'}}\n"
        "workspace: {template: ./repo}\nrun: {workers: 2}\n"
        "tests:\n"
        + "".join(f"  - {{id: c{one}, input: '{word}', assert: [contains: skill]}}\n" for one, word in CASES.items()),
    )
    process = shop.start("eval", "a.eval.yaml", "--out", "out")
    until(lambda: list(pids.iterdir()))
    process.send_signal(number)
    if number == signal.SIGINT:
        time.sleep(0.5)
        process.send_signal(number)  # at once
    process.communicate(timeout=120)
    agents = [int(path.name) for path in pids.iterdir()]
    assert agents
    until(lambda: not any(map(alive, agents)))
    shop.write("agent.py", AGENT.replace("sleep(60)", "sleep(0)"))
    shop.run("eval", "a.eval.yaml", "--out", "out", "--resume=out", status=0)
    assert {row["status"] for row in shop.rows("out")} == {"passed"}


CASES = {1: "go", 2: "wait", 3: "wait"}


def test_an_existing_directory_is_used_as_it_is_by_one_at_a_time(shop):
    shop.write("mine/price.txt", "1")
    suite = SUITE.replace("variants: [{name: bare}, {name: with-skill, overlay: ./skills/refund}]\n", "")
    shop.write("a.eval.yaml", suite.replace(", hidden: ./hidden", ""))
    ended = shop.run("eval", "a.eval.yaml", "--workspace-path", "mine", "--workers", "8", "--out", "out")
    assert Path(shop.path / "mine/price.txt").read_text().startswith("2 ")
    assert "itself, one at a time" in ended.stderr
    assert json.loads((shop.path / "out/run.json").read_text())["settings"]["workers"] == 1
    shop.run("eval", "a.eval.yaml", "--workspace-path", "not-there", status=2, says="is not a directory")


@needs("bwrap")
def test_a_link_to_a_link_to_a_script_of_an_npm_package_runs_beside_what_it_loads(project, tmp_path):
    package = tmp_path / "apart/node_modules/tool"
    package.mkdir(parents=True)
    (package / "answer.txt").write_text("It is shipped.")
    (package / "cli.sh").write_text('#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/answer.txt"\n')
    (package / "cli.sh").chmod(0o755)
    (tmp_path / "apart/tool").symlink_to(package / "cli.sh")
    (project.path / "tool").symlink_to(tmp_path / "apart/tool")
    project.write(
        "a.eval.yaml",
        "target: {provider: cli, command: [./tool]}\nsandbox: bwrap\nworkspace: {keep: none}\n"
        "tests: [{id: a, input: go, assert: [contains: shipped]}]\n",
    )
    project.run("eval", "a.eval.yaml", "--out", "out", status=0)
