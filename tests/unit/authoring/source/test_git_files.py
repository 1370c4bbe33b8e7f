"""Files on git hosts: valid URLs, and the diagnostics for others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.source.files import Places
from agentv.authoring.source.git_files import BadUrlError, find_hosted, parse_url
from agentv.authoring.source.report import Report
from agentv.engine.plan import Plan, PlanSettings
from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from doubles.git_remotes import Hosts
from doubles.loading import outcome, parsed, repository

GITHUB = "https://github.com/acme/evals/blob/"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
SHA = "0123456789abcdef" * 2 + "01234567"


@pytest.mark.parametrize(
    ("url", "file"),
    [
        (f"{GITHUB}main/docs/a.md", RepositoryFile("github.com", "acme/evals", ("main", "docs", "a.md"))),
        ("http://www.github.com/a/b.git/blob/v1/x", RepositoryFile("github.com", "a/b", ("v1", "x"))),
        (f"{GITHUB}main/a%20b.md?plain=1", RepositoryFile("github.com", "acme/evals", ("main", "a b.md"))),
        (f"{GITHUB}main/a@b:c.md?raw=true", RepositoryFile("github.com", "acme/evals", ("main", "a@b:c.md"))),
        (f"{GITHUB}feature%2Fx/a.md", RepositoryFile("github.com", "acme/evals", ("feature", "x", "a.md"))),
        (f"{GITHUB}-u/-x", RepositoryFile("github.com", "acme/evals", ("-u", "-x"))),
        (
            "https://gitlab.com/group/sub/r/-/blob/v1/a.md?ref_type=tags",
            RepositoryFile("gitlab.com", "group/sub/r", ("v1", "a.md"), "tags"),
        ),
        ("https://gitlab.com/g/r/-/blob/v1/a?ref_type=x", RepositoryFile("gitlab.com", "g/r", ("v1", "a"))),
        ("https://bitbucket.org/o/r/src/main/a.md", RepositoryFile("bitbucket.org", "o/r", ("main", "a.md"))),
    ],
)
def test_urls_of_files(url, file):
    assert parse_url(url) == file


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/",
        "https://github.com/acme",
        "https://github.com/acme/evals",
        "https://github.com/acme/evals/tree/main/docs",
        "https://github.com/../evals/blob/main/a.md",
        "https://github.com/-acme/evals/blob/main/a.md",
        "https://github.com/acme/evals@x/blob/main/a.md",
        "https://gitlab.com/evals/-/blob/main/a.md",
        f"{GITHUB}main",
        f"{GITHUB}main/",
        f"{GITHUB}main//a.md",
        f"{GITHUB}main/./a.md",
        f"{GITHUB}main/../../a.md",
        f"{GITHUB}main/%2e%2e/a.md",
        f"{GITHUB}main/a%00.md",
        f"{GITHUB}main/a%0a.md",
        f"{GITHUB}main/%ff.md",
        f"{GITHUB}main/a.md#L3-L9",
        *(
            f"https://{one}@github.com/acme/evals/blob/main/a.md"
            for one in ("bob", "bob:t0k3n", "x-access-token:t0k3n")
        ),
        f"{GITHUB}main/a.md?token=t0k3n",
        f"{GITHUB}main/a.md?plain=1&private_token=t0k3n",
    ],
)
def test_urls_of_no_file(url):
    with pytest.raises(BadUrlError) as caught:
        parse_url(url)
    assert caught.value.hint.startswith("write ")
    assert "t0k3n" not in f"{caught.value} {caught.value.hint}"


@given(st.text(max_size=40))
def test_whatever_follows_the_host_is_a_file_inside_or_told(rest):
    try:
        file = parse_url(GITHUB + rest)
    except BadUrlError:
        return
    assert len(file.rest) > 1
    assert not {"", ".", ".."} & set(file.rest)


def said(checkout: Checkout | Unavailable, url: str = f"{GITHUB}main/docs/a.md") -> tuple[str | None, list[str]]:
    """Return the resolved path and all diagnostics."""
    report = Report()
    found = find_hosted(url, parsed(url), "file", report, lambda _wanted: checkout)
    return found, [f"{one.severity} {one.code}: {one.message}{f' | {one.hint}' if one.hint else ''}" for one in report.diagnostics]  # fmt: skip


def test_a_missing_path_of_a_submodule_is_told(tmp_path):
    (tmp_path / "inner").mkdir()
    _, (told,) = said(Checkout(str(tmp_path), "inner/x.md", "main"))
    assert "is in 'inner', a submodule of github.com/acme/evals" in told


def test_a_link_out_of_the_repository_is_not_followed(tmp_path):
    _, (told,) = said(Checkout(str(tmp_path), "up/a.md", "main", frozenset({"up"})))
    assert told.startswith(
        "error missing-file: 'up' of github.com/acme/evals is a symlink that leads out of the repository"
    )


def test_a_long_file_that_begins_like_a_pointer_of_lfs_is_none(tmp_path):
    repository(tmp_path, {"b.md": f"{POINTER}{'x' * 2000}"})
    assert said(Checkout(str(tmp_path), "b.md", "main"))[1] == []


@pytest.mark.parametrize(("age_s", "words"), [(1, "1 second"), (59, "59 seconds"), (7300, "2 hours"), (9e5, "10 days")])
def test_an_older_copy_is_told_with_its_age(tmp_path, age_s, words):
    repository(tmp_path, {"a.md": "x"})
    found, told = said(Checkout(str(tmp_path), "a.md", "main", age_s=age_s, reason="no network"))
    assert found is not None
    assert told == [
        f"warning stale-repository: github.com/acme/evals cannot be read now; using 'main' as of {words} ago"
    ]


def test_a_file_of_a_host_names_files_of_its_own_repository_alone(tmp_path):
    tree = tmp_path / "cache" / "repos" / "github.com" / "acme" / f"evals@{SHA}"
    repository(tree, {"a.md": "hosted", "docs/cases.yaml": "", "docs/b.md": ""})
    repository(tmp_path / "project", {"evals/c.md": "", "a.md": "local"})
    (tmp_path / "outside.md").write_text("outside")
    places = Places(str(tmp_path / "project" / "evals"), str(tmp_path / "project"))
    mentioned = str(tree / "docs" / "cases.yaml")
    assert places.find("b.md", mentioned)[0] == str(tree / "docs" / "b.md")
    assert places.find("../a.md", mentioned)[0] == str(tree / "a.md")
    assert places.find("/a.md", mentioned)[0] == str(tree / "a.md")
    assert places.find("c.md", mentioned)[0] == str(tmp_path / "project" / "evals" / "c.md")
    assert places.find("../../outside.md", mentioned) == (None, ())
    assert places.find("/../../../../../../outside.md", mentioned) == (None, ())
    assert places.find("file:///etc/passwd", mentioned)[0] is None


def test_a_branch_that_moved_makes_other_trials(tmp_path):
    hosts = Hosts(tmp_path)
    remote = hosts.repository("github.com/acme/evals", {"docs/a.md": "first"})
    text = f"target: echo\ninput_files: ['{GITHUB}main/docs/a.md']\ntests: [{{id: a, input: x, assert: [{{contains: x}}]}}]\n"
    path = repository(tmp_path / "project", {"suite.eval.yaml": text}) / "suite.eval.yaml"
    before = facts(path, hosts)
    assert facts(path, hosts) == before
    hosts.home = tmp_path / "elsewhere"
    assert facts(path, hosts)[0] == before[0]
    remote.commit({"docs/a.md": "second"})
    assert facts(path, hosts)[0] == before[0]
    hosts.a_day_passes()
    after = facts(path, hosts)
    assert after[0] != before[0]
    assert after[1] != before[1]


def facts(path, hosts: Hosts) -> tuple[str, dict[str, str]]:
    """Return the key of the only trial of a suite, and the digests of the files read."""
    (suite,), _ = outcome(path, process_env=hosts.env)
    (trial,) = Plan([suite], PlanSettings())
    return trial.key, dict(suite.files)
