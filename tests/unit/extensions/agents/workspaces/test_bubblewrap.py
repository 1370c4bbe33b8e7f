"""What a sandboxed program can reach and see, with real namespaces."""

import socket
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from agentv.extensions.agents.sockets import listening_at
from agentv.extensions.agents.workspaces.bubblewrap import visible_paths
from agentv.extensions.agents.workspaces.choice import Capabilities, chosen_sandbox
from agentv.model.suite.workspace import WorkspaceCommand
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.user_code.processes import run_program
from doubles.opened_workspaces import Place, printed
from needs import needs

CONNECT = """
import socket, sys
def reached(family, address):
    one = socket.socket(family)
    one.settimeout(5)
    try:
        one.connect(address)
    except OSError as error:
        return type(error).__name__ + " " + str(error.errno)
    one.sendall(b"hello")
    one.shutdown(socket.SHUT_WR)
    return b"".join(iter(lambda: one.recv(100), b"")).decode()
"""


@contextmanager
def echoing(listening):
    """Serve on the host and answer with the received bytes in capitals."""

    def serve():
        while True:
            try:
                one, _ = listening.accept()
            except OSError:
                return
            with one, one.makefile("rb") as sent:
                one.sendall(sent.read().upper())

    with listening:
        listening.listen()
        threading.Thread(target=serve, daemon=True).start()
        yield listening
        listening.shutdown(socket.SHUT_RDWR)


def bound(family, address):
    made = socket.socket(family)
    made.bind(address)
    return made


def worked(place, script, forwards=None, *, network="loopback", env=None):
    """Run a shell script in the sandbox; `forwards` returns the ports for the trial's HOME."""

    async def work(workspaces):
        workspace = await workspaces.open(place.spec(network=network), None, place.env)
        assert not isinstance(workspace, Failure), workspace
        with forwards(workspace.sandbox.home) if forwards else nullcontext({}) as ports:
            sandbox = workspace.sandbox.forwarding(ports)
            command = Command(argv=sandbox.argv(("/bin/sh", "-c", script)))
            ended = await run_program(command, stdin=b"in", env=sandbox.environment(env or {}), timeout_s=30)
        await workspace.close(keep=False)
        return ended

    return place.run(work)


@contextmanager
def to_echo(home):
    with echoing(listening_at(f"{home}/echo")):
        yield {61000: f"{home}/echo"}


def python(code):
    return f"python3 - <<'END'\n{CONNECT}\n{code}\nEND\n"


@pytest.fixture
def confined(tmp_path):
    return Place(tmp_path, "bwrap")


@needs("bwrap")
def test_loopback_reaches_the_forwarded_socket_and_nothing_else(confined):
    with (
        echoing(bound(socket.AF_INET, ("127.0.0.1", 0))) as service,
        echoing(bound(socket.AF_UNIX, f"\0agentv-test-{id(confined)}")) as abstract,
    ):
        port = service.getsockname()[1]
        name = abstract.getsockname().decode()
        tried = f"""
print(reached(socket.AF_INET, ("127.0.0.1", 61000)))
print(reached(socket.AF_INET, ("127.0.0.1", {port})))
print(reached(socket.AF_UNIX, {name!r}))
print(reached(socket.AF_INET, ("192.0.2.1", 80)))
print(reached(socket.AF_INET6, ("2001:db8::1", 80)))
"""
        assert printed(worked(confined, python(tried), to_echo)).split("\n")[:-1] == [
            "HELLO",
            "ConnectionRefusedError 111",
            "ConnectionRefusedError 111",
            "OSError 101",
            "OSError 101",
        ]
        socket.create_connection(("127.0.0.1", port)).close()  # the port was reachable all the time


@needs("bwrap")
def test_network_none_has_no_forwarded_port(confined):
    script = python('print(reached(socket.AF_INET, ("127.0.0.1", 61000)))')
    assert printed(worked(confined, script, to_echo, network="none")) == "ConnectionRefusedError 111\n"


@needs("bwrap")
@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("test \"$(cat)\" = in && kill -0 $$ && python3 -c 'import signal, sys; sys.exit(signal.getsignal(13) is 1)'", 0),
        ('yes | head -1 >/dev/null; test -z "$(jobs)"', 0),
        ("sh -c 'kill -TERM 0'; exit 3", 143),
    ],
)  # fmt: skip
def test_the_program_keeps_its_streams_its_signals_and_its_status(confined, script, status):
    ended = worked(confined, script, to_echo)
    assert ended.status % 256 == status % 256, ended


