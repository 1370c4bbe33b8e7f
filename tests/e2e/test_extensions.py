"""Without the folder of an extension, the rest of the program works and says what lacks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agentv
from agentv.registry.extensions import COMMANDS, EVAL_OPTIONS, EXECUTORS, EXPORT_FORMATS, extensions

SOURCE = Path(agentv.__file__).parent
EXAMPLE = Path(__file__).parents[2] / "examples/quickstart"

STILL_IMPORTED = {"agents"}
"""By the core: see `ignore_imports` in pyproject.toml."""


@pytest.fixture(scope="module", params=sorted(extensions().keys() - STILL_IMPORTED))
def without(request, tmp_path_factory):
    """An extension's name, and how to run a copy of the package without its folder."""
    place = tmp_path_factory.mktemp("package")
    shutil.copytree(SOURCE, place / "agentv", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(place / "agentv/extensions" / request.param)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "agentv", *words]
        return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)

    return request.param, run


def test_its_commands_are_not_listed_and_say_what_they_need(without):
    name, run = without
    assert run("--version").returncode == 0
    listed = run("--help")
    assert listed.returncode == 0
    for command in getattr(extensions()[name], COMMANDS, {}):
        assert f"\n  {command} " not in listed.stdout
        refused = run(*command.split(), "--help")
        assert (refused.returncode, f"'{command.split()[-1]}' needs extension {name}" in refused.stderr) == (2, True)


def test_what_an_option_takes_says_what_it_needs(without):
    name, run = without
    for executor in getattr(extensions()[name], EXECUTORS, {}):
        refused = run("eval", str(EXAMPLE), "--executor", executor)
        assert (refused.returncode, f"'{executor}' needs extension {name}" in refused.stderr) == (2, True)


def test_what_it_exports_says_what_it_needs(without):
    name, run = without
    for suffix in getattr(extensions()[name], EXPORT_FORMATS, {}):
        refused = run("eval", str(EXAMPLE), "--out", f"report{suffix}")
        assert (refused.returncode, f"'{suffix}' needs extension {name}" in refused.stderr) == (2, True)


def test_its_options_say_what_they_need(without):
    name, run = without
    for option in getattr(extensions()[name], EVAL_OPTIONS, {}):
        refused = run("eval", str(EXAMPLE), option)
        assert (refused.returncode, f"'{option}' needs extension {name}" in refused.stderr) == (2, True)


def test_the_quickstart_runs(without):
    _, run = without
    ended = run("eval", str(EXAMPLE), "--replay", str(EXAMPLE / "support.cassette.jsonl"), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.startswith("5 cases: 5 passed")
