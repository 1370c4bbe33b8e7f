"""Nothing that a command or its users' code started outlives it, whatever ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from doubles.processes_alive import alive, ids_in
from e2e.command import AGENTV

CODE = """
import atexit, ctypes, multiprocessing, os, posix, signal, stat, subprocess, sys, threading, time

held = []

def answer(prompt):
    if prompt == "posix exit":
        posix._exit(0)
    if prompt == "exit in C":
        ctypes.CDLL(None).exit(0)
    if prompt == "exec":
        os.execv("/bin/sh", ["sh", "-c", "exit 0"])
    if prompt == "forged":
        for number in range(3, 64):
            try:
                if stat.S_ISFIFO(os.fstat(number).st_mode):
                    os.write(number, b"\\nended 0\\n" + b"0" * 32 + b" 0\\n")
            except OSError:
                pass
        posix._exit(0)
    if prompt.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, prompt))
        time.sleep(60)
    if prompt == "descriptors":
        os.write(1, b"written to 1\\n")
        subprocess.run(["sh", "-c", "echo printed by a program"])
        os.close(1)
        os.close(2)
    if prompt == "fork that returns" and os.fork() == 0:
        return prompt
    if prompt == "held":
        held.append(subprocess.Popen(["sleep", "100"]))
        note(held[0].pid)
    if prompt == "still held":
        return f"{prompt}: {held[0].poll()}"
    if prompt == "fork":
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(100,))
        process.start()
        note(process.pid)
    if prompt == "daemon":
        subprocess.run(["setsid", "--fork", "sh", "-c", "echo $$ >> pids; exec sleep 100"])
        while not os.path.exists("pids"):
            time.sleep(0.005)
    if prompt == "hangs at exit":
        atexit.register(time.sleep, 100)
        threading.Thread(target=time.sleep, args=(100,)).start()
    return prompt

def note(number):
    with open("pids", "a") as file:
        file.write(f"{number}\\n")
