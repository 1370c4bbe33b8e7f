"""An agent under test that reaches for its own results: the run's own counts decide."""

import json

import pytest

AGENT = """
import glob, json, os, shutil, sys, time
name = sys.argv[1]
run = sorted(glob.glob('.agentv/results/*/'))[-1]
index, journal = run + 'index.jsonl', run + 'journal.jsonl'

def read(path):
    with open(path) as file:
        return file.read()

def write(path, text, mode='w'):
    with open(path, mode) as file:
        file.write(text)

def forged():
    return read(index).replace('"status":"failed"', '"status":"passed"').replace('"score":0.0', '"score":1.0')

if name == 'two':
    while not os.path.exists(index) or not read(index).endswith('\\n'):
        time.sleep(0.02)
    exec(read('attack.py'))
print('bad' if name == 'one' else 'ok')
"""
SUITE = """
name: a
target: {name: agent, provider: cli, command: [python3, agent.py, "{PROMPT}"]}
run: {workers: 1}
tests:
  - {id: one, input: one, assert: [{contains: ok}]}
  - {id: two, input: two, assert: [{contains: ok}]}
  - {id: three, input: three, assert: [{contains: never}]}
"""
ATTACKS = {
    "a row is edited": "write(index, forged())",
    "rows are cut off": "write(index, '')",
    "the journal is edited": "write(journal, read(journal).replace('bad', 'ok!'))",
    "a summary is put there": """write(run + 'summary.json', '{"cases": {"passed": 3}, "mine": 1}')""",
    "run.json is edited": """write(run + 'run.json', '{"schema_version": 1, "run_id": "x"}')""",
    "a history is put there": "write(run + 'history.jsonl', read(index))",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_agent_that_writes_to_the_results_changes_no_verdict(project, attack):
    project.write("agent.py", AGENT)
    project.write("attack.py", attack)
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 1, ended.stderr
    assert "3 cases: 1 passed, 2 failed" in ended.stderr
    (run,) = (project.path / ".agentv" / "results").glob("*Z-????")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["cases"] == {"total": 3, "passed": 1, "failed": 2, "errored": 0, "skipped": 0, "shown": 0}
    assert "mine" not in summary


@pytest.mark.parametrize(
    ("attack", "says"),
    [("a row is edited", "was changed after it was written"), ("rows are cut off", "rows were added or removed")],
)
def test_a_gate_that_changed_rows_may_have_decided_is_no_verdict(project, attack, says):
    project.write("agent.py", AGENT)
    project.write("attack.py", ATTACKS[attack])
    project.write("a.eval.yaml", SUITE.replace("{workers: 1}", "{workers: 1, gate: corrected, min_pass_rate: 0.1}"))
    ended = project.run("eval", "a.eval.yaml")
    assert (ended.status, says in ended.stderr) == (3, True), ended.stderr


def test_edited_rows_are_neither_exported_nor_shown(project):
    project.write("agent.py", AGENT)
    project.write("attack.py", ATTACKS["a row is edited"])
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "rows.jsonl")
    assert (ended.status, (project.path / "rows.jsonl").exists()) == (3, False), ended.stderr
    shown = project.run("results", "show", "last")
    assert (shown.status, "was changed after it was written" in shown.stderr) == (2, True), shown.stderr


@pytest.mark.parametrize("what", ["run", "index", "journal"])
def test_a_run_whose_files_are_removed_says_so(project, what):
    project.write("agent.py", AGENT)
    project.write("attack.py", f"shutil.rmtree(run) if {what} is run else os.unlink({what})")
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 3, ended.stderr
    assert "it was removed during the run" in ended.stderr


def test_an_export_is_not_written_through_a_link_that_leads_away(project):
    project.write("mine.txt", "mine\n")
    (project.path / "out").mkdir()
    project.write("agent.py", AGENT)
    project.write("attack.py", "os.symlink(os.path.abspath('mine.txt'), 'out/rows.jsonl')")
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "out/rows.jsonl")
    assert ended.status == 3, ended.stderr
    assert "it is a symlink that leads out of" in ended.stderr
    assert (project.path / "mine.txt").read_text() == "mine\n"
    ended = project.run("eval", "a.eval.yaml", "-o", "out/rows.jsonl")
    assert ended.status == 2, ended.stderr


def test_what_a_run_writes_is_its_owners_alone(project):
    project.write("agent.py", AGENT)
    project.write("attack.py", "")
    project.write("a.eval.yaml", SUITE)
    project.run("eval", "a.eval.yaml", "--cache", "-o", "rows.jsonl", "-o", "all.html")
    found = [project.path / "rows.jsonl", project.path / "all.html"]
    for name in ("results", "cache"):
        found += [project.path / ".agentv" / name, *(project.path / ".agentv" / name).rglob("*")]
    modes = {str(one): one.stat().st_mode & 0o777 for one in found if one.name != ".gitignore"}
    assert set(modes.values()) == {0o600, 0o700}, modes
    assert all((mode == 0o700) == (project.path / path).is_dir() for path, mode in modes.items())
