"""Converts Harbor's tasks: directories with instruction, environment, tests and solution (AGENTS.md section 11).

A task runs in the container of its Dockerfile. If that only copies files, the task can run in bubblewrap too. `/tests`,
`/logs` and `/solution` are mounts of workspace directories, so that the task's scripts run unchanged.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, field

from agentv.authoring.convert.records import Findings
from agentv.authoring.source.nodes import NOWHERE, MapNode, mapping, node_of
from agentv.errors import UsageError
from agentv.extensions.datasets.cases import escaped_case
from agentv.extensions.datasets.converting import ConvertedDataset, DatasetRequest, SuiteContent, write_suite
from agentv.model.suite.workspace import SYSTEM_DIRECTORIES
from agentv.model.values.values import Span

_FILE = "task.toml"
_PLACE = ".harbor"
"""Directory of the workspace with the contents of Harbor's `/tests`, `/logs` and `/solution`."""

_TIMEOUT_S = 600.0
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
_WITHOUT_EFFECT = frozenset({"FROM", "ENV", "LABEL", "ARG", "CMD", "ENTRYPOINT", "EXPOSE", "MAINTAINER", "STOPSIGNAL"})
"""Instructions that change no file; a Dockerfile with only these needs no container."""

_UNSUPPORTED = ("cpus", "memory_mb", "memory", "storage_mb", "storage", "gpus", "gpu_types", "tpu", "healthcheck")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def from_harbor(request: DatasetRequest, process_env: Mapping[str, str]) -> ConvertedDataset:
    """Write tasks of Harbor as a suite that refers to their files.

    Args:
        request: what to convert, a task or a directory of tasks.
        process_env: the environment in which the suite is loaded.

    Raises:
        LoadError, UsageError, OSError: as in `from_dataset`.
    """
    source = request.source
    tasks = [source] if (source / _FILE).is_file() else sorted(one.parent for one in source.glob(f"*/{_FILE}"))
    if not tasks:
        raise UsageError(f"{source} contains no tasks of Harbor", f"a task is a directory with {_FILE}")
    findings = Findings()
    beside = (request.out or source).absolute().parent
    cases = (case for one in tasks if (case := _Task(one, beside, findings).case()) is not None)
    content = SuiteContent({"threshold": node_of(1, NOWHERE)}, cases, "their rewards", findings)
    with ExitStack() as undo:
        return write_suite(request, content, undo, process_env)


class _Environment(Struct):
    """The environment that a Dockerfile defines.

    Attributes:
        workdir: its last working directory; empty if it has none.
        files: path in the workspace → path of the file or directory that is copied there.
        needs_container: the image or the first line that requires a container; empty if none exists.
    """

    workdir: str = ""
    files: dict[str, str] = field(default_factory=dict)
    needs_container: str = ""


