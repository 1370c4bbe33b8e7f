"""The line that an interrupted run prints works as it is printed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from e2e.command import AGENTV

AGENT = """\
import pathlib, time

def ask(prompt):
    if not pathlib.Path("go").exists():
        time.sleep(3 if prompt == "slow" else 0)
    return prompt
"""


def test_a_run_that_trusts_its_data_and_reads_outside_goes_on_as_it_says(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "rows.jsonl").write_text(
        '{"id": "a", "input": "quick", "assert": [{"type": "python", "value": "len(output) > 1"}]}\n'
        '{"id": "b", "input": "slow", "assert": [{"type": "python", "value": "len(output) > 1"}]}\n'
    )
    project.write("agent.py", AGENT)
    project.write("a.eval.yaml", f"target: python:agent.py:ask\ntests: file://{outside}/rows.jsonl\n")
    assert project.run("eval", "a.eval.yaml").status == 2
    assert project.run("eval", "a.eval.yaml", "--allow-outside").status == 2
    running = project.start("eval", "a.eval.yaml", "--trust-data", "--allow-outside", "-j", "1", "--out", "out")
    index = project.path / "out" / "index.jsonl"
    while not (index.exists() and index.read_text().count("\n")) and running.poll() is None:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130, said
    project.write("go", "")
    [line] = [line for line in said.splitlines() if line.lstrip().startswith("agentv eval")]
    ended = project.run(*shlex.split(line)[1:])
    assert ended.status == 0, ended.stderr
    assert [row["test_id"] for row in project.rows("out")] == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of its own")
def test_how_a_run_goes_on_has_a_line_of_its_own_beside_the_bar(project):
    import pty

    text = "target: echo\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n"
    project.write("a.eval.yaml", text)
    assert project.run("eval", "a.eval.yaml").status == 0
    project.write("a.eval.yaml", text + "  - {id: b, input: hi, assert: [contains: hi]}\n")
    ours, theirs = pty.openpty()
    environment = {key: one for key, one in project.environment.items() if key not in ("NO_COLOR", "CI")}
    process = subprocess.Popen(
        [AGENTV, "eval", "a.eval.yaml", "--resume"],
        cwd=project.path,
        env={**environment, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal ends with the program
        while data := os.read(ours, 4096):
            shown += data
    os.close(ours)
    assert process.wait(60) == 0
    before, found, _ = shown.partition(b"resuming: 1 trial complete")
    assert found
    assert before.endswith((b"\n", b"\x1b[2K", b"\r"))
