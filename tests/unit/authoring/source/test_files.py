"""Where files are searched (SPEC sections 2 and 5)."""

import hashlib
import os
from pathlib import Path

import pytest

from agentv.authoring.source.boundary import Boundary
from agentv.authoring.source.files import DiskReader, Places

UP = ("a/b/c", "a/b", "a")
"""The directories from a suite in `a/b/c` up to the root `a`."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a/b/c/deep.md", "a/b/near.md", "a/root.md", "a/b/.agentv/targets.yaml", "a/.agentv/config.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path


def test_a_path_is_looked_for_beside_the_file_that_mentions_it_then_beside_the_eval_file(tree):
    places = Places(str(tree / "a/b"), str(tree / "a"))
    template = str(tree / "a/b/c/template.yaml")
    assert places.find("deep.md", template)[0] == str(tree / "a/b/c/deep.md")
    shown = places.find("./near.md", template)
    assert shown == (str(tree / "a/b/near.md"), (str(tree / "a/b/c/near.md"), str(tree / "a/b/near.md")))


def test_then_it_is_looked_for_in_each_directory_above_up_to_the_root(tree):
    places = Places(str(tree / "a/b/c"), str(tree / "a"))
    suite = str(tree / "a/b/c/suite.yaml")
    assert places.find("near.md", suite)[0] == str(tree / "a/b/near.md")
    assert places.find("root.md", suite)[0] == str(tree / "a/root.md")
    (tree / "outside.md").write_text("", encoding="utf-8")
    assert places.find("outside.md", suite) == (None, tuple(str(tree / one / "outside.md") for one in UP))
    assert places.is_above(str(tree / "a/root.md"), "root.md", suite)
    assert not places.is_above(str(tree / "a/b/c/deep.md"), "deep.md", suite)


def test_a_link_above_that_leaves_the_repository_is_not_followed(tree):
    (tree / "outside.md").write_text("secret", encoding="utf-8")
    (tree / "a/link.md").symlink_to(tree / "outside.md")
    suite, root = str(tree / "a/b/c"), str(tree / "a")
    places = Places(suite, root, boundary=Boundary(root))
    found, tried = places.find("link.md", f"{suite}/suite.yaml")
    assert found is None
    assert str(tree / "a/link.md") not in tried
    assert places.leaves("link.md", f"{suite}/suite.yaml")
    assert Places(suite, root, boundary=Boundary(root, is_open=True)).find("link.md", suite)[0] is not None


def test_what_was_read_is_remembered_by_its_digest(tree):
    reader = DiskReader()
    path = str(tree / "a/root.md")
    assert reader.read(path) == b"a/root.md"
    digest = hashlib.sha256(b"a/root.md").hexdigest()
    other = DiskReader()
    other.remember(path)
    assert reader.digests == other.digests == {path: digest}


def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path / "pipe")):
        with pytest.raises(OSError, match="a device or a pipe") as caught:
            DiskReader().read(path)
        assert caught.value.strerror == "it is a device or a pipe, expected a file"
        with pytest.raises(OSError, match="a device or a pipe"):
            DiskReader().remember(path)
