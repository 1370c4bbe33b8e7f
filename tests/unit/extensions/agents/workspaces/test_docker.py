"""Docker command lines, recorded by a fake client: no container is started."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from agentv.extensions.agents.workspaces import choice as module
from agentv.extensions.agents.workspaces.choice import capabilities
from agentv.model.suite.workspace import DockerImage, WorkspaceCommand
from doubles.opened_workspaces import Place, printed

CLIENT = '''#!{python}
"""Records its command lines, and runs what it is to run in a container on this machine."""
import json, os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([words, dict(os.environ)]) + "\\n")
if words[0] == "version":
    print("28.0")
elif words[0] == "build":
    print("sha256:built")
    sys.exit(1 if "broken" in words[-1] else 0)
elif words[0] == "ps":
    print("container-1 container-2" if "label=agentv.workspace" in words[-1] else "")
elif words[0] == "run":
    place = next(n for n, word in enumerate(words) if word in ("debian:12", "sha256:built"))
    env, mounted = {{}}, {{}}
    options = words[1:place]
    for name, value in zip(options, options[1:]):
        if name == "--mount":
            _, source, target = (part.partition("=")[2] for part in value.split(","))
            mounted[target] = source
        if name == "--env":
            key, found, text = value.partition("=")
            env[key] = text if found else os.environ[key]
    env["PATH"] = "/usr/bin:/bin"
    os.chdir(options[options.index("--workdir") + 1])
    os.execvpe(words[place + 1], [mounted.get(word, word) for word in words[place + 1 :]], env)
'''


class Client:
    def __init__(self, log: Path) -> None:
        self.log = log

    def calls(self, name: str) -> list[tuple[list[str], dict[str, str]]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [(words[1:], env) for words, env in lines if words[0] == name]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    program, log = tmp_path / "bin/docker", tmp_path / "log.jsonl"
    program.parent.mkdir()
    program.write_text(CLIENT.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere")
    module._docker.cache_clear()
    yield Client(log)
    module._docker.cache_clear()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "docker", env={"OF_SUITE": "secret"})


DEBIAN = DockerImage(image="debian:12")


def values(options: list[str], name: str) -> list[str]:
    return [value for option, value in pairwise(options) if option == name]


def test_a_program_runs_in_a_container_with_the_workspace_and_nothing_else(
    client: Client, place: Place, tmp_path: Path
) -> None:
    place.file("template/a.txt", "a\n")
    recipe = DockerImage(image="debian:12", mounts=("/data:/data:ro",))
    trial = place.trial(
        "cat a.txt; echo $OF_SUITE; echo b > b.txt", docker=recipe, network="none", grade="cat b.txt; echo $OF_SUITE"
    )
    assert printed(trial.agent) == "a\nsecret\n"
    assert printed(trial.graded) == "b\nsecret\n"
    assert trial.kinds == {"b.txt": "added"}
    (options, env), (graded, _) = client.calls("run")
    top = Path(trial.path).parent
    assert values(options, "--mount") == [
        f"type=bind,source={trial.path},target={trial.path}",
        f"type=bind,source={top}/home,target={top}/home",
        f"type=bind,source={top}/tmp,target=/tmp",
    ]
    assert values(options, "--volume") == ["/data:/data:ro"]
    assert values(options, "--network") == ["none"]
    assert values(options, "--user") == [f"{os.getuid()}:{os.getgid()}"]
    assert values(options, "--workdir") == [trial.path]
    assert {"--rm", "--interactive", "--init"} <= set(options)
    assert "OF_SUITE" in values(options, "--env")
    assert f"HOME={top}/home" in values(options, "--env")
    assert not {"PATH", "DOCKER_HOST"} & set(values(options, "--env"))
    assert not any("secret" in word for word in options)
    assert (env["DOCKER_HOST"], env["HOME"]) == ("tcp://elsewhere", str(Path.home()))
    assert f"type=bind,source={top}/home,target={top}/home" not in values(graded, "--mount")


def test_a_working_directory_of_the_image_is_the_workspace(client: Client, place: Place, tmp_path: Path) -> None:
    place.trial("true", docker=DockerImage(image="debian:12", workdir=str(tmp_path)))
    (options, _) = client.calls("run")[0]
    assert values(options, "--workdir") == [str(tmp_path)]
    assert any(one.endswith(f",target={tmp_path}") for one in values(options, "--mount"))


def test_an_empty_workspace_has_the_files_of_the_image(client: Client, place: Place, tmp_path: Path) -> None:
    place.file("image/lib/a.txt", "a\n")
    recipe = DockerImage(image="debian:12", workdir=str(tmp_path / "image"))
    trial = place.trial("true", template=None, docker=recipe, keep=True)
    assert trial.kinds == {}
    assert Path(str(trial.closed), "lib/a.txt").read_text() == "a\n"


def test_further_paths_of_the_workspace_are_for_graders(client: Client, place: Place, tmp_path: Path) -> None:
    """An agent could replace the directory by a link, which docker would follow; then it is not mounted."""
    for script, expected in (("true", ["/tests"]), ("ln -s /etc tests", [])):
        client.log.unlink(missing_ok=True)
        trial = place.trial(script, grade="true", docker=DEBIAN, mounts={"/tests": "tests"})
        (options, _), (graded, _) = client.calls("run")
        further = set(values(graded, "--mount")) - set(values(options, "--mount"))
        shown = [one for one in further if one.endswith("=/tests")]
        assert shown == [f"type=bind,source={trial.path}/tests,target={one}" for one in expected]


def test_containers_that_outlive_their_client_are_removed(client: Client, place: Place, tmp_path: Path) -> None:
    trial = place.trial("true", docker=DEBIAN)
    label = f"label=agentv.workspace={Path(trial.path).parent}"
    assert client.calls("ps")[0][0] == ["--all", "--quiet", "--filter", label]
    assert client.calls("rm")[0][0] == ["--force", "--volumes", "container-1", "container-2"]


def test_an_image_is_built_once(client: Client, place: Place, tmp_path: Path) -> None:
    recipe = DockerImage(context=str(tmp_path / "image"), dockerfile="Dockerfile.agent")
    place.trial("true", docker=recipe, setup=(WorkspaceCommand(shell="echo x > x"),))
    ((options, _),) = client.calls("build")
    assert options == ["--quiet", "--file", f"{recipe.context}/Dockerfile.agent", recipe.context]
    assert len(client.calls("run")) == 2


def test_what_docker_cannot_do_is_a_failure(client: Client, place: Place, tmp_path: Path) -> None:
    for keys in (
        {"docker": DockerImage(context="broken")},
        {"docker": DockerImage()},
        {"docker": DEBIAN, "network": "loopback"},
    ):
        trial = place.trial("true", **keys)
        assert trial.opened.code == "sandbox-unavailable"


def test_without_a_daemon_the_problem_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    module._docker.cache_clear()
    try:
        assert capabilities().docker is None
        assert capabilities().docker_problem.startswith("Cannot connect to the Docker daemon. Start")
        module._docker.cache_clear()
        program.unlink()
        assert capabilities().docker_problem == "Install Docker, whose `docker` must be on PATH."
        trial = Place(tmp_path, "docker").trial("true")
        assert "docker is not available. Install Docker" in str(trial.opened)
    finally:
        module._docker.cache_clear()
