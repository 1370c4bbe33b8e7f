import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from agentv.app.settings import EvalSettings
from agentv.cli.main import cli
from agentv.errors import LoadError
from agentv.extensions.agents.commands.checking import check_cases
from agentv.extensions.datasets.converting import DatasetRequest
from agentv.extensions.datasets.harbor import from_harbor
from needs import require

CONFIG = """\
schema_version = "1.4"
[task]
name = "acme/hello"
description = "Writes a file"
[metadata]
difficulty = "easy"
[agent]
timeout_sec = 120.0
[verifier]
timeout_sec = 60
env = { NAME = "${WHO:-world}" }
[environment]
env = { SHOP = "1" }
"""
TEST = """\
import os
from pathlib import Path
def test_hello():
    assert Path("/app/hello.txt").read_text() == f"hello {os.environ['NAME']}"
"""
TASK = {
    "task.toml": CONFIG,
    "instruction.md": "Write a greeting into /app/hello.txt. Mind {{ braces }}.\n",
    "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\n# the greeting\nCOPY --chown=me \\\n  greeting.txt ./\nCOPY src lib/\n",
    "environment/greeting.txt": "hello",
    "environment/src/a.py": "",
    "tests/test.sh": "#!/bin/sh\npython3 -m pytest -q -p no:agentv -p no:cacheprovider /tests/test_outputs.py && r=1\necho ${r:-0} > /logs/verifier/reward.txt\n",
    "tests/test_outputs.py": TEST,
    "solution/solve.sh": '#!/bin/sh\nprintf "%s world" "$(cat greeting.txt)" > /app/hello.txt\n',
}  # fmt: skip


def task(name: str = "hello", **changed: str | None) -> Path:
    """Write a task with some files replaced, or removed by None."""
    place = Path("tasks", name)
    for path, text in {**TASK, **changed}.items():
        if text is not None:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
    return place


def converted(source: str) -> dict[str, Any]:
    (path,) = from_harbor(DatasetRequest(Path(source), "harbor", (), "yaml", None), dict(os.environ)).paths
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_solutions_pass_and_an_untouched_workspace_fails(project: Path) -> None:
    """The scripts find `/app`, `/tests` and `/logs`; a reward may be JSON with one field that counts."""
    require("bwrap")
    task()
    rewards = '#!/bin/sh\n[ -f /app/hello.txt ] && r=1\necho "{\\"reward\\": ${r:-0}, \\"style\\": 0.5}" > /logs/verifier/reward.json\n'
    task("json", **{"tests/test.sh": rewards})
    task("none", **{"tests/test.sh": "#!/bin/sh\necho 1 > /logs/reward.txt\n"})
    converted("tasks")
    report = check_cases(EvalSettings(paths=("tasks.eval.yaml",)), oracle=True)
    found = [(one.case, one.message) for one in report.problems]
    missing = "the command writes no .harbor/logs/verifier/reward.json or .harbor/logs/verifier/reward.txt"
    assert (report.cases, report.solved) == (3, 3)
    assert {case for case, _ in found} == {"none"}
    assert all(missing in said for _, said in found)


def test_a_task_is_a_case(project: Path) -> None:
    task()
    done = CliRunner().invoke(cli, ["convert", "--from", "harbor", "tasks/hello"])
    assert (done.exit_code, done.stderr) == (0, "wrote tasks/hello.eval.yaml\n  1 case, checked by their rewards\n")
    (case,) = yaml.safe_load(Path("tasks/hello.eval.yaml").read_text())["tests"]
    workspace = case["workspace"]
    assert workspace["files"] == {"greeting.txt": "./hello/environment/greeting.txt", "lib": "./hello/environment/src"}
    assert (workspace["mounts"]["/app"], workspace["env"], case["sandbox"]) == (".", {"SHOP": "1"}, ["docker", "bwrap"])
    assert case["assert"][0]["env"] == {"NAME": '{{ env.WHO | default("world") }}'}
    assert (case["timeout_s"], case["metadata"]) == (120.0, {"difficulty": "easy", "task": "acme/hello"})


@pytest.mark.parametrize(
    "dockerfile",
    [
        "FROM debian:12\nWORKDIR /app\nRUN apt-get install -y jq\n",
        "FROM debian:12\nWORKDIR /usr/src/app\n",
        "FROM debian:12\nWORKDIR /app\nCOPY greeting.txt /etc/greeting\n",
        "FROM debian:12\nWORKDIR /app\nCOPY src ./\nCOPY tests ./\n",
        "FROM node AS a\nFROM debian:12\nWORKDIR /app\nCOPY --from=a /x /app/x\n",
    ],
)
def test_a_dockerfile_that_does_more_than_copy_needs_docker(project: Path, dockerfile: str) -> None:
    task(**{"environment/Dockerfile": dockerfile})
    (case,) = converted("tasks")["tests"]
    assert case["sandbox"] == "docker"
    assert case["workspace"]["docker"]["workdir"] in ("/app", "/usr/src/app")
    assert list(case["workspace"]["mounts"]) == ["/tests", "/logs", "/solution"]


@pytest.mark.parametrize(
    ("changed", "message", "hint"),
    [
        ({"environment/docker-compose.yaml": "services: {}"}, "the task has services (environment/docker-compose.yaml), which are not supported", "a task that runs in the one container of its Dockerfile is"),
        ({"task.toml": "[[steps]]\nname = 'a'\n"}, "the task has several steps ('steps'), which is not supported", None),
        ({"task.toml": "[verifier]\nenvironment_mode = 'separate'\n"}, "the task has a verifier in a container of its own ('verifier'), which is not supported", None),
        ({"task.toml": "[environment]\nos = 'windows'\n"}, "the task has another system than Linux ('os'), which is not supported", None),
        ({"instruction.md": None}, "the task has no instruction.md, or an empty one", None),
        ({"task.toml": "[agent]\ntimeout_sec = 'soon'\n"}, "'timeout_sec' of 'agent' must be a number of seconds, found 'soon'", None),
        ({"environment/Dockerfile": "FROM debian:12\n"}, "the task names no working directory", "add WORKDIR to its Dockerfile"),
        ({"environment/Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY 'a b\n"}, "a line of the Dockerfile cannot be read: COPY 'a b", None),
        ({"environment/Dockerfile": None}, "the task has no environment/Dockerfile, and names no docker_image", None),
        ({"task.toml": "x ="}, "this is no TOML: Invalid value (at end of document)", None),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named(project, changed, message, hint):
    task(**changed)
    with pytest.raises(LoadError) as caught:
        converted("tasks")
    first, *_ = caught.value.diagnostics
    assert (first.message, first.hint) == (f"hello: {message}", hint)
    assert not Path("tasks.eval.yaml").exists()
