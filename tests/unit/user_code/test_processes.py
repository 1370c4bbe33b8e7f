import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentv.registry.fields import Command
from agentv.user_code import command_process, processes
from agentv.user_code.command_process import SignalError, acting_on_signals
from agentv.user_code.files import is_alive, sweep
from agentv.user_code.orphans import tree_of
from agentv.user_code.processes import STDERR_KEPT, Finished, kill_all, kill_group, run_program, start_program
from doubles.processes_alive import all_gone, ids_in
from needs import needs

OPEN_FILES = Path("/proc/self/fd")
ENV = {"PATH": os.environ["PATH"]}
FAMILY = (
    "echo $$ >>ids; (echo $(exec sh -c 'echo $PPID') >>ids; sleep 60; true) & sh -c 'echo $$ >>ids; sleep 60; true'"
)
"""A parent with a child in the background and one in the foreground; each writes down its process id."""


def run(command, stdin=b"", timeout_s=10.0, env=None, cwd="", **others):
    command = Command(shell=command, cwd=cwd) if isinstance(command, str) else Command(argv=tuple(command), cwd=cwd)
    return asyncio.run(run_program(command, stdin=stdin, env=env or ENV, timeout_s=timeout_s, **others))


def test_a_program_is_fed_and_heard():
    assert run("cat; echo no >&2; exit 3", b"said") == Finished(3, b"said", b"no\n")
    assert run(["cat"], b"said") == Finished(0, b"said", b"")


def test_more_than_a_pipe_holds_goes_through_both_ways():
    text = bytes(range(256)) * 4000
    assert run(["cat"], text) == Finished(0, text, b"")


def test_it_gets_the_environment_it_is_given_and_no_more():
    found = run(["env"], env={"PATH": os.environ["PATH"], "ONLY": "this"})
    assert sorted(found.stdout.decode().splitlines()) == sorted(["ONLY=this", f"PATH={os.environ['PATH']}"])


@pytest.mark.parametrize(
    ("command", "cwd", "says"),
    [
        (["no-such-program"], "", "cannot start no-such-program: [Errno 2]"),
        (["/bin/cat", "a\0b"], "", "cannot start cat: embedded null byte"),
        (["cat"], "/no/such/directory", "'/no/such/directory'"),
        (["/bin/echo", "a" * 3_000_000], "", "Argument list too long"),
    ],
)
def test_what_cannot_start_is_a_failure(command, cwd, says):
    found = run(command, cwd=cwd)
    assert found.code == "cannot-start"
    assert not found.retryable
    assert says in found.message
    assert len(found.message) < 300


def test_a_program_that_takes_too_long_is_killed_with_its_children(tmp_path):
    started = time.monotonic()
    found = run(FAMILY, cwd=str(tmp_path), timeout_s=0.3)
    assert (found.code, found.retryable) == ("timeout", True)
    assert time.monotonic() - started < 2
    assert all_gone(ids_in(tmp_path / "ids", 3))


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
async def test_however_early_the_cancellation_comes(tmp_path, turns):
    before = set(processes._alive)
    task = asyncio.ensure_future(
        run_program(Command(shell=FAMILY, cwd=str(tmp_path)), stdin=b"", env=ENV, timeout_s=60)
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    started = processes._alive - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all_gone(list(started))


def test_what_it_leaves_running_is_killed_at_its_end(tmp_path):
    assert run("(sleep 60 >/dev/null 2>&1) & echo $! >ids; echo done", cwd=str(tmp_path)).stdout == b"done\n"
    assert all_gone(ids_in(tmp_path / "ids", 1))


def test_a_child_that_keeps_the_output_open_holds_nobody_up(tmp_path):
    started = time.monotonic()
    assert run("sleep 60 & echo $! >ids; echo done; exit 4", cwd=str(tmp_path)) == Finished(4, b"done\n", b"")
    assert time.monotonic() - started < 2
    assert all_gone(ids_in(tmp_path / "ids", 1))


@needs("setsid")
def test_nor_does_one_that_left_the_group(tmp_path):
    started = time.monotonic()
    assert run("setsid sleep 60 & echo $! >ids; echo done", cwd=str(tmp_path)).stdout == b"done\n"
    assert time.monotonic() - started < 2
    os.kill(ids_in(tmp_path / "ids", 1)[0], 9)


def test_too_much_is_a_failure_at_once(tmp_path):
    found = run("echo $$ >ids; exec yes", cwd=str(tmp_path), limit=1_000_000)
    assert (found.code, found.message) == ("output-too-large", "the command printed more than 1 MB")
    assert all_gone(ids_in(tmp_path / "ids", 1))


def test_of_a_long_log_the_end_is_kept():
    found = run("head -c 3000000 /dev/zero >&2; echo END >&2; echo ok", limit=1000)
    assert found.stdout == b"ok\n"
    assert len(found.stderr) == STDERR_KEPT
    assert found.stderr.endswith(b"\0END\n")


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="this system does not list open files")
def test_pipes_are_closed_whatever_happens():
    before = len(list(OPEN_FILES.iterdir()))
    run("cat", b"a"), run("sleep 9", timeout_s=0.01), run("yes", limit=10), run(["no-such-program"])
    assert len(list(OPEN_FILES.iterdir())) == before