class _Task:
    """One task.

    Args:
        directory: its directory.
        beside: the directory of the suite.
        findings: collects diagnostics.
    """

    def __init__(self, directory: Path, beside: Path, findings: Findings) -> None:
        self._directory = directory
        self._beside = beside
        self._findings = findings
        self._config: dict[str, Any] = {}
        self._failed = False

    def case(self) -> MapNode | None:
        """The case, or None if the task is invalid or not supported, which is reported."""
        try:
            self._config = tomllib.loads((self._directory / _FILE).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self._wrong("bad-value", f"this is no TOML: {error}")
            return None
        for name in ("instruction.md", "tests/test.sh"):
            file = self._directory / name
            if (not file.is_file() or not file.read_bytes().strip()) and not self._table("steps"):
                self._wrong("missing-file", f"the task has no {name}, or an empty one")
        for part in ("agent", "verifier"):
            limit = self._table(part).get("timeout_sec", 1.0)
            if not isinstance(limit, int | float) or not 0 < limit < math.inf:
                self._wrong("bad-value", f"'timeout_sec' of '{part}' must be a number of seconds, found {limit!r}")
        self._report_unsupported()
        found = self._environment()
        if self._failed:
            return None
        made = mapping({key: node_of(one, self._at) for key, one in self._case_data(found).items()}, self._at)
        case = escaped_case(made, self._findings)
        check = node_of([self._check()], self._at)
        return None if case is None else mapping({**case.items, "assert": check}, self._at)

    def _report_unsupported(self) -> None:
        """Report parts of the task that have no equivalent."""
        environment, verifier = self._table("environment"), self._table("verifier")
        services = next((one for one in _COMPOSE if (self._directory / "environment" / one).is_file()), None)
        if services is not None:
            message = f"the task has services (environment/{services}), which are not supported"
            self._wrong("no-equivalent", message, "a task that runs in the one container of its Dockerfile is")
        separate = verifier.get("environment") or verifier.get("environment_mode") == "separate"
        for key, wrong, what in (
            ("steps", self._table("steps"), "several steps"),
            ("os", environment.get("os", "linux") != "linux", "another system than Linux"),
            ("mcp_servers", environment.get("mcp_servers"), "MCP servers"),
            ("verifier", separate, "a verifier in a container of its own"),
        ):  # fmt: skip
            if wrong:
                self._wrong("no-equivalent", f"the task has {what} ('{key}'), which is not supported")
        ignored = [key for key in _UNSUPPORTED if environment.get(key)]
        if environment.get("network_mode", "public") != "public" or environment.get("allow_internet") is False:
            ignored.append("network_mode")
        if ignored:
            self._findings.omitted(self._at, f"'environment' of the task: {', '.join(ignored)} is omitted")

    def _environment(self) -> _Environment:
        """The environment that the Dockerfile defines, with the working directory of task.toml if it has one."""
        table, file = self._table("environment"), self._directory / "environment" / "Dockerfile"
        found = _Environment(needs_container=str(table.get("docker_image") or ""))
        if file.is_file() and not found.needs_container:
            for line in re.sub(r"\\\r?\n", " ", file.read_text(encoding="utf-8", errors="replace")).splitlines():
                if line.strip() and not line.lstrip().startswith("#"):
                    try:
                        _apply_instruction(line.split(maxsplit=1), found, file.parent)
                    except ValueError:
                        self._wrong("bad-value", f"a line of the Dockerfile cannot be read: {line.strip()}")
        elif not found.needs_container:
            self._wrong("missing-file", "the task has no environment/Dockerfile, and names no docker_image")
        found.workdir = str(table.get("workdir") or found.workdir)
        if not found.workdir.startswith("/") or found.workdir == "/":
            self._wrong("no-equivalent", "the task names no working directory", "add WORKDIR to its Dockerfile")
        return found

    def _case_data(self, found: _Environment) -> dict[str, Any]:
        environment = self._table("environment")
        confined = not found.needs_container and PurePosixPath(found.workdir).parts[1] not in SYSTEM_DIRECTORIES
        image = environment.get("docker_image")
        docker = {"image": image} if image else {"context": self._path("environment")}
        mounts = {f"/{name}": f"{_PLACE}/{name}" for name in ("tests", "logs", "solution")}
        workspace = {
            "docker": {**docker, "workdir": found.workdir},
            "mounts": {**({found.workdir: "."} if confined else {}), **mounts},
            "files": {place: self._path(f"environment/{path}") for place, path in found.files.items()},
            "hidden": {f"{_PLACE}/tests": self._path("tests")},
            "env": _env(environment),
            "ignore": [f"{_PLACE}/**"],
        }
        solve, env = f"{_PLACE}/solution/solve.sh", _env(self._table("solution"))
        command = {"command": f"chmod +x {solve} && {solve}", **({"env": env} if env else {})}
        solution = {"files": {f"{_PLACE}/solution": self._path("solution")}, "commands": [command]}
        task = self._table("task")
        made = {
            "id": self._directory.resolve().name,
            "description": task.get("description"),
            "input": (self._directory / "instruction.md").read_text(encoding="utf-8", errors="replace"),
            "timeout_s": self._table("agent").get("timeout_sec"),
            "sandbox": ["docker", "bwrap"] if confined else "docker",
            "workspace": {key: one for key, one in workspace.items() if one},
            "solution": solution if (self._directory / "solution" / "solve.sh").is_file() else None,
            "metadata": {**self._table("metadata"), **({"task": task["name"]} if "name" in task else {})},
        }
        return {key: one for key, one in json.loads(json.dumps(made, default=str)).items() if one}

    def _check(self) -> dict[str, Any]:
        """The assertion that runs the tests. Its `env` may have placeholders, unlike the texts of the task."""
        logs = shlex.join(f"{_PLACE}/logs/{name}" for name in ("verifier", "agent", "artifacts"))
        tests, env = f"{_PLACE}/tests/test.sh", _env(self._table("verifier"))
        return {
            "type": "command",
            "command": f"mkdir -p {logs} && chmod +x {tests} && {tests}",
            "parse": "reward",
            "path": f"{_PLACE}/logs/verifier",
            "timeout_s": self._table("verifier").get("timeout_sec", _TIMEOUT_S),
            **({"env": env} if env else {}),
        }

    def _table(self, name: str) -> Any:
        """A table of task.toml; empty if none exists. `steps` is returned as it is."""
        found = self._config.get(name)
        return found if isinstance(found, dict) or name == "steps" else {}

    def _path(self, name: str) -> str:
        """A path in the task's directory, relative to the suite."""
        return "./" + os.path.relpath(self._directory.absolute() / name, self._beside)

    @property
    def _at(self) -> Span:
        return Span(str(self._directory / _FILE), 1, 1, 1, 1)

    def _wrong(self, code: str, message: str, hint: str | None = None) -> None:
        self._failed = True
        self._findings.error(code, self._at, f"{self._directory.name}: {message}", hint)


def _apply_instruction(line: list[str], found: _Environment, context: Path) -> None:
    """Apply one instruction of a Dockerfile to the environment."""
    name, arguments = line[0].upper(), (line[1:] or [""])[0]
    if name == "WORKDIR":
        found.workdir = str(PurePosixPath(found.workdir or "/", arguments.strip().strip('"')))
        if found.files:
            found.needs_container = found.needs_container or " ".join(line)
    elif name in ("COPY", "ADD"):
        words = [str(one) for one in json.loads(arguments)] if arguments.startswith("[") else shlex.split(arguments)
        *sources, target = [one for one in words if not one.startswith("--chown") and not one.startswith("--chmod")]
        place = PurePosixPath(found.workdir or "/", target)
        inside = bool(found.workdir) and place.is_relative_to(found.workdir)
        if not inside or any(one.startswith("--") or not (context / one).exists() for one in sources):
            found.needs_container = found.needs_container or " ".join(line)
            return
        below = str(place.relative_to(found.workdir))
        if below in found.files and any((context / one).is_dir() for one in sources):  # their files would be merged
            found.needs_container = found.needs_container or " ".join(line)
            return
        for one in sources:
            is_file = (context / one).is_file()
            directory = target.endswith(("/", ".")) or len(sources) > 1 or str(place) == found.workdir
            found.files[str(PurePosixPath(below, Path(one).name)) if is_file and directory else below] = one
    elif name not in _WITHOUT_EFFECT:
        found.needs_container = found.needs_container or " ".join(line)


def _env(part: Mapping[str, Any]) -> dict[str, str]:
    """The `env` of a part of a task, with `${NAME}` converted to a placeholder for the environment variable."""
    env = part.get("env")
    return {name: _VARIABLE.sub(_placeholder, str(one)) for name, one in env.items()} if isinstance(env, dict) else {}


def _placeholder(found: re.Match[str]) -> str:
    default = f" | default({json.dumps(found[2])})" if found[2] is not None else ""
    return f"{{{{ env.{found[1]}{default} }}}}"
