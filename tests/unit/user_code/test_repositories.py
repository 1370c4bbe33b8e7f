"""Repositories on git hosts, each commit fetched once, with real repositories and the real git."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.values.response import Failure
from agentv.user_code.processes import Finished
from agentv.user_code.repositories import DAY_S, RAW, Repositories, run_git
from doubles.git_remotes import Hosts, Remote
from doubles.http_server import HttpServer
from doubles.waiting import until

ACME = "github.com/acme/evals"


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


@pytest.fixture
def remote(hosts: Hosts) -> Remote:
    return hosts.repository(ACME, {"docs/a.md": "first\n"})


def wanted(rest: str, name: str = ACME, kind: str = "") -> RepositoryFile:
    host, _, repository = name.partition("/")
    return RepositoryFile(host, repository, tuple(rest.split("/")), kind)


def later(git=run_git, *, days: float = 1.1) -> Repositories:
    """Return the repositories of a run on a later day."""
    return Repositories(git, now=lambda: time.time() + days * DAY_S)


def found(hosts: Hosts, rest: str, repositories: Repositories | None = None, **more) -> Checkout:
    checkout = (repositories or later()).checkout(wanted(rest, **more), hosts.env)
    assert isinstance(checkout, Checkout), checkout
    return checkout


def refused(hosts: Hosts, rest: str, repositories: Repositories | None = None, **more) -> Unavailable:
    checkout = (repositories or later()).checkout(wanted(rest, **more), hosts.env)
    assert isinstance(checkout, Unavailable), checkout
    return checkout


def text(checkout: Checkout) -> str:
    return (Path(checkout.tree) / checkout.path).read_text(encoding="utf-8")


class Counting:
    """The real git, with a record of its commands."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, arguments, cwd, env, timeout_s) -> Finished | Failure:
        self.asked.append(next(word for word in arguments if not word.startswith("-")))
        return run_git(arguments, cwd, env, timeout_s)


def unreachable(arguments, cwd, env, timeout_s) -> Finished | Failure:
    if "ls-remote" in arguments or "fetch" in arguments:
        return Finished(
            128, b"", b"fatal: unable to access 'https://x:y@github.com/': Could not resolve host: github.com\n"
        )
    return run_git(arguments, cwd, env, timeout_s)


def test_a_repository_is_fetched_once_and_looked_up_once_a_day(hosts, remote):
    git = Counting()
    first_run = Repositories(git)
    found(hosts, "main/docs/a.md", first_run)
    found(hosts, "main/docs/b.md", first_run)
    assert git.asked.count("fetch") == git.asked.count("ls-remote") == 1
    found(hosts, "main/docs/a.md", Repositories(git))
    found(hosts, "main/docs/a.md", later(git, days=0.9))
    assert git.asked.count("ls-remote") == 1
    found(hosts, "main/docs/a.md", later(git))
    assert (git.asked.count("fetch"), git.asked.count("ls-remote")) == (1, 2)
    found(hosts, "main/docs/b.md", Repositories(git))
    assert git.asked.count("ls-remote") == 3, "a file that is not there may have been added"


def test_a_branch_that_moved_is_followed_by_the_next_run_and_not_by_this_one(hosts, remote):
    run = Repositories()
    before = found(hosts, "main/docs/a.md", run)
    remote.commit({"docs/a.md": "second\n"})
    assert text(found(hosts, "main/docs/a.md", run)) == "first\n"
    after = found(hosts, "main/docs/a.md")
    assert text(after) == "second\n"
    assert text(before) == "first\n"
    assert before.tree != after.tree


def test_a_missing_ref_tells_which_there_are(hosts, remote):
    remote.git("tag", "v1")
    refusal = refused(hosts, "mian/docs/a.md")
    assert refusal.code == "missing-ref"
    assert refusal.known == ("main", "v1")
    assert refused(hosts, "-u/x").code == "missing-ref"


def test_a_missing_repository_leaves_nothing_behind(hosts):
    assert refused(hosts, "main/docs/a.md").code == "missing-repository"
    assert hosts.kept() == []


def test_without_git(hosts, remote):
    hosts_env = {**hosts.env, "PATH": str(hosts.folder)}
    refusal = Repositories().checkout(wanted("main/docs/a.md"), hosts_env)
    assert refusal == Unavailable("git-failed", f"cannot reach {ACME}", "git is not installed, or not on PATH")


