import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentv.extensions.agents.workspaces.directories import RunDirectory, remove_dead_runs
from agentv.extensions.agents.workspaces.process_group import MARK, processes_of
from doubles.opened_workspaces import SANDBOXES, command_lines

OPENS = """
import asyncio, sys
from agentv.model.suite.workspace import CopiedFiles, WorkspaceSpec
from agentv.registry.fields import Command
from agentv.user_code.processes import run_program
from agentv.app.wiring import WorkspaceSettings
from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces

place, template, sandbox, mark = sys.argv[1:]

async def trial(workspaces):
    while True:
        workspace = await workspaces.open(WorkspaceSpec(template=CopiedFiles(template), sandbox=(sandbox,)), None, {})
        script = f"mkdir -p d; touch d/x; chmod 500 d; (setsid env -i /bin/sleep {mark} >/dev/null 2>&1 &) ; sleep {mark}"
        command = Command(argv=workspace.sandbox.argv(("/bin/sh", "-c", script)))
        print("working", flush=True)
        await run_program(command, stdin=b"", env=workspace.sandbox.environment({}), timeout_s=0.3)
        await workspace.finish()
        await workspace.close(keep=False)

async def run():
    workspaces = LocalWorkspaces(WorkspaceSettings(directory=place))
    await asyncio.gather(trial(workspaces), trial(workspaces))

asyncio.run(run())
"""


def killed(place: Path, template: Path, sandbox: str, mark: str, after_s: float) -> int:
    """Start a run, kill it after `after_s` seconds, and return its process id."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    argv = (sys.executable, "-c", OPENS, str(place), str(template), sandbox, mark)
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"working\n"
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
    return process.pid


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_the_next_start_removes_what_killed_runs_left(tmp_path: Path, sandbox: str) -> None:
    place, template = tmp_path / "place", tmp_path / "template"
    for one in (place, template):
        one.mkdir()
    (template / "a.txt").write_text("a\n")
    mark = f"88{os.getpid()}"
    for number in range(2):
        killed(place, template, sandbox, mark, 0.3 * number)
    own = RunDirectory(str(place))
    remove_dead_runs(str(place))
    assert [one.name for one in place.iterdir()] == [own.path.name]
    assert f"sleep {mark}" not in command_lines()
    assert own.remove()


def test_only_what_dead_runs_left_is_removed(tmp_path: Path) -> None:
    own = RunDirectory(str(tmp_path))
    dead = subprocess.Popen((sys.executable, "-c", ""))
    dead.wait()
    name = own.path.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    other_namespace = own.path.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-1")
    for one in (name, other_namespace, "agentv-x", f"agentv-{dead.pid}-notes"):
        (tmp_path / one).mkdir()
        (tmp_path / one / "file").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / f"{name}y").symlink_to(outside)
    remove_dead_runs(str(tmp_path))
    left = {one.name for one in tmp_path.iterdir()}
    assert left == {own.path.name, other_namespace, "agentv-x", f"agentv-{dead.pid}-notes", "outside", f"{name}y"}


def test_processes_of_a_dead_run_end_with_its_directory(tmp_path: Path) -> None:
    own = RunDirectory(str(tmp_path))
    dead = subprocess.Popen((sys.executable, "-c", ""))
    dead.wait()
    left = Path(str(own.path).replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
    (left / "trials/0001").mkdir(parents=True)
    sleeper = subprocess.Popen(("sleep", "1000"), env={**os.environ, MARK: str(left / "trials/0001")})
    other = subprocess.Popen(("sleep", "1000"), env={**os.environ, MARK: f"{left}-other/trials/0001"})
    try:
        assert processes_of(str(left)) == {sleeper.pid}
        remove_dead_runs(str(tmp_path))
        assert sleeper.wait(timeout=10) < 0
        assert other.poll() is None
        assert not left.exists()
    finally:
        other.kill()
        other.wait()


def test_a_directory_of_a_run_is_closed_to_others(tmp_path: Path) -> None:
    own = RunDirectory(str(tmp_path))
    assert own.path.stat().st_mode & 0o077 == 0
    assert json.dumps(own.places("trials").trial) != json.dumps(own.places("trials").trial)
