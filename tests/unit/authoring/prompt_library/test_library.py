"""Where the library is, and which prompts it holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentv.authoring.header.config import read_config
from agentv.authoring.prompt_library.library import library_of, library_reading, prompt_directories
from agentv.errors import UsageError
from doubles.loading import repository

CONFIG = ".agentv/config.yaml"


def library(folder: Path, files: dict[str, str], working: str = ".", **env: str):
    repository(folder, files)
    place = str((folder / working).resolve())
    reading = library_reading(place, env)
    found = library_of(place, reading)
    told = [(Path(one.span.file).name, one.span.line, one.code) for one in reading.report.diagnostics]
    return found and os.path.relpath(found, folder), told


@pytest.mark.parametrize(
    ("files", "working", "found"),
    [
        ({"prompts/a/prompt.md": ""}, ".", "prompts"),
        ({"prompts/a/prompt.md": ""}, "prompts/a", "prompts"),
        ({"prompts/a/x": "", "b/prompts/c/x": "", "b/d/x": ""}, "b/d", "b/prompts"),
        ({"b/x": ""}, "b", None),
        ({"prompts": "a file"}, ".", None),
        ({CONFIG: "prompts_dir: library\n", "library/x": "", "prompts/y": ""}, ".", "library"),
        (
            {CONFIG: "prompts_dir: ../library\n", "b/.agentv/config.yaml": "prompts_dir: own\n", "b/own/x": ""},
            "b",
            "b/own",
        ),
        ({CONFIG: "target: echo\n", "prompts/x": ""}, ".", "prompts"),
        ({CONFIG: "prompts_dir: a\n", ".agentv/config.local.yaml": "prompts_dir: b\n", "a/x": "", "b/x": ""}, ".", "b"),
        ({CONFIG: "prompts_dir: ${{ LIBRARY }}\n", "shared/x": ""}, ".", "shared"),
    ],
)
def test_the_library_is_that_of_the_config_else_the_closest(tmp_path, files, working, found):
    assert library(tmp_path, files, working, LIBRARY="shared") == (found, [])


@pytest.mark.parametrize("more", [{}, {"library": "a file"}])
def test_a_library_that_is_no_directory_is_told_where_it_is_named(tmp_path, more):
    files = {CONFIG: "target: echo\nprompts_dir: library\n", "prompts/a/prompt.md": "", **more}
    assert library(tmp_path, files) == (None, [("config.yaml", 2, "missing-file")])
    reading = library_reading(str(tmp_path), {})
    assert read_config(str(tmp_path), reading).prompts_dir == str(tmp_path / "library")


def test_what_cannot_be_searched_is_a_wrong_command(tmp_path):
    with pytest.raises(UsageError, match="gone cannot be searched: No such file or directory"):
        prompt_directories(str(tmp_path / "gone"))