def test_what_takes_too_long_is_ended(hosts, remote):
    def hanging(arguments, cwd, env, timeout_s):
        slow = {**env, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.ssh://{hosts.folder}/.insteadOf"}
        return run_git(arguments, cwd, {**slow, "GIT_SSH_COMMAND": "sleep 60 #", "GIT_CONFIG_VALUE_0": "https:"}, 0.1)

    started = time.monotonic()
    assert "did not exit within" in refused(hosts, "main/docs/a.md", Repositories(hanging)).reason
    assert time.monotonic() - started < 10


def test_out_of_reach_the_copy_of_an_earlier_run_serves_with_its_age(hosts, remote):
    found(hosts, "main/docs/a.md")

    checkout = found(hosts, "main/docs/a.md", later(unreachable, days=2))
    assert checkout.age_s == pytest.approx(2 * DAY_S, abs=60)
    assert checkout.reason == "git says: unable to access 'https://github.com/': Could not resolve host: github.com"
    assert text(checkout) == "first\n"
    # using it does not refresh it: a day later it is three days old
    (note,) = (hosts.home / "cache" / "repos" / "github.com" / "acme" / "evals@refs").iterdir()
    os.utime(note, (time.time() - DAY_S, time.time() - DAY_S))
    found(hosts, "main/docs/a.md", later(unreachable, days=2))
    assert found(hosts, "main/docs/a.md", later(unreachable, days=2)).age_s == pytest.approx(3 * DAY_S, abs=60)
    assert refused(hosts, "other/docs/a.md", Repositories(unreachable)).code == "git-failed"


def test_where_the_host_says_not_found_the_copy_of_an_earlier_run_serves_and_says_so(hosts, remote):
    assert found(hosts, "main/docs/a.md").age_s is None
    remote.folder.rename(hosts.folder / "gone")
    checkout = found(hosts, "main/docs/a.md")
    assert text(checkout) == "first\n"
    assert checkout.age_s is not None
    assert "does not appear to be a git repository" in checkout.reason
    assert refused(hosts, "other/docs/a.md").code == "missing-repository"
    assert refused(hosts, "0123456789/docs/a.md").code == "missing-repository"


def test_all_commits_of_a_repository_come_out_of_one_clone(hosts, remote):
    git = Counting()
    first = remote.git("rev-parse", "HEAD")
    remote.git("tag", "--annotate", "--message=one", "v1")
    found(hosts, "main/docs/a.md", Repositories(git))
    remote.commit({"docs/a.md": "second\n", "docs/b.md": "more\n"}, branch="next")
    remote.git("rm", "--quiet", "docs/b.md")
    third = remote.commit({"docs/c.md": "third\n"})
    assert text(found(hosts, "next/docs/a.md", Repositories(git))) == "second\n"
    tagged = found(hosts, "v1/docs/a.md", Repositories(git))
    assert (text(tagged), tagged.tree[-40:]) == ("first\n", first)
    tree = Path(found(hosts, f"{third}/docs/c.md", Repositories(git)).tree)
    assert sorted(path.name for path in (tree / "docs").iterdir()) == ["a.md", "c.md"]
    assert (git.asked.count("init"), git.asked.count("fetch")) == (1, 2)
    assert hosts.kept() == [
        *sorted([f"{ACME}@{first}", f"{ACME}@{third}"]),
        *(f"{ACME}@{one}" for one in ("git", "lock", "refs")),
    ]


def _locked_by_the_dead(clone: Path) -> None:
    for name in ("shallow.lock", "HEAD.lock", "index.lock", "config.lock", "refs/agentv/wanted.lock"):
        (clone / name).touch()
    (clone / "objects" / "pack" / "tmp_pack_dead").write_bytes(b"half")


@pytest.mark.parametrize("spoil", [_locked_by_the_dead, shutil.rmtree])
def test_a_clone_that_a_killed_git_left_or_that_is_gone_is_in_nobodys_way(hosts, remote, spoil):
    found(hosts, "main/docs/a.md")
    clone = hosts.home / "cache" / "repos" / f"{ACME}@git"
    spoil(clone)
    remote.commit({"docs/a.md": "second\n"})
    assert text(found(hosts, "main/docs/a.md")) == "second\n"
    assert not list(clone.rglob("*.lock"))
    assert not list(clone.rglob("tmp_pack_*"))
    git = Counting()
    remote.commit({"docs/a.md": "third\n"})
    assert text(found(hosts, "main/docs/a.md", later(git))) == "third\n"
    assert "init" not in git.asked


def test_a_failed_fetch_leaves_nothing_behind(hosts, remote):
    def failing(arguments, cwd, env, timeout_s):
        return (
            Finished(1, b"", b"fatal: disk full")
            if "checkout" in arguments
            else run_git(arguments, cwd, env, timeout_s)
        )

    assert refused(hosts, "main/docs/a.md", Repositories(failing)).reason == "git says: disk full"
    assert hosts.kept() == ["github.com/acme/evals@lock"]
    found(hosts, "main/docs/a.md")


def test_what_a_killed_process_left_is_taken_away(hosts, remote):
    stale = hosts.home / "cache" / "repos" / "github.com" / "acme" / "evals@new-dead"
    (stale / "tree").mkdir(parents=True)
    found(hosts, "main/docs/a.md")
    assert not stale.exists()


def test_links_out_of_the_repository_are_left_out_and_others_followed(hosts, remote):
    (hosts.folder / "secret").write_text("secret")
    for name, target in (("abroad", "/etc/passwd"), ("up", "../../../../secret"), ("twice", "up"), ("in", "docs/a.md")):
        (remote.folder / name).symlink_to(target)
    (remote.folder / "folder").symlink_to("..")
    remote.commit()
    checkout = found(hosts, "main/in")
    assert text(checkout) == "first\n"
    assert checkout.outside == {"abroad", "up", "twice", "folder"}
    assert sorted(path.name for path in Path(checkout.tree).iterdir()) == ["docs", "in"]
    assert found(hosts, "main/in").outside == checkout.outside


def test_nothing_that_a_repository_brings_is_run(hosts, remote):
    ran = hosts.folder / "ran"
    hooks = hosts.folder / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (hooks / "post-checkout").chmod(0o755)
    (remote.folder / ".git" / "info" / "attributes").write_text(RAW)  # committed unchanged
    remote.commit(
        {".gitattributes": "* filter=evil text eol=crlf ident working-tree-encoding=UTF-16\n", "b.md": "$Id$\n"}
    )
    env = hosts.env
    ours = {"core.hooksPath": hooks, "filter.evil.smudge": f"touch {ran}; cat", "core.fsmonitor": f"touch {ran}; false"}
    for number, (key, value) in enumerate(ours.items(), int(env["GIT_CONFIG_COUNT"])):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": str(value)}
    env["GIT_CONFIG_COUNT"] = str(int(env["GIT_CONFIG_COUNT"]) + len(ours))
    assert text(Repositories().checkout(wanted("main/b.md"), env)) == "$Id$\n"
    assert not ran.exists()


def test_a_home_that_cannot_be_written_is_told(hosts, remote):
    (hosts.folder / "agentv-home").write_text("a file")
    assert refused(hosts, "main/docs/a.md").code == "git-failed"


def test_nobody_is_asked_for_a_password(hosts, tmp_path):
    asked = tmp_path / "asked"
    (tmp_path / "ask").write_text(f"#!/bin/sh\ntouch {asked}\necho secret\n")
    (tmp_path / "ask").chmod(0o755)
    ask = str(tmp_path / "ask")
    with HttpServer(lambda _: (401, {"WWW-Authenticate": 'Basic realm="hosts"'}, b"")) as host:
        env = {**hosts.env, "GIT_ASKPASS": ask, "SSH_ASKPASS": ask, "DISPLAY": ":0", "GIT_CONFIG_COUNT": "2"}
        env |= {"GIT_CONFIG_KEY_0": f"url.{host.url}/.insteadOf", "GIT_CONFIG_VALUE_0": "https://github.com/"}
        env |= {"GIT_CONFIG_KEY_1": "core.askPass", "GIT_CONFIG_VALUE_1": ask}
        refusal = Repositories().checkout(wanted("main/docs/a.md"), env)
    assert refusal.code == "missing-repository"
    assert "could not read Username" in refusal.reason
    assert not asked.exists()


FETCH = """
import json, os, sys
from agentv.user_code.repositories import Repositories
from agentv.model.suite.files import RepositoryFile
checkout = Repositories().checkout(RepositoryFile("github.com", "acme/evals", ("main", "docs", "a.md")), dict(os.environ))
print(json.dumps([checkout.tree, checkout.path]))
"""


def started(env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen((sys.executable, "-c", FETCH), env=env, stdout=subprocess.PIPE)


def test_two_processes_at_once_have_the_same_files(hosts, remote):
    both = [started(hosts.env) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert answers[0] == answers[1]
    assert text(Checkout(*answers[0], "main")) == "first\n"
    kept = [name for name in hosts.kept() if name.count("/") == 2]
    sha = remote.git("rev-parse", "HEAD")
    assert kept == [f"{ACME}@{sha}", f"{ACME}@git", f"{ACME}@lock", f"{ACME}@refs"]


def test_a_process_that_is_killed_in_the_middle_is_in_nobodys_way(hosts, remote, tmp_path):
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *" fetch "*) sleep 5;; esac\nPATH={os.environ["PATH"]} exec git "$@"\n'
    )
    (slow / "git").chmod(0o755)
    process = started({**hosts.env, "PATH": f"{slow}:{os.environ['PATH']}"})
    repos = hosts.home / "cache" / "repos" / "github.com" / "acme"
    until(lambda: list(repos.glob("evals@new-*/git/HEAD")))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    assert list(repos.glob("evals@new-*"))
    assert text(found(hosts, "main/docs/a.md")) == "first\n"
    assert not list(repos.glob("evals@new-*"))
