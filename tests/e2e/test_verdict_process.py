"""User code that exits, raises, prints or closes anything affects only its worker, and nothing outlives the command."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from doubles.processes_alive import alive, all_gone, ids_in
from e2e.command import stopped

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


ENDS = {
    **dict.fromkeys(("posix exit", "exit in C", "exec", "forged"), "answer: exit 0 before it answered"),
    **{name: f"killed by {name}" for name in ("SIGSEGV", "SIGALRM", "SIGKILL")},
}


def test_a_worker_that_ends_before_it_answers_errs_that_trial_alone(project):
    project.write_files({"code.py": CODE, "a.eval.yaml": suite("hello", *ENDS, "last")})
    project.run("eval", "a.eval.yaml", "--out", "out", status=3)
    first, *errored, last = project.rows("out")
    assert (first["status"], last["status"]) == ("passed", "passed")
    assert [told for row, told in zip(errored, ENDS.values(), strict=True) if told not in row["error"]["message"]] == []
    project.write("code.py", "def answer(prompt):\n    return prompt\n")
    project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out", status=0)


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
    project.write_files({"code.py": CODE, "a.eval.yaml": suite("fork that returns", "descriptors")})
    ended = project.run("eval", "a.eval.yaml", "--json", "--out", "out", "--out", "all.csv", status=0)
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
        project.run("eval", *names, status=0)  # returns only when no process holds its pipes
        found = [int(one) for one in (project.path / "pids").read_text().split()]
        assert found
        assert not [one for one in found if alive(one)]


def test_threads_and_exit_handlers_of_users_code_do_not_hold_up_the_end(project):
    project.write_files({"code.py": CODE, "a.eval.yaml": suite("hangs at exit")})
    ended = project.run("eval", "a.eval.yaml", "--json")
    assert (ended.status, json.loads(ended.stdout)["cases"]["passed"]) == (0, 1)


def started(project, **options) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a run with two running programs; return the process and the programs' ids."""
    project.write(
        "a.eval.yaml", suite(*"abcd", target="cli:echo $$ >> pids; sleep 60").replace("workers: 1", "workers: 2")
    )
    process = project.start("eval", "a.eval.yaml", "--out", "out", **options)
    return process, ids_in(project.path / "pids", 2)


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGHUP])
def test_quit_and_a_closed_terminal_leave_no_program_behind(project, number):
    process, pids = started(project)
    if number == signal.SIGHUP:
        process.send_signal(number)
        number = signal.SIGTERM
    assert "--resume=out" in stopped(process, number, status=130)
    assert all_gone(pids)


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
    project.run("eval", "a.eval.yaml", "--out", "out", "--resume", status=0)
    assert all_gone(pids)


OWN_DESCRIPTORS_CODE = """
import asyncio, ctypes, os

async def answer_async(prompt):
    await asyncio.sleep(0.01)
    return answer(prompt)

def answer(prompt):
    if prompt == "close all":
        os.closerange(0, 65_536)
    if prompt == "null for all":
        null = os.open(os.devnull, os.O_RDWR)
        for number in map(int, os.listdir("/proc/self/fd")):
            if number > 2:
                os.dup2(null, number)
    if prompt == "another program":
        os.execv("/bin/sleep", ["sleep", "600"])
    if prompt == "write to all":
        for number in range(3, 65_536):
            try:
                os.write(number, b"x")
            except OSError:
                pass
    if prompt == "deaf":
        open("deaf", "w").close()
        ctypes.PyDLL(None).sleep(600)
    return prompt
"""


def test_code_that_closes_or_writes_to_all_descriptors_errs_its_own_trial(project):
    project.write("code.py", OWN_DESCRIPTORS_CODE)
    prompts = ("hello", "close all", "null for all", "another program", "write to all", "last")
    for function in ("answer", "answer_async"):
        text = suite(*prompts, target=f"python:code.py:{function}")
        project.write(f"{function}.eval.yaml", text.replace("workers: 1", "timeout_s: 3"))
    ended = project.run("eval", "answer.eval.yaml", "answer_async.eval.yaml", "-j", "1", "--json", "--out", "out")
    assert ended.status == 3
    assert json.loads(ended.stdout)["cases"] == {**json.loads(ended.stdout)["cases"], "passed": 4, "errored": 8}
    assert [row["status"] for row in project.rows("out")] == ["passed", *["errored"] * 4, "passed"] * 2
    assert not (project.path / "out" / "rejected.jsonl").exists()


def test_a_run_ends_by_ctrl_c_although_a_worker_hears_nothing(project):
    project.write_files({"code.py": OWN_DESCRIPTORS_CODE, "a.eval.yaml": suite("hello", "deaf")})
    process = project.start("eval", "a.eval.yaml", "--out", "out")
    while not (project.path / "deaf").exists():
        time.sleep(0.05)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert process.returncode == 130
    assert "agentv eval a.eval.yaml --out out --resume=out" in process.communicate()[1]


def test_a_slow_reader_gets_all_and_one_that_leaves_is_noticed(project):
    whole = project.run("schema").stdout
    process = project.start("schema")
    time.sleep(0.5)  # time to fill the pipe
    assert process.communicate()[0] == whole
    assert len(whole) > 1 << 17
    process = project.start("schema")
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (3, "")
    process.stderr.close()


