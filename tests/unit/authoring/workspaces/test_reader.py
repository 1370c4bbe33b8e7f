"""Workspaces of cases: the suite's with the case's over it, and what their hashes count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError
from agentv.registry import extras

SUITE = """\
target: echo
workspace:
  template: ./repo
  setup: [make]
  protected: [tests/**]
  hooks: {before_each: [one], after_each: [two]}
  env: {A: "1"}
variants: [{name: bare}, {name: skill, overlay: ./skill}]
tests:
  - {id: plain, input: hello, assert: [contains: hello]}
  - id: own
    input: hello
    workspace: {setup: [], hooks: {before_each: [three]}, env: {B: "2"}, keep: all}
    sandbox: none
    assert: [contains: hello]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    for name, text in {"a.eval.yaml": SUITE, "repo/a.py": "1", "skill/SKILL.md": "how", "repo/tests/t.py": "t"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(**more):
    return load(LoadRequest(("a.eval.yaml",), **more), registries()).suites[0]


def specs(**more):
    return {case.id: case.workspace for case in loaded(**more).cases}


def test_a_case_wins_key_by_key(project):
    found = specs()
    plain, own = found["plain"], found["own"]
    assert [str(one) for one in plain.setup] == ["make"]
    assert (own.setup, own.protected, own.keep, own.sandbox) == ((), ("tests/**",), "all", "none")
    assert own.template == plain.template
    assert [str(one) for one in (*own.hooks.before_each, *own.hooks.after_each)] == ["three", "two"]
    assert own.env == {"A": "1", "B": "2"}


def test_flags_win_over_files(project):
    found = specs(sandbox="bwrap", keep_workspaces="none", workspace_path="/shared")
    assert {(one.sandbox, one.keep, one.existing) for one in found.values()} == {("bwrap", "none", "/shared")}


@pytest.mark.parametrize("place", ["repo/a.py", "repo/new.py", "skill/SKILL.md"])
def test_files_count_by_what_they_hold(project, place):
    before = loaded()
    (project / place).write_text("other")
    after = loaded()
    changed = [old.sha256 != new.sha256 for old, new in zip(before.cases, after.cases, strict=True)]
    variants = [old.sha256 != new.sha256 for old, new in zip(before.variants, after.variants, strict=True)]
    in_template = place.startswith("repo")
    assert (changed, variants) == ([in_template] * 2, [False, not in_template])


def test_a_file_that_may_be_executed_is_another(project):
    before = specs()["plain"].sha256
    (project / "repo/a.py").chmod(0o755)
    assert specs()["plain"].sha256 != before


def test_how_a_workspace_is_confined_and_kept_has_no_part_in_its_hash(project):
    assert specs()["plain"].sha256 == specs(sandbox="none", keep_workspaces="all")["plain"].sha256


def test_the_same_files_elsewhere_have_the_same_hash(project, tmp_path_factory, monkeypatch):
    before = [case.sha256 for case in loaded().cases]
    other = tmp_path_factory.mktemp("other")
    (other / ".git").mkdir()
    for path in (path for path in project.rglob("*") if path.is_file()):
        (other / path.relative_to(project)).parent.mkdir(parents=True, exist_ok=True)
        (other / path.relative_to(project)).write_bytes(path.read_bytes())
    monkeypatch.chdir(other)
    assert [case.sha256 for case in loaded().cases] == before


def test_a_check_of_files_hashes_nothing(project):
    assert {one.template.sha256 for one in specs(for_run=False).values()} == {""}


def test_containers_need_docker(project):
    (project / "a.eval.yaml").write_text(
        "target: echo\nworkspace: {docker: {image: python}}\n"
        "tests: [{id: a, input: hello, assert: [contains: hello]}]\n"
    )
    known = replace(registries(), no_docker=lambda: "the daemon is gone")
    with pytest.raises(LoadError) as refused:
        load(LoadRequest(("a.eval.yaml",)), known)
    assert [one.code for one in refused.value.diagnostics] == ["no-docker"]
    assert "the daemon is gone" in refused.value.diagnostics[0].message
    known = replace(registries(), no_docker=lambda: None)
    spec = next(iter(load(LoadRequest(("a.eval.yaml",)), known).suites[0].cases)).workspace
    assert (spec.sandbox, spec.docker.image) == ("docker", "python")


def test_a_variable_of_a_case_fills_in_its_workspace(project):
    (project / "a.eval.yaml").write_text(
        "target: echo\n"
        "workspace: {repos: [{repo: acme/shop, commit: '{{ commit }}'}]}\n"
        "tests:\n"
        "  - {id: a, input: hello, vars: {commit: c1}, assert: [contains: hello]}\n"
        "  - {id: b, input: hello, vars: {commit: c2}, assert: [contains: hello]}\n"
    )
    assert [one.repositories[0].commit for one in specs().values()] == ["c1", "c2"]


def test_a_link_counts_by_where_it_leads(project):
    Path("repo/link").symlink_to("a.py")
    before = specs()["plain"].sha256
    Path("repo/link").unlink()
    Path("repo/link").symlink_to("b.py")
    assert specs()["plain"].sha256 != before


def test_without_the_library_of_scripted_tools_nothing_runs(project, monkeypatch):
    tools = "tools: {shop: {refund: {returns: done}}}\n"
    case = "  - {id: more, input: hello, tools: {shop: {other: {returns: x}}}, assert: [contains: hello]}\n"
    (project / "a.eval.yaml").write_text(tools + SUITE + case)
    monkeypatch.setattr(extras, "_is_installed", lambda module: module != "mcp")
    with pytest.raises(LoadError) as raised:
        loaded()
    found = [(one.code, one.span.line, one.hint) for one in raised.value.diagnostics]
    assert ("missing-extra", 1, "pip install 'agentv[agents]'") in found
    assert [code for code, *_ in found].count("missing-extra") == 1
