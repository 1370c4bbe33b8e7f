"""`agentv explain`, as a person runs it."""

from __future__ import annotations

import subprocess
import sys


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