@needs("bwrap")
def test_graders_have_a_loopback_of_their_own_without_the_ports_of_the_agent(confined):
    async def work(workspaces):
        workspace = await workspaces.open(confined.spec(network="loopback"), None, {})
        with to_echo(workspace.sandbox.home):
            await workspace.finish()
            script = python('print(reached(socket.AF_INET, ("127.0.0.1", 61000)))')
            ended = await workspace.run(WorkspaceCommand(shell=script))
        await workspace.close(keep=False)
        return printed(ended)

    assert confined.run(work) == "ConnectionRefusedError 111\n"


@needs("bwrap")
def test_nothing_is_left_running(confined):
    worked(confined, "true", to_echo)
    lines = [one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists()]
    assert not any(b"agentv-sockets" in line and str(confined.root).encode() in line for line in lines)


FOUND = Capabilities("/usr/bin/bwrap", "", True)
MISSING = Capabilities(None, "Install bubblewrap.", False)
NO_BWRAP = "bwrap is not available. Install bubblewrap"


@pytest.mark.parametrize(
    ("asked", "found", "message"),
    [
        ((("bwrap", "none"), "loopback"), MISSING, f"{NO_BWRAP}; `network: loopback` needs `sandbox: bwrap`"),
        ((("none",), "loopback"), FOUND, "`network: loopback` needs `sandbox: bwrap`"),
        ((("bwrap", "none"), "none"), MISSING, f"{NO_BWRAP}; `network: none` needs `sandbox: bwrap`"),
    ],
)
def test_a_closed_network_is_an_error_where_it_cannot_be_had(asked, found, message):
    assert chosen_sandbox(*asked, found) == Failure("sandbox-unavailable", f"nothing was run: {message}")


def is_visible(path: Path, rules: tuple[tuple[str, bool], ...]) -> bool:
    known = dict(rules)
    return next((known[one] for one in map(str, (path, *path.parents)) if one in known), False)


def test_a_tool_is_visible_with_its_installation_and_nothing_beside_it(tmp_path: Path) -> None:
    for name in ("home/node/v20/bin", "home/node/v20/lib", "home/.ssh", "home/.local/bin", "home/.local/share"):
        (tmp_path / name).mkdir(parents=True)
    path = f"{tmp_path}/home/node/v20/bin:{tmp_path}/home/.local/bin:relative:"
    rules = visible_paths(path, (), (str(tmp_path / "home"),))
    assert is_visible(tmp_path / "home/node/v20/lib", rules)
    assert is_visible(tmp_path / "home/.local/bin", rules)
    assert not is_visible(tmp_path / "home/.ssh", rules)
    assert not is_visible(tmp_path / "home/.local/share", rules)


def test_a_directory_of_programs_in_the_project_shows_no_more_of_it(tmp_path: Path) -> None:
    (tmp_path / "project/bin").mkdir(parents=True)
    rules = visible_paths(f"{tmp_path}/project/bin", (), (str(tmp_path / "project"),))
    assert is_visible(tmp_path / "project/bin/tool", rules)
    assert not is_visible(tmp_path / "project/suite.eval.yaml", rules)


def test_a_script_is_visible_and_not_the_directory_that_holds_the_suite(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    script, suite = tmp_path / "project/agent.py", tmp_path / "project/suite.eval.yaml"
    for one in (script, suite):
        one.touch()
    rules = visible_paths("/usr/bin", ("python3", str(script)), (str(tmp_path / "project"),))
    assert is_visible(script, rules)
    assert not is_visible(suite, rules)


def test_a_hidden_file_is_never_visible_though_it_is_named(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden.py"
    hidden.touch()
    rules = visible_paths("/usr/bin", ("python3", str(hidden)), (str(hidden),))
    assert not is_visible(hidden, rules)


def test_what_is_private_within_the_system_is_masked() -> None:
    rules = visible_paths("/usr/bin", (), ("/usr/share/doc",))
    assert is_visible(Path("/usr/share/zoneinfo"), rules)
    assert not is_visible(Path("/usr/share/doc/x"), rules)
    assert not is_visible(Path.home(), rules)