async def test_an_interrupted_run_kills_all_that_is_alive(tmp_path):
    call = run_program(Command(shell=FAMILY, cwd=str(tmp_path)), stdin=b"", env=ENV, timeout_s=60)
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    ids = await asyncio.to_thread(ids_in, tmp_path / "ids", 3)
    kill_all()
    assert not processes._alive
    assert (await task).status == -9
    assert all_gone(ids)


@pytest.mark.parametrize("turns", range(14))
def test_a_start_that_is_cancelled_ends_and_leaves_no_program(tmp_path, turns):
    """Cancelled at each turn of the loop. At some of them, asyncio alone waits for the program without killing it."""
    note = tmp_path / "id"
    command = Command(argv=("sh", "-c", f"echo $$ > {note}; exec sleep 60"))

    async def cancelled() -> None:
        task = asyncio.create_task(start_program(command, env=dict(os.environ)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        try:
            async with asyncio.timeout(30):
                process = await task
        except asyncio.CancelledError:
            return
        kill_group(process.pid)
        await process.wait()

    asyncio.run(cancelled())
    assert all_gone([int(note.read_text())] if note.exists() and note.read_text() else [])


def test_outside_of_a_run_a_signal_is_an_interrupt_that_no_guard_takes_for_users_code():
    with acting_on_signals(command_process._raise), pytest.raises(SignalError):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_what_is_ignored_stays_ignored_but_for_what_always_ends_a_run():
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGHUP, signal.SIGINT)}
    try:
        seen: list[int] = []
        with acting_on_signals(seen.append):
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGINT)
        assert seen == [signal.SIGINT]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def dead():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_what_the_dead_left_long_ago_is_removed(tmp_path, dead):
    own, left, young = (tmp_path / name for name in (f".a.{os.getpid()}.new", f".a.{dead}.new", ".a.0999999999.new"))
    link, other = tmp_path / f".a.0{dead}.new", tmp_path / ".b.1.new"
    for path in (own, left, young, other):
        path.touch()
    link.symlink_to(other)
    for path in (own, left, other):
        os.utime(path, (0, 0))
    (tmp_path / f".a.00{dead}.new").mkdir()
    os.utime(tmp_path / f".a.00{dead}.new", (0, 0))
    sweep(tmp_path, r"\.a\.(\d+)\.new")
    assert sorted(tmp_path.iterdir()) == sorted([own, young, other, link])


def test_who_runs_is_alive(dead):
    assert is_alive(os.getpid())
    assert not is_alive(dead)
    assert is_alive(10**30)


def test_a_tree_is_all_that_is_below():
    parents = {2: 1, 3: 2, 4: 3, 5: 1, 6: 9}
    assert tree_of([2], parents) == {2, 3, 4}
    assert tree_of([2, 6], parents) == {2, 3, 4, 6}
