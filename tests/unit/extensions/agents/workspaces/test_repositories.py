import os
from pathlib import Path

import pytest

from agentv.extensions.agents.workspaces.repositories import Checkouts
from agentv.model.suite.workspace import WorkspaceRepository
from doubles.opened_workspaces import git


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    place = tmp_path / "origin"
    place.mkdir()
    git(place, "init", "-q", "-b", "main", ".")
    for text in ("one", "two", "three"):
        (place / "a.txt").write_text(text)
        git(place, "add", "-A")
        git(place, "commit", "-qm", text)
    git(place, "tag", "v1", "HEAD~1")
    git(place, "config", "uploadpack.allowAnySHA1InWant", "true")
    return place


class Places:
    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path
        self.checkouts = Checkouts(tmp_path / "cache", {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}, str(tmp_path))
        self.count = 0

    def check_out(self, repository: str, **keys):
        self.count += 1
        workspace = self.root / f"workspace{self.count}"
        workspace.mkdir()
        failure = self.checkouts.check_out(WorkspaceRepository(repository, **keys), str(workspace))
        return failure.message if failure is not None else (workspace / "a.txt").read_text()


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_a_commit_that_was_fetched_needs_no_host(origin: Path, places: Places) -> None:
    url, sha = f"file://{origin}", git(origin, "rev-parse", "HEAD~1")
    assert places.check_out(url, commit=sha) == "two"
    origin.rename(origin.with_name("gone"))
    assert places.check_out(url, commit=sha) == "two"
    assert "cannot check out" in places.check_out(url, commit="main")


def test_what_cannot_be_fetched_says_why(origin: Path, places: Places) -> None:
    assert "does not appear to be a git repository" in places.check_out(f"file://{origin}/nowhere")
    assert "no commit 'nowhere'" in places.check_out(f"file://{origin}", commit="nowhere")
    assert "no commit 'nowhere'" in places.check_out(str(origin), commit="nowhere")
    assert "with 9 ancestors" in places.check_out(str(origin), commit="main", ancestor=9)


@pytest.mark.parametrize("commit", ["--upload-pack=touch ran", "a:refs/heads/x", "a b", "a*"])
def test_what_is_no_name_of_a_commit_is_not_passed_on(origin: Path, places: Places, commit: str) -> None:
    assert "cannot be the name of a commit" in places.check_out(str(origin), commit=commit)


def test_an_option_is_no_repository(places: Places) -> None:
    assert "cannot check out" in places.check_out("--upload-pack=touch ran")
    assert not list(places.root.rglob("ran"))


def test_code_of_a_repository_does_not_run(origin: Path, places: Places) -> None:
    ran = origin.with_name("ran")
    (origin / ".gitattributes").write_text("* filter=evil\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "evil")
    git(origin, "config", "filter.evil.smudge", f"touch {ran}; cat")
    hook = origin / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    assert places.check_out(str(origin)) == "three"
    assert not ran.exists()
