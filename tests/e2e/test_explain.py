"""`agentv explain`, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys


def test_an_unknown_code_names_the_nearest(project):
    ended = project.run("explain", "unknown-asertion")
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: no code 'unknown-asertion'\n  did you mean 'unknown-assertion'")


def test_without_a_code_all_are_listed(project):
    ended = project.run("explain")
    lines = ended.stdout.splitlines()
    assert lines[0] == "In files"
    assert "In a run" in lines
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert {"unknown-key", "timeout"} <= set(listed)
    assert [one["code"] for one in json.loads(project.run("explain", "--json").stdout)] == listed


def test_a_run_does_not_load_the_long_texts(project):
    project.write("a.eval.yaml", "target: echo\ntests:\n  - {id: a, input: x, assert: [contains: x]}\n")
    program = """
import sys
from agentv.cli.main import run
run(["eval", "a.eval.yaml"])
print({"agentv.app.authored.explain", "agentv.codes", "agentv.reports.export.sarif"} & sys.modules.keys())
"""
    project.write("program.py", program)
    ended = subprocess.run([sys.executable, "program.py"], cwd=project.path, capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"
