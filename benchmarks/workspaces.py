#!/usr/bin/env python3
"""Time and disk of workspaces, and what killed runs leave behind.

benchmarks/workspaces.py overhead         a trial in 1,000 files, over the agent's own time
benchmarks/workspaces.py trials           100 trials at 8 workers in a repository of 50 MB: time, disk
benchmarks/workspaces.py copies           ways to give a trial a repository of its own
benchmarks/workspaces.py kills [COUNT]    runs killed at random moments; processes and directories after the next start
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agentv.app.wiring import WorkspaceSettings
from agentv.extensions.agents.workspaces.choice import capabilities
from agentv.extensions.agents.workspaces.directories import RunDirectory, remove_dead_runs
from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces
from agentv.model.suite.workspace import CopiedFiles, SandboxName, WorkspaceRepository, WorkspaceSpec
from agentv.model.values.response import Failure
from agentv.model.values.trace import WorkspaceChanges
from agentv.registry.fields import Command
from agentv.user_code.processes import run_program

AGENT = "sleep 0.2; echo changed >> file-1.txt; echo new > new.txt"
KILLED_AGENT = "mkdir d; chmod 500 d; (setsid env -i /bin/sleep {mark} >/dev/null 2>&1 &) ; sleep {mark}"
TRIALS, WORKERS, MEGABYTES = 100, 8, 50


def sandboxes() -> tuple[SandboxName, ...]:
    return ("none", "bwrap") if capabilities().bwrap else ("none",)


def git(place: Path, *words: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false")
    subprocess.run(("git", *named, *words), cwd=place, check=True, capture_output=True)


def files(place: Path, count: int, size: int) -> None:
    """So many text files of so many bytes, in directories of 50."""
    for number in range(count):
        folder = place / (f"folder-{number // 50}" if number >= 50 else "")
        folder.mkdir(parents=True, exist_ok=True)
        line = f"{random.random()} is line of file {number}\n"
        (folder / f"file-{number}.txt").write_text((line * (size // len(line) + 1))[:size])


def repository(place: Path) -> Path:
    place.mkdir()
    files(place, MEGABYTES * 20, 50_000)
    git(place, "init", "-q", ".")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "all")
    return place


async def trial(workspaces: LocalWorkspaces, spec: WorkspaceSpec, script: str = AGENT) -> tuple[float, float]:
    """Seconds that the agent took from the start of its program on, and the whole trial."""
    began = time.monotonic()
    workspace = await workspaces.open(spec, None, {})
    if isinstance(workspace, Failure):
        raise SystemExit(workspace.message)
    started = time.monotonic()
    command = Command(argv=workspace.sandbox.argv(("/bin/sh", "-c", script)))
    await run_program(command, stdin=b"", env=workspace.sandbox.environment({}), timeout_s=60)
    worked = time.monotonic() - started
    changes = await workspace.finish()
    if not isinstance(changes, WorkspaceChanges) or len(changes.files) != 2:
        raise SystemExit(str(changes))
    await workspace.close(keep=False)
    return worked, time.monotonic() - began


async def bare(script: str, place: Path) -> float:
    """Seconds that the same program takes alone."""
    began = time.monotonic()
    command = Command(argv=("/bin/sh", "-c", script), cwd=str(place))
    await run_program(command, stdin=b"", env=dict(os.environ), timeout_s=60)
    return time.monotonic() - began


async def overhead(room: Path) -> None:
    template = room / "template"
    template.mkdir()
    files(template, 1000, 2_000)
    own = shutil.copytree(template, room / "own")
    alone = statistics.median([await bare(AGENT, own) for _ in range(10)])
    for sandbox in sandboxes():
        workspaces = LocalWorkspaces(WorkspaceSettings(directory=str(room)))
        spec = WorkspaceSpec(template=CopiedFiles(str(template)), sandbox=(sandbox,))
        await trial(workspaces, spec)
        cpu = cpu_s()
        found = [await trial(workspaces, spec) for _ in range(20)]
        cpu = (cpu_s() - cpu) / len(found)
        await workspaces.close()
        started = statistics.median(worked for worked, _ in found) - alone
        whole = statistics.median(took for _, took in found) - alone
        print(f"{sandbox:6} {whole * 1000:6.0f} ms over the agent's own {alone * 1000:.0f} ms", end="")
        print(f", of which {started * 1000:.0f} ms to start it; {cpu * 1000:.0f} ms of CPU in all")


def cpu_s() -> float:
    """CPU time of this process and of all that it has waited for."""
    return sum(os.times()[:4])


def used_mb(place: Path) -> float:
    printed = subprocess.run(("du", "-sk", place), capture_output=True, check=False).stdout.split()
    return int(printed[0]) / 1000 if printed else 0.0


async def trials(room: Path) -> None:
    origin = repository(room / "origin")
    for sandbox in sandboxes():
        place = room / sandbox
        place.mkdir()
        began, cpu = time.monotonic(), cpu_s()
        most = await trials_in(place, sandbox, origin)
        took, cpu = time.monotonic() - began, cpu_s() - cpu
        print(f"{sandbox:6} {TRIALS} trials at {WORKERS} workers: {took:.1f} s, {cpu:.1f} s of CPU", end="")
        print(f", at most {most:.0f} MB on disk")


async def trials_in(place: Path, sandbox: SandboxName, origin: Path) -> float:
    """Run all trials; the most megabytes that they took at once."""
    workspaces = LocalWorkspaces(WorkspaceSettings(directory=str(place)))
    spec = WorkspaceSpec(repositories=(WorkspaceRepository(str(origin)),), sandbox=(sandbox,))
    gate, most = asyncio.Semaphore(WORKERS), [0.0]

    async def one(number: int) -> None:
        async with gate:
            await trial(workspaces, spec)
            if number % 20 == 10:
                most.append(await asyncio.to_thread(used_mb, place))

    await asyncio.gather(*(one(number) for number in range(TRIALS)))
    await workspaces.close()
    return max(most)


def copies(room: Path) -> None:
    origin = repository(room / "origin")
    ways = {
        "copy (cp --reflink=auto)": lambda to: subprocess.run(
            ("cp", "-R", "-P", "--reflink=auto", "--preserve=mode,timestamps", "-T", origin, to), check=True
        ),
        "git clone --shared": lambda to: git(room, "clone", "-q", "--shared", str(origin), str(to)),
        "git clone --shared --dissociate": lambda to: git(
            room, "clone", "-q", "--shared", "--dissociate", str(origin), str(to)
        ),
        "git clone --no-hardlinks": lambda to: git(room, "clone", "-q", "--no-hardlinks", str(origin), str(to)),
    }
    for name, copy in ways.items():
        times = []
        for number in range(5):
            to = room / f"to-{number}"
            began = time.monotonic()
            copy(to)
            times.append(time.monotonic() - began)
            size = used_mb(to)
            shutil.rmtree(to)
        print(f"{name:32} {statistics.median(times) * 1000:6.0f} ms, {size:.0f} MB")


async def killed_run(place: str, template: str, sandbox: SandboxName, mark: str) -> None:
    """Trials without an end; the process is killed."""
    workspaces = LocalWorkspaces(WorkspaceSettings(directory=place))

    async def work() -> None:
        while True:
            spec = WorkspaceSpec(template=CopiedFiles(template), sandbox=(sandbox,))
            workspace = await workspaces.open(spec, None, {})
            assert not isinstance(workspace, Failure), workspace
            print(flush=True)
            command = Command(argv=workspace.sandbox.argv(("/bin/sh", "-c", KILLED_AGENT.format(mark=mark))))
            await run_program(command, stdin=b"", env=workspace.sandbox.environment({}), timeout_s=0.3)
            await workspace.finish()
            await workspace.close(keep=False)

    await asyncio.gather(work(), work())


def left_running(mark: str) -> int:
    lines = subprocess.run(("ps", "axo", "args"), capture_output=True, text=True, check=True).stdout.splitlines()
    return sum(mark in line and str(os.getpid()) not in line.split() for line in lines)


def kills(room: Path, count: int) -> None:
    template, place = room / "template", room / "place"
    for one in (template, place):
        one.mkdir()
    files(template, 50, 500)
    mark, moments = f"99{os.getpid()}", random.Random(7)
    before: list[tuple[int, int]] = []
    for number in range(count):
        sandbox = sandboxes()[number % len(sandboxes())]
        argv = (sys.executable, __file__, "killed-run", str(place), str(template), sandbox, mark)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(moments.uniform(0, 1.5))
            run.send_signal(signal.SIGKILL)
            run.wait()
            before.append((left_running(mark), len(list(place.iterdir()))))
    own = RunDirectory(str(place))
    remove_dead_runs(str(place))
    directories = len(list(place.iterdir())) - 1
    own.remove()
    processes, places = (max(kind) for kind in zip(*before, strict=True))
    print(f"{count} kills: at once, up to {processes} processes and {places} directories", end="")
    print(f"; after the next start, {left_running(mark)} and {directories}")


def main(work: str, *words: str) -> None:
    if work == "killed-run":
        place, template, sandbox, mark = words
        asyncio.run(killed_run(place, template, "bwrap" if sandbox == "bwrap" else "none", mark))
        return
    with tempfile.TemporaryDirectory(prefix="workspaces-benchmark-") as name:
        room = Path(name)
        if work == "overhead":
            asyncio.run(overhead(room))
        elif work == "trials":
            asyncio.run(trials(room))
        elif work == "copies":
            copies(room)
        else:
            kills(room, int(words[0]) if words else 100)


if __name__ == "__main__":
    main(*sys.argv[1:])
