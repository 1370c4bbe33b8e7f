"""Run the installed command as a user would."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from agentv.model.values.values import EMPTY
from e2e.fork_server import AGENTV, ForkServer, can_fork

_OURS = re.compile(r"^AGENTV_|_API_KEY$|_BASE_URL$|_ENDPOINT$|_API_TOKEN$")
"""Variables of the user's environment to drop, so that tests use no real key and call no real model."""

__all__ = ["AGENTV", "Ended", "Project", "stopped"]

fork_server = cache(ForkServer)


def _begun(run: Path) -> tuple[str, int]:
    """Return when a run started: by its id to the second, then by the time of its record."""
    record = run / "run.json"
    return run.name.partition("-")[0], (record if record.exists() else run).stat().st_mtime_ns


def stopped(process: subprocess.Popen[str], number: int = signal.SIGINT, *, status: int | None = None) -> str:
    """Send a signal to a started command and return its remaining stderr; `status` is the expected exit status."""
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    assert status in {None, process.returncode}, f"status {process.returncode}: {stderr}"
    return stderr


@dataclass(frozen=True)
class Ended:
    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Project:
    """A repository's root with files.

    `libraries`: use forks that have imported the SDKs of model APIs and the statistics libraries.
    """

    path: Path
    libraries: bool = False

    def write(self, name: str, text: str | bytes) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def write_files(self, files: Mapping[str, str | bytes]) -> Self:
        for name, text in files.items():
            self.write(name, text)
        return self

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not _OURS.search(name)}
        return {**kept, "NO_COLOR": "1", "HOME": str(self.path / "home"), "PYTHON_BIN": sys.executable}

    def start(self, *words: str, env: Mapping[str, str] = EMPTY, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [AGENTV, *words],
            cwd=self.path,
            env={**self.environment, **env},
            stderr=subprocess.PIPE,
            text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options},
        )

    def run(
        self,
        *words: str,
        status: int | None = None,
        says: str = "",
        timeout: float = 180,
        env: Mapping[str, str] = EMPTY,
        fresh: bool = False,
    ) -> Ended:
        """Run a command in a fork of a process that has imported agentv, or in a new process if `fresh`.

        `status`: its expected exit status. `says`: text that it must write to stderr.
        """
        environment = {**self.environment, **env}
        if fresh or not can_fork(environment):
            process = self.start(*words, env=env)
            stdout, stderr = process.communicate(timeout=timeout)
            ended = Ended(process.returncode, stdout, stderr)
        else:
            ended = Ended(*fork_server(libraries=self.libraries).run(words, self.path, environment, timeout))
        assert "Traceback" not in ended.stderr, ended.stderr
        assert "internal error" not in ended.stderr, ended.stderr
        assert status in {None, ended.status}, f"status {ended.status}: {ended.stderr}"
        assert says in ended.stderr, ended.stderr
        return ended

    def rows(self, run: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of the newest run, or of a directory."""
        directory = self.path / run if run else max((self.path / ".agentv" / "results").iterdir(), key=_begun)
        return [json.loads(line) for line in (directory / "index.jsonl").read_text().splitlines()]

    def summary(self, run: str = "out") -> dict[str, Any]:
        """Return the totals of a run in a directory."""
        return json.loads((self.path / run / "summary.json").read_text())

    def record(self, run: str = "out") -> dict[str, Any]:
        """Return the record of a run in a directory."""
        return json.loads((self.path / run / "run.json").read_text())

    @property
    def asked(self) -> list[str]:
        """The lines that targets and judges wrote to `asked.txt`, one per call."""
        path = self.path / "asked.txt"
        return path.read_text().splitlines() if path.exists() else []

    def other(self, *command: str, env: Mapping[str, str] = EMPTY) -> subprocess.CompletedProcess[str]:
        """Run another program in the project's directory."""
        return subprocess.run(
            command,
            cwd=self.path,
            env={**self.environment, **env},
            capture_output=True,
            text=True,
            timeout=300,  # for a busy machine
            check=False,
        )

    @property
    def ran(self) -> bool:
        """Whether any run was started."""
        return (self.path / ".agentv" / "results").exists()
