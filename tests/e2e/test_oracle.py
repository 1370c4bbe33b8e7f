"""`benchmarks/oracle.py` compares two versions of agentv."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ORACLE = Path(__file__).parents[2] / "benchmarks" / "oracle.py"
SUITE = """
target: python:agent.py:answer
tests:
  - {id: greets, input: Hi, assert: [{contains: hello}]}
  - {id: changes, input: Version?, assert: [{contains: hello}]}
"""
AGENT = """
import os


def answer(prompt):
    is_new = os.environ["PATH"].split(":")[0].endswith("/new")
    return "bye" if is_new and prompt == "Version?" else "hello"
"""


def oracle(tmp_path: Path, new: str, named: str = "") -> tuple[int, list[str]]:
    """The exit status, and what is printed."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "suite.eval.yaml").write_text(SUITE)
    (project / "agent.py").write_text(AGENT)
    exceptions = tmp_path / "named.toml"
    exceptions.write_text(named)
    command = [
        sys.executable,
        str(ORACLE),
        sys.executable,
        new,
        str(project),
        "--processes=1",
        "--named",
        str(exceptions),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_version_does_the_same_as_itself(tmp_path: Path) -> None:
    status, printed = oracle(tmp_path, sys.executable)
    assert (status, printed) == (0, ["1 projects, 1 files, 9 commands", "0 differences without a name"])


def test_what_differs_is_listed_or_counted_by_its_name(tmp_path: Path) -> None:
    new = tmp_path / "new" / "python"
    new.parent.mkdir()
    new.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    new.chmod(0o755)
    named = "[[exception]]\nname = 'another-answer'\nreason = 'wanted'\npattern = '^eval: row .*output: hello'\n"
    status, printed = oracle(tmp_path, str(new), named)
    row = "eval: row project/suite.eval.yaml suite.eval.yaml suite changes python:agent.py:answer 1"
    assert status == 1
    assert f"{row} status: passed -> failed" in printed
    assert "eval: exit project/suite.eval.yaml: 0 -> 1" in printed
    assert "  another-answer: 1" in printed
    assert not any(f"{row} output" in line for line in printed)
    assert not any("greets" in line for line in printed)
