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


TOKEN = "ghp-Zq8Wv3Rt6Yb1Nc9XkL2pM5"


def test_a_token_in_a_url_is_refused_and_never_shown(project, hosts, remote):
    """The access to a private repository is git's own matter, whose errors lose their tokens too."""
    url = f"https://x-access-token:{TOKEN}@github.com/acme/evals/blob/main/docs/a.md"
    query = f"{URL.format('main')}?token={TOKEN}"
    text = f"target: echo\nprompts: ['{url}']\ninput_files: ['{query}']\ntests: [{{id: a, input: x, assert: [contains: x]}}]\n"
    project.write("a.eval.yaml", text)
    for command in (("validate",), ("validate", "--json"), ("eval", "--list"), ("eval",)):
        ended = project.run(*command, "a.eval.yaml", env=hosts.env)
        told = ended.stdout + ended.stderr
        assert (ended.status, told.count("contains a user or a token")) == (2, 2), told
        assert TOKEN not in told
    project.write("a.eval.yaml", SUITE % URL.format("main"))
    inserted = {"GIT_CONFIG_KEY_0": f"url.https://bob:{TOKEN}@127.0.0.1:1/.insteadOf"}
    ended = project.run("eval", "a.eval.yaml", env={**hosts.env, **inserted})
    assert "cannot reach github.com/acme/evals" in ended.stderr
    assert TOKEN not in ended.stdout + ended.stderr
    kept = [*project.path.rglob("*"), *hosts.home.rglob("*")]
    assert not any(TOKEN in str(path) or (path.is_file() and TOKEN.encode() in path.read_bytes()) for path in kept)
