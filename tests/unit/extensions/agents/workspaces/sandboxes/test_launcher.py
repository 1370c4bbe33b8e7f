from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from agentv.extensions.agents.workspaces.sandboxes.launcher import GRACE_S, command_line
from doubles.opened_workspaces import command_lines


def ran(*argv: str, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command_line(argv, **options), input=b"in", capture_output=True, timeout=30, check=False)


def waited(mark: str, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while f"sleep {mark}" in command_lines():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_streams_and_status_are_those_of_the_program() -> None:
    ended = ran("sh", "-c", "cat; echo err >&2; exit 3")
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, b"in", b"err\n")


def test_a_signal_that_ends_the_program_ends_the_front() -> None:
    assert ran("sh", "-c", "kill -9 $$").returncode == -signal.SIGKILL
    assert ran("sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_a_program_that_cannot_be_started_says_so() -> None:
    ended = ran("no-such-program")
    assert ended.returncode == 127
    assert b"cannot start no-such-program" in ended.stderr


def test_standard_output_ends_when_the_program_closes_it() -> None:
    with subprocess.Popen(command_line(("sh", "-c", "exec >&- 2>&-; sleep 0.5")), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""
        assert process.poll() is None


def test_a_variable_of_the_front_is_not_passed_on(monkeypatch) -> None:
    monkeypatch.setenv("OF_FRONT", "1")
    ended = ran("sh", "-c", "echo $OF_FRONT; tr '\\0' '\\n' < /proc/$PPID/environ", hidden_variable="OF_FRONT")
    assert b"OF_FRONT" not in ended.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_program_which_may_end_by_itself(number: signal.Signals) -> None:
    script = f"trap 'echo ending; exit 4' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(command_line(("sh", "-c", script)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.read() == b"ending\n"
    assert process.returncode == 4


def test_a_program_that_does_not_end_at_sigint_goes_on_until_sigterm() -> None:
    script = "trap 'echo interrupted' INT; trap 'echo ending; exit 4' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(command_line(("sh", "-c", script)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"interrupted\n"
        process.terminate()
        assert process.stdout.read() == b"ending\n"
    assert process.returncode == 4


def test_the_guard_outlives_a_kill_of_the_group() -> None:
    mark = f"66{os.getpid()}"
    script = f"(setsid env -i /bin/sleep {mark} &) ; echo ready; sleep {mark}"
    with subprocess.Popen(
        command_line(("sh", "-c", script)), stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGKILL)
    assert waited(mark, GRACE_S + 5)


def test_a_file_is_limited() -> None:
    ended = ran(
        "sh", "-c", "head -c 3000 /dev/zero > $0; stat -c %s $0; rm $0", f"/tmp/limited-{os.getpid()}", file_limit=1000
    )
    assert ended.stdout == b"1000\n"
