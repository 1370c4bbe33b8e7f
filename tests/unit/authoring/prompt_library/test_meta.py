"""`meta.yaml`: valid values are kept, mistakes are reported with their positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentv.authoring.prompt_library.meta import read_meta
from agentv.model.suite.exam import LONGEST_DESCRIPTION
from doubles.loading import reading_of


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
        ("status: redy\n", [(1, 9, "error", "bad-value")]),
        ("status: [ready]\n", [(1, 9, "error", "bad-value")]),
        ("description: ''\n", [(1, 14, "error", "missing-value")]),
        ("description:\n", [(1, 13, "error", "missing-value")]),
        (f"description: {'x' * (LONGEST_DESCRIPTION + 1)}\n", [(1, 14, "error", "bad-value")]),
        (f"description: {'é' * LONGEST_DESCRIPTION}\n", []),
        ("owner: [a]\ntags: {a: []}\n", [(1, 8, "error", "bad-value"), (2, 11, "error", "bad-value")]),
        ("id: a/b\n", [(1, 5, "error", "bad-value")]),
        ("id: --all\n", [(1, 5, "error", "bad-value")]),
        ('id: "a\\nb"\n', [(1, 5, "error", "bad-value")]),
        ("x: 1\nstauts: ready\n", [(2, 1, "warning", "unknown-key")]),
        ("desc: Greets.\n", [(1, 1, "warning", "unknown-key")]),
        ("owner: a\nowners: [a, b]\nx-owner: c\nversion: 1\nnotes: ''\n", []),
        ("status: draft\nstatus: ready\n", [(2, 1, "error", "duplicate-key")]),
        ("- a\n", [(1, 1, "error", "bad-value")]),
        ("a: b: c\n", [(1, 5, "error", "bad-yaml")]),
        (b"a: \xff\n", [(1, 4, "error", "not-utf-8")]),
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