"""


def suite(*prompts: str, target: str = "python:code.py:answer", output: str = "") -> str:
    cases = (
        f"  - {{id: c{number}, input: '{prompt}', assert: [contains: '{output or prompt}']}}\n"
        for number, prompt in enumerate(prompts)
    )
    return f"target: {json.dumps(target)}\nrun: {{workers: 1}}\ntests:\n{''.join(cases)}"


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("posix exit", "answer: exit 0 before it answered"),
        ("exit in C", "answer: exit 0 before it answered"),
        ("exec", "answer: exit 0 before it answered"),
        ("forged", "answer: exit 0 before it answered"),
        ("SIGSEGV", "killed by SIGSEGV"),
        ("SIGALRM", "killed by SIGALRM"),
        ("SIGKILL", "killed by SIGKILL"),
    ],
)
def test_a_worker_that_ends_before_it_answers_errs_that_trial_alone(project, prompt, told):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("hello", prompt))
    ended = project.run("eval", "a.eval.yaml", "--out", "out")
    assert ended.status == 3
    assert told in ended.stderr
    assert [row["status"] for row in project.rows("out")] == ["passed", "errored"]
    if prompt != "posix exit":
        return
    project.write("code.py", "def answer(prompt):\n    return prompt\n")
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out")
    assert resumed.status == 0, resumed.stderr


@pytest.mark.parametrize(
    ("words", "status"), [(("assert", "ends", "--output", "x"), 3), (("eval", "ends.eval.py", "--list"), 2)]
)
def test_no_other_command_succeeds_where_users_code_ended_its_worker(project, words, status):
    project.write(".agentv/assertions/ends.py", "import posix\ndef ends(ctx):\n    posix._exit(0)\n")
    project.write("ends.eval.py", "import posix\ndef suite():\n    posix._exit(0)\n")
    ended = project.run(*words)
    assert (ended.status, ended.stdout) == (status, "")
    assert "exit 0 before it answered" in ended.stderr


def test_what_an_assertion_prints_is_no_part_of_its_grade(project):
    project.write(
        ".agentv/assertions/prints.py",
        "import os\ndef prints(ctx):\n    print('a')\n    os.write(1, b'b')\n    return True\n",
    )
    ended = project.run("assert", "prints", "--output", "x")
    assert (ended.status, json.loads(ended.stdout)["pass"]) == (0, True)


def test_descriptors_that_users_code_writes_or_closes_do_not_touch_the_output(project):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("fork that returns", "descriptors"))
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out", "--out", "all.csv")
    assert ended.status == 0, ended.stderr
    assert json.loads(ended.stdout)["cases"]["passed"] == 2
    assert "written to 1" in ended.stderr
    assert "exports: all.csv" in ended.stderr
    assert len(project.rows("out")) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that leaves its group is not found")
def test_what_a_program_leaves_behind_ends_with_its_call_and_what_functions_leave_with_the_run(project):
    project.write("code.py", CODE)
    left = "setsid --fork sh -c 'echo $$ >> pids; exec sleep 100'; while ! test -e pids; do sleep 0.01; done; echo done"
    count = "n=0; for p in $(cat pids); do kill -0 $p 2> /dev/null && n=1; done"
    look = f"for i in $(seq 1000); do {count}; test $n = 0 && break; sleep 0.02; done; echo left: $n"
    project.write("a.eval.yaml", suite("daemon"))
    project.write("b.eval.yaml", suite("held", "still held", "fork").replace("'still held']", "'still held: None']"))
    project.write("c.eval.yaml", suite("x", target=f"cli:{left}", output="done"))
    project.write("d.eval.yaml", suite("x", target=f"cli:{look}", output="left: 0"))
    for names in (["a.eval.yaml"], ["b.eval.yaml"], ["c.eval.yaml", "d.eval.yaml"]):
        (project.path / "pids").unlink(missing_ok=True)
        ended = project.run("eval", *names)  # it returns when nobody holds its pipes any more
        assert ended.status == 0, ended.stderr
        found = [int(one) for one in (project.path / "pids").read_text().split()]
        assert found
        assert not [one for one in found if alive(one)]


def test_threads_and_exit_handlers_of_users_code_do_not_hold_up_the_end(project):
    project.write("code.py", CODE)
    project.write("a.eval.yaml", suite("hangs at exit"))
    ended = project.run("eval", "a.eval.yaml", "--json")
    assert (ended.status, json.loads(ended.stdout)["cases"]["passed"]) == (0, 1)


def started(project, **options) -> tuple[subprocess.Popen[str], list[int]]:
    """A run with two programs under way, and their ids."""
    project.write(
        "a.eval.yaml", suite(*"abcd", target="cli:echo $$ >> pids; sleep 60").replace("workers: 1", "workers: 2")
    )
    process = subprocess.Popen(
        [AGENTV, "eval", "a.eval.yaml", "--out", "out"],
        cwd=project.path,
        env=project.environment,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    return process, ids_in(project.path / "pids", 2)


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and any(alive(one) for one in pids):
        time.sleep(0.01)
    return not any(alive(one) for one in pids)


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGHUP])
def test_quit_and_a_closed_terminal_leave_no_program_behind(project, number):
    process, pids = started(project)
    process.send_signal(number)
    if number == signal.SIGHUP:
        process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume=out" in stderr
    assert gone(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a program is not found by its mark")
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_kill_leaves_nothing_running_and_the_run_can_be_resumed_at_once(project, whole_group):
    process, pids = started(project, start_new_session=True)
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)
    assert "agentv was killed, or ran out of memory, so there is no verdict" in stderr
    assert "agentv eval a.eval.yaml --out out --resume=out" in stderr
    assert process.returncode == -signal.SIGKILL
    project.write("a.eval.yaml", suite(*"abcd", target="echo"))
    resumed = project.run("eval", "a.eval.yaml", "--out", "out", "--resume")
    assert resumed.status == 0, resumed.stderr
    assert gone(pids)
