import os
import signal
import subprocess

import pytest

from agentv.extensions.agents.workspaces.launcher import GRACE_S, command_line
from doubles.opened_workspaces import command_lines
from doubles.waiting import until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_program_which_may_end_by_itself(number: signal.Signals) -> None:
    script = f"trap 'echo ending; exit 4' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(command_line(("sh", "-c", script)), stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.read() == b"ending\n"
    assert process.returncode == 4


def test_the_guard_outlives_a_kill_of_the_group() -> None:
    mark = f"66{os.getpid()}"
    script = f"(setsid env -i /bin/sleep {mark} &) ; echo ready; sleep {mark}"
    with subprocess.Popen(
        command_line(("sh", "-c", script)), stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGKILL)
    until(lambda: f"sleep {mark}" not in command_lines(), GRACE_S + 5)
