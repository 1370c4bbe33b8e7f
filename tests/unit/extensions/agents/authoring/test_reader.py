"""Workspaces of cases: the suite's settings overridden by the case's, and what their hashes include."""

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.authoring.loading.load import LoadRequest, load
from agentv.errors import LoadError
from agentv.extensions.agents.workspaces.choice import Capabilities, chosen_sandbox
from agentv.registry import fields
from doubles.loading import repository

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
def project(project):
    files = {"a.eval.yaml": SUITE, "repo/a.py": "1", "skill/SKILL.md": "how", "repo/tests/t.py": "t"}
    return repository(project, files)


@pytest.fixture
def no_docker(monkeypatch):
    monkeypatch.setattr(Capabilities, "docker", None)
    monkeypatch.setattr(Capabilities, "docker_problem", "the daemon is gone")


def loaded(**more):
    known = replace(registries(), sandbox=None)
    return load(LoadRequest(("a.eval.yaml",), **more), known).suites[0]


def specs(**more):
    return {case.id: case.workspace for case in loaded(**more).cases}


@pytest.mark.parametrize(
    ("more", "template"),
    [
        ("", "repo"),
        ("workspace: {template: ./skill}", "skill"),
        ("environment: {type: host, workdir: ./skill}", "skill"),
    ],
)
def test_the_directory_of_agentvs_agents_is_the_template_of_a_suite_that_names_none(project, more, template):
    target = "{name: c, provider: codex, command: [codex], cwd: ./repo}"
    (project / ".agentv").mkdir()
    (project / ".agentv/targets.yaml").write_text(f"targets: [{target}]\n")
    case = "tests: [{id: a, input: hello, assert: [contains: hello]}]\n"
    for named in (target, "c"):
        (project / "a.eval.yaml").write_text(f"targets: [{named}]\n{more}\n{case}")
        assert specs()["a"].template.source == str(project / template)


def test_flags_win_over_files(project):
    found = specs(sandbox="bwrap", keep_workspaces="none", workspace_path="/shared")
    assert {(one.sandbox, one.keep, one.existing) for one in found.values()} == {(("bwrap",), "none", "/shared")}


@pytest.mark.parametrize("place", ["repo/a.py", "repo/new.py", "skill/SKILL.md"])
def test_files_count_by_what_they_hold(project, place):
    before = loaded()
    (project / place).write_text("other")
    after = loaded()
    changed = [old.sha256 != new.sha256 for old, new in zip(before.cases, after.cases, strict=True)]
    variants = [old.sha256 != new.sha256 for old, new in zip(before.variants, after.variants, strict=True)]
    in_template = place.startswith("repo")
    assert (changed, variants) == ([in_template] * 2, [False, not in_template])


NOWHERE = Capabilities(bwrap=None, bwrap_problem="Install bubblewrap.", user_namespaces=False)
DOCKER = "workspace: {docker: {image: python}}\n"


def on_machine(can, written, **flags):
    """Return the codes and messages on a machine with these capabilities, or the sandboxes that a case needs."""
    Path("a.eval.yaml").write_text(
        f"target: echo\n{written}tests: [{{id: a, input: hello, assert: [contains: hello]}}]\n"
    )
    known = replace(registries(), sandbox=lambda wanted, network: chosen_sandbox(wanted, network, can))
    try:
        return next(iter(load(LoadRequest(("a.eval.yaml",), **flags), known).suites[0].cases)).workspace.sandbox
    except LoadError as refused:
        return [(one.code, one.span.line, one.message) for one in refused.diagnostics]


@pytest.mark.parametrize("written", ["sandbox: bwrap\n", "sandbox: [bwrap]\n", "sandbox: [docker, bwrap]\n" + DOCKER])
def test_a_sandbox_that_is_missing_is_an_error_wherever_it_is_asked_for(project, written, no_docker):
    """The same with a flag, for a suite without a sandbox."""
    asked = on_machine(NOWHERE, written)
    flag = on_machine(NOWHERE, "workspace: {template: ./repo}\nsandbox: none\n", sandbox="bwrap")
    for (code, line, message), at in ((asked[0], 2), (flag[0], 3)):
        assert (code, line) == ("sandbox-unavailable", at)
        assert "nothing was run: " in message
        assert "bwrap is not available. Install bubblewrap" in message
    assert flag[0][2].startswith("--sandbox bwrap: ")


def test_a_network_that_is_to_be_closed_is_never_the_hosts(project):
    written = "workspace: {template: ./repo, network: none}\n"
    assert on_machine(dataclasses.replace(NOWHERE, bwrap="/bin/bwrap"), written) == ("bwrap", "none")
    for more in ("", "sandbox: none\n"):
        [(code, _, message)] = on_machine(NOWHERE, written + more)
        assert code == "sandbox-unavailable"
        assert "`network: none` needs `sandbox: bwrap`" in message


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
    monkeypatch.setattr(fields, "_is_installed", lambda module: module != "mcp")
    with pytest.raises(LoadError) as raised:
        loaded()
    found = [(one.code, one.span.line, one.hint) for one in raised.value.diagnostics]
    assert ("missing-extra", 1, "pip install 'agentv[agents]'") in found
    assert loaded(for_run=False)
    assert [code for code, *_ in found].count("missing-extra") == 1
