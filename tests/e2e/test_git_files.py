"""Files on git hosts, through the installed command."""

from __future__ import annotations

import pytest

from doubles.git_remotes import Hosts, Remote

URL = "https://github.com/acme/evals/blob/{}/docs/a.md"
SUITE = "name: a\ntarget: echo\ninput_files: ['%s']\ntests: [{id: one, input: hi, assert: [{contains: first}]}]\n"


@pytest.fixture
def hosts(tmp_path) -> Hosts:
    return Hosts(tmp_path / "hosts")


@pytest.fixture
def remote(hosts) -> Remote:
    return hosts.repository("github.com/acme/evals", {"docs/a.md": "first\n"})


def test_a_repository_that_is_not_found_any_more_serves_as_it_was_with_a_warning(project, hosts, remote):
    project.write("a.eval.yaml", SUITE % URL.format("main"))
    ended = project.run("eval", "a.eval.yaml", env=hosts.env)
    assert (ended.status, "stale-repository" in ended.stdout + ended.stderr) == (0, False), ended.stdout + ended.stderr
    remote.folder.rename(hosts.folder / "gone")
    hosts.a_day_passes()
    ended = project.run("eval", "a.eval.yaml", env=hosts.env)
    told = ended.stdout + ended.stderr
    assert ended.status == 0, told
    assert "warning[stale-repository]: github.com/acme/evals cannot be read now; using 'main' as of" in told
    assert "does not appear to be a git repository" in told


def test_a_commit_by_its_whole_name_is_not_asked_for_again(project, hosts, remote):
    sha = remote.git("rev-parse", "HEAD")
    project.write("a.eval.yaml", SUITE % URL.format(sha))
    assert project.run("eval", "a.eval.yaml", env=hosts.env).status == 0
    remote.folder.rename(hosts.folder / "gone")
    ended = project.run("eval", "a.eval.yaml", env=hosts.env)
    assert (ended.status, "warning" in ended.stdout + ended.stderr) == (0, False), ended.stdout + ended.stderr


def test_a_repository_that_was_never_there_leaves_nothing_behind(project, hosts):
    project.write("a.eval.yaml", SUITE % URL.format("main"))
    ended = project.run("eval", "a.eval.yaml", env=hosts.env)
    assert (ended.status, "missing-repository" in ended.stdout + ended.stderr) == (2, True)
    assert hosts.kept() == []