RAISES = """
import asyncio, pytest

class Own(BaseException):
    pass

def answer(prompt):
    kinds = {
        "base": Own("mine"),
        "generator": GeneratorExit(),
        "interrupt": KeyboardInterrupt(),
        "exit": SystemExit(0),
        "group": BaseExceptionGroup("several", [KeyboardInterrupt(), SystemExit(0)]),
        "cancelled": asyncio.CancelledError(),
    }
    if prompt == "outcome":
        pytest.fail("not good enough")
    if prompt in kinds:
        raise kinds[prompt]
    return prompt

async def later(prompt):
    await asyncio.sleep(0.001)
    return answer(prompt)
"""
KINDS = ("base", "generator", "interrupt", "exit", "group", "cancelled", "outcome")


def cases(target: str, assertion: str) -> str:
    shown = (f"  - {{id: {kind}, input: {kind}, assert: [{assertion}]}}\n" for kind in (*KINDS, "fine"))
    return f"target: {target}\ntests:\n{''.join(shown)}"


def test_every_kind_of_exception_is_one_failure(project):
    project.write("raises.py", RAISES)
    for name, call in (("now", "raises.answer(ctx.output)"), ("later", "await raises.later(ctx.output)")):
        function = "async def" if name == "later" else "def"
        text = f"import raises\n{function} {name}(ctx):\n    {call}\n    return True\n"
        project.write(f".agentv/assertions/{name}.py", text)
        project.write(f"graded-{name}.eval.yaml", cases("echo", f"{{type: {name}}}"))
    project.write(".agentv/assertions/raises.py", RAISES)
    for function in ("answer", "later"):
        text = cases(f"python:raises.py:{function}", "{type: min-tokens, value: 1}")
        project.write(f"target-{function}.eval.yaml", text)
    project.run("eval", ".", "--workers", "1", status=3)
    rows = project.rows()
    assert sorted(row["test_id"] for row in rows if row["status"] == "passed") == ["fine"] * 4
    errored = [row for row in rows if row["status"] == "errored"]
    assert len(errored) == len(rows) - 4 == 4 * len(KINDS)
    assert [row["error"]["code"] for row in errored].count("target-raised") == 2 * len(KINDS)


PRINTS = {
    "print('last words'); os.kill(os.getpid(), 9)": "last words\n",
    "os.write(2, b'\\xff\\n')": "\\xff\n",
    "print('y' * (3 << 20)); print('after')": "[a printed line of more than 1 MiB was left out]\nafter\n",
    "print(('z' * 99 + '\\n') * 300_000 + 'enough')": "\nenough\n",
    "subprocess.Popen(['sleep', '30'], start_new_session=True); print('left')": "left\n",
    "atexit.register(print, 'at the end')": "at the end\n",
}
"""What a function does → what is shown of it."""


def test_all_that_is_printed_arrives(project):
    code = "".join(f"    if prompt == 'print {at}':\n        {one}\n" for at, one in enumerate(PRINTS))
    project.write("code.py", f"import atexit, os, subprocess\ndef answer(prompt):\n{code}    return prompt\n")
    project.write("a.eval.yaml", suite(*(f"print {at}" for at in range(len(PRINTS)))))
    project.write("alone/code.py", "import os\ndef answer(prompt):\n    os.write(1, b'no end')\n    return prompt\n")
    project.write("alone/b.eval.yaml", suite("x"))
    before = time.monotonic()
    ended = project.run("eval", "a.eval.yaml", "alone/b.eval.yaml", status=3)
    assert [row["status"] for row in project.rows() if row["status"] != "passed"] == ["errored"]
    assert [shown for shown in ("no end\n", *PRINTS.values()) if shown not in ended.stderr] == []
    assert time.monotonic() - before < 25


AGENT = """
import multiprocessing
import os


def work(prompt):
    return f"{prompt} {os.getpid()}"


def answer(prompt):
    with multiprocessing.get_context(prompt).Pool(1) as pool:
        (text,) = pool.map_async(work, [prompt]).get(timeout=30)
    asked, process = text.split()
    return asked if int(process) != os.getpid() else "here"
"""


def test_a_pool_is_sent_functions_of_the_file(project):
    project.write_files({"code.py": AGENT, "a.eval.yaml": suite("spawn", "forkserver")})
    project.run("eval", "a.eval.yaml", status=0)


STOPS = """
def answer(prompt):
    word = "found"
    breakpoint()
    return word
"""


def test_a_debugger_stops_in_a_function_on_the_terminal_and_no_time_limit_ends_it(project):
    project.write("agent.py", STOPS)
    project.write(
        "a.eval.yaml",
        "target: python:agent.py:answer\nrun: {timeout_s: 0.5}\n"
        "tests: [{id: a, input: x, assert: [equals: changed]}, {id: b, input: x, assert: [equals: found]}]\n",
    )
    process = project.start("eval", "a.eval.yaml", "--debug", stdin=subprocess.PIPE)
    time.sleep(1.5)  # three call timeouts
    _, stderr = process.communicate("p word\nword = 'changed'\nc\nc\n", timeout=120)
    assert process.returncode == 0, stderr
    assert "(Pdb) 'found'" in stderr
    ended = project.run("eval", "a.eval.yaml", status=3)
    assert "breakpoint() requires the option --debug of agentv eval (agent.py:4, in answer)" in ended.stderr
