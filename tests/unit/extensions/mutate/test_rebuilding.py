from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.errors import UsageError
from agentv.extensions.mutate.mutating import MutationSettings, mutate
from needs import needs

SHOP = "def total(a, b):\n    return a - b\n\n\ndef name():\n    x = 1\n    return x\n\n\ndef days():\n    return 14\n"
TESTS = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
CHECK = "from shop import total\nassert total(1, 2) == 3\n"
AGENT = """
from pathlib import Path

shop = Path("shop.py")
shop.write_text(shop.read_text().replace("a - b", "a + b").replace("14", "30"))
Path("notes.md").write_text("30 days")
print("Fixed: 30 days.")
"""
CASE = {
    "id": "total",
    "input": "Fix total().",
    "threshold": 1,
    "assert": [
        {"command": ["env", "PYTHONPATH=.", sys.executable, "check.py"]},
        {"type": "file-exists", "path": "notes.md"},
        {"contains": "Fixed"},
    ],
}
OPERATORS = ("refuse", "revert-hunk", "delete-test", "leave-debug-line")


@pytest.fixture
def project(tmp_path, monkeypatch):
    for path, text in {
        "template/shop.py": SHOP,
        "template/tests/test_shop.py": TESTS,
        "hidden/check.py": CHECK,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(case=CASE, **workspace):
    workspace = {"template": "template", "hidden": {"check.py": "hidden/check.py"}, "keep": "none", **workspace}
    agent = {"name": "agent", "provider": "cli", "command": [sys.executable, str(Path("agent.py").resolve())]}
    suite = {"name": "fix", "target": agent, "sandbox": "none", "workspace": workspace, "tests": [case]}
    Path("fix.eval.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))


def ran(agent=AGENT, case=CASE, **workspace):
    Path("agent.py").write_text(agent)
    write(case, **workspace)
    evaluate(prepare(EvalSettings(paths=("fix.eval.yaml",))), lambda _: None)


@needs("bwrap")
def test_the_final_workspace_is_made_again_and_made_worse(project):
    ran()
    files = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    report = mutate("last", MutationSettings(OPERATORS))
    lines = {one.change: one.line for one in report.survivors if one.counts}
    assert lines == {
        "the change at line 11 of 'shop.py' was reverted, \"return 30\"": "- {type: file-contains, path: shop.py, value: return 30}"
    }
    assert {one.change for one in report.survivors if not one.counts} == {
        "the test 'test_b' of 'tests/test_shop.py' was deleted",
        "the line 'print(\"DEBUG\")' was left in 'shop.py'",
    }
    assert (report.answers, report.killed, report.counted) == (1, 3, 4)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == files

    added = yaml.safe_load(next(iter(lines.values())))
    write({**CASE, "assert": [*CASE["assert"], *added]})
    assert mutate("last", MutationSettings(OPERATORS)).score == 1.0


def test_protected_files_fail_a_mutant_that_changes_them(project):
    ran(protected=["tests/**"])
    count = mutate("last", MutationSettings(("delete-test",))).operators["delete-test"]
    assert (count.killed, count.total) == (1, 1)


def test_only_assertions_on_the_workspace_are_idle_for_it(project):
    case = {**CASE, "assert": [*CASE["assert"], {"type": "file-contains", "path": "shop.py", "value": "def name"}]}
    ran(case=case)
    report = mutate("last", MutationSettings(OPERATORS))
    assert [(one.name, one.mutants) for one in report.idle] == [("file-contains: 'shop.py' 'def name'", 5)]
    assert mutate("last", MutationSettings(("refuse",))).idle == ()


BINARY = f'{AGENT}\nPath("logo.bin").write_bytes(bytes(9))\n'


def test_what_the_diff_does_not_show_is_taken_from_the_kept_workspace(project):
    ran(BINARY, keep="all")
    assert mutate("last", MutationSettings(("revert-hunk",))).total == 3
    (kept,) = project.glob(".agentv/results/*/workspaces/*/workspace/logo.bin")
    kept.write_bytes(b"other")
    with pytest.raises(UsageError, match=r"'logo.bin' is binary or large, and no kept workspace has it"):
        mutate("last", MutationSettings())


def test_a_workspace_that_cannot_be_rebuilt_is_left_out_and_said_so(project):
    ran(BINARY)
    with pytest.raises(UsageError, match=r"1 answer of cases whose workspace cannot be rebuilt: 'logo.bin' is binary"):
        mutate("last", MutationSettings())
    flips = f"{sys.executable} -c \"import time; open('shop.py', 'a').write(f'# {{time.time_ns()}}')\""
    ran(setup=[flips])
    with pytest.raises(UsageError, match=r"'shop.py' differs from the stored diff"):
        mutate("last", MutationSettings())


def test_a_diff_that_was_edited_is_not_believed(project):
    ran()
    (patch,) = project.glob(".agentv/results/*/artifacts/*/diff.patch")
    patch.write_text(patch.read_text().replace("+    return 30", "+    return 31"))
    with pytest.raises(UsageError, match="nothing to mutate"):
        mutate("last", MutationSettings())
