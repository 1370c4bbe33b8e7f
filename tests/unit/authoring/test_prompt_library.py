"""The prompt library, and a prompt's `meta.yaml`."""

import os
from pathlib import Path

import pytest

from agentv.authoring.config import read_config
from agentv.authoring.prompt_library import library_of, library_reading, prompt_directories, read_meta
from agentv.errors import UsageError
from agentv.model.suite.exam import LONGEST_DESCRIPTION
from doubles.loading import reading_of, repository

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
        ({CONFIG: "prompts_dir: ../library\n", "b/.agentv/config.yaml": "prompts_dir: own\n", "b/own/x": ""}, "b", "b/own"),
        ({CONFIG: "target: echo\n", "prompts/x": ""}, ".", "prompts"),
        ({CONFIG: "prompts_dir: a\n", ".agentv/config.local.yaml": "prompts_dir: b\n", "a/x": "", "b/x": ""}, ".", "b"),
        ({CONFIG: "prompts_dir: ${{ LIBRARY }}\n", "shared/x": ""}, ".", "shared"),
    ],
)  # fmt: skip
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


def meta(folder: Path, text: str | bytes):
    (folder / "greeting").mkdir(exist_ok=True)
    (folder / "greeting" / "meta.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    reading = reading_of(folder)
    found = read_meta(str(folder / "greeting"), reading)
    return found, [(one.span.line, one.span.column, one.severity, one.code) for one in reading.report.diagnostics]


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfdescription: Greets.\r\nstatus: ready\r\n",
        b'{"description": "Greets.", "status": "ready"}',
        b"description: &d Greets.\nbase: &r ready\nstatus: *r\n",
        b"base: &b\n  status: ready\n  description: Greets.\n<<: *b\n",
        b"description: |\n  Greets.\n\nstatus: 'ready'",
    ],
)
def test_every_way_to_write_it_says_the_same(tmp_path, text):
    found, told = meta(tmp_path, text)
    assert (found.description, found.status, told) == ("Greets.", "ready", [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"description: {'é' * LONGEST_DESCRIPTION}\n", []),
        ("id: --all\n", [(1, 5, "error", "bad-value")]),
        ('id: "a\\nb"\n', [(1, 5, "error", "bad-value")]),
        ("owner: a\nowners: [a, b]\nx-owner: c\nversion: 1\nnotes: ''\n", []),
        ("status: '{{ state }}'\n", [(1, 9, "error", "bad-value")]),
    ],
)
def test_what_is_wrong_is_told_at_its_place(tmp_path, text, told):
    assert meta(tmp_path, text)[1] == told


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("gone.yaml")], ids=["directory", "link"])
def test_what_cannot_be_read_is_told(tmp_path, make):
    make(tmp_path / "meta.yaml")
    reading = reading_of(tmp_path)
    assert read_meta(str(tmp_path), reading).path is not None
    assert [one.code for one in reading.report.diagnostics] == ["missing-file"]
