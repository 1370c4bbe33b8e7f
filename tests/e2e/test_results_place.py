"""Where results lie: the top of a git checkout, and outside git the nearest `.agentv`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from e2e.command import Ended, Project

SUITE = "name: a\ntarget: echo\ntests: [{id: one, input: hi, assert: [{contains: hi}]}]\n"


@pytest.fixture
def outside(tmp_path: Path) -> Project:
    """A directory that is outside git, whatever the tests run in."""
    if any((parent / ".git").exists() for parent in (tmp_path, *tmp_path.parents)):
        pytest.skip("the temporary directory is inside git")
    return Project(tmp_path)


def at(project: Project, folder: str, *words: str) -> Ended:
    return Project(project.path / folder).run(*words, env={"HOME": str(project.path / "home")})


def places(project: Project) -> list[str]:
    """The directories with results, below the project."""
    found = (Path(folder) for folder, _, _ in os.walk(project.path) if folder.endswith("/.agentv/results"))
    return sorted(str(path.parent.parent.relative_to(project.path)) for path in found if any(path.glob("*/run.json")))


def listed(project: Project, folder: str) -> int:
    ended = at(project, folder, "results", "list", "--json")
    assert ended.status == 0, ended.stderr
    return len(json.loads(ended.stdout))


def nested(project: Project) -> None:
    (project.path / "top/.agentv").mkdir(parents=True)
    (project.path / "top/sub/.agentv").mkdir(parents=True)
    project.write("top/sub/deep/a.eval.yaml", SUITE)


def test_outside_git_the_nearest_agentv_holds_them_and_not_the_highest(outside):
    nested(outside)
    assert at(outside, "top/sub/deep", "eval", "a.eval.yaml").status == 0
    assert places(outside) == ["top/sub"]
    assert [listed(outside, folder) for folder in ("top/sub/deep", "top/sub", "top")] == [1, 1, 0]


@pytest.mark.parametrize("reader", ["top", "top/sub", "top/sub/deep"])
def test_what_ran_above_is_found_from_there_and_from_every_subfolder(outside, reader):
    nested(outside)
    assert at(outside, "top", "eval", "sub/deep/a.eval.yaml").status == 0
    assert places(outside) == ["top"]
    assert listed(outside, reader) == 1
    assert at(outside, reader, "results", "show", "last").status == 0
    assert at(outside, reader, "compare", "last", "last").status == 0
    suite = os.path.relpath(outside.path / "top/sub/deep/a.eval.yaml", outside.path / reader)
    resumed = at(outside, reader, "eval", suite, "--resume")
    assert (resumed.status, places(outside), listed(outside, reader)) == (0, ["top"], 1), resumed.stderr


def test_an_eval_file_elsewhere_keeps_them_in_its_own_agentv(outside):
    nested(outside)
    (outside.path / "other").mkdir()
    assert at(outside, "other", "eval", "../top/sub/deep/a.eval.yaml").status == 0
    assert places(outside) == ["top/sub"]


def test_without_any_agentv_the_working_directory_holds_them(outside):
    outside.write("evals/a.eval.yaml", SUITE)
    (outside.path / "here/deep").mkdir(parents=True)
    assert at(outside, "here", "eval", "../evals/a.eval.yaml").status == 0
    assert places(outside) == ["here"]
    assert [listed(outside, folder) for folder in ("here", "here/deep")] == [1, 1]


def test_the_home_directory_holds_none_of_what_runs_below_it(outside):
    (outside.path / "home/.agentv").mkdir(parents=True)
    outside.write("home/work/evals/a.eval.yaml", SUITE)
    assert at(outside, "home/work", "eval", "evals").status == 0
    assert places(outside) == ["home/work"]
    assert listed(outside, "home/work/evals") == 1
