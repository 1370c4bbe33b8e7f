"""An agent under test that reaches for its own results: the run's own counts decide, and it says what was touched."""

import json

import pytest

AGENT = """
import glob, json, os, shutil, subprocess, sys, time, zlib
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

def seal(row):
    key = json.loads(row)['key']
    body = '"row":"%s","sum":"%08x"}' % (key, zlib.crc32(row.encode()))
    return '{"crc32":"%08x",%s\\n' % (zlib.crc32(('{' + body).encode()), body)

def vouched():
    rows = forged()
    write(journal, ''.join(seal(row) for row in rows.splitlines()), 'a')
    return rows

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
    "a row is edited and vouched for": "write(index, vouched())",
    "a row is edited in another file": "rows = forged(); os.unlink(index); write(index, rows)",
    "rows are cut off": "write(index, '')",
    "a row of a case not yet run is added": (
        "row = forged().splitlines()[0].replace('one', 'three') + '\\n'; write(journal, seal(row[:-1]), 'a');"
        "write(index, row, 'a')"
    ),
    "the rows are removed": "os.unlink(index)",
    "the rows are renamed": "os.rename(index, index + '.old')",
    "a link stands for the rows": "rows = forged(); write('mine', rows); os.unlink(index); os.symlink('mine', index)",
    "a link leads the rows elsewhere": (
        "rows = forged(); write('mine', rows); os.unlink(index); os.symlink(os.path.abspath('mine'), index)"
    ),
    "the journal is removed": "os.unlink(journal)",
    "the journal is emptied": "write(journal, '')",
    "the journal is edited": "write(journal, read(journal).replace('bad', 'ok!'))",
    "a summary is put there": """write(run + 'summary.json', '{"cases": {"passed": 3}, "mine": 1}')""",
    "run.json is edited": """write(run + 'run.json', '{"schema_version": 1, "run_id": "x"}')""",
    "run.json is removed": "os.unlink(run + 'run.json')",
    "a directory stands for run.json": "os.unlink(run + 'run.json'); os.mkdir(run + 'run.json')",
    "a history is put there": "write(run + 'history.jsonl', read(index))",
    "an index of rows is put there": "write(run + 'index.sqlite', '')",
    "the run is renamed": "os.rename(run, run.rstrip('/') + '-old'); os.mkdir(run); write(index, '')",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_agent_that_writes_to_the_results_changes_no_verdict(project, attack):
    project.write("agent.py", AGENT)
    project.write("attack.py", attack)
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "rows.jsonl", "-o", "all.json")
    assert ended.status == 3, ended.stderr
    assert "another program changed the results" in ended.stderr
    assert "3 cases: 1 passed, 2 failed" in ended.stderr
    (run,) = (project.path / ".agentv" / "results").glob("*Z-????")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["cases"] == {"total": 3, "passed": 1, "failed": 2, "errored": 0, "skipped": 0, "shown": 0}
    assert "mine" not in summary
    assert json.loads((run / "run.json").read_text())["run_id"] == run.name
    assert not (run / "index.jsonl").is_symlink()
    for rows in (run / "index.jsonl", project.path / "rows.jsonl"):
        found = {row["test_id"]: row["status"] for row in map(json.loads, rows.read_text().splitlines())}
        assert found.items() <= {"one": "failed", "two": "passed", "three": "failed"}.items()
    again = project.run("eval", "a.eval.yaml", f"--resume={run.name}")
    assert again.status == 1, again.stderr
    assert "3 cases: 1 passed, 2 failed" in again.stderr


def test_an_agent_that_leaves_the_results_alone_is_not_accused(project):
    project.write("agent.py", AGENT)
    project.write("attack.py", "read(index)")
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "rows.jsonl")
    assert (ended.status, "something else" in ended.stderr) == (1, False), ended.stderr


def test_a_run_whose_directory_is_removed_says_so(project):
    project.write("agent.py", AGENT)
    project.write("attack.py", "shutil.rmtree(run)")
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == 3, ended.stderr
    assert "it was removed during the run" in ended.stderr


LEFT = """
import sys, time
for _ in range(300):
    time.sleep(0.01)
    try:
        with open(sys.argv[1], 'r+') as file:
            text = file.read()
            file.seek(0)
            file.write(text.replace('"status":"failed"', '"status":"passed"') + '{}\\n')
    except OSError:
        pass
"""


def test_a_process_that_is_left_behind_changes_no_verdict(project):
    quiet = "stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
    project.write("agent.py", AGENT)
    project.write("left.py", LEFT)
    project.write(
        "attack.py",
        f"subprocess.Popen([sys.executable, 'left.py', index], start_new_session=True, {quiet}); time.sleep(0.3)",
    )
    project.write("a.eval.yaml", SUITE)
    ended = project.run("eval", "a.eval.yaml", "-o", "rows.jsonl")
    assert ended.status == 3, ended.stderr
    assert "3 cases: 1 passed, 2 failed" in ended.stderr


@pytest.mark.parametrize("attack", ["write(journal, read(journal).replace('bad', 'ok!'))", "write(index, forged())"])
def test_an_agent_of_a_resumed_run_changes_no_row_of_the_one_before(project, attack):
    project.write("agent.py", AGENT)
    project.write("attack.py", "sys.exit(1)")
    project.write("a.eval.yaml", SUITE)
    first = project.run("eval", "a.eval.yaml")
    assert "1 errored" in first.stderr
    project.write("attack.py", attack)
    ended = project.run("eval", "a.eval.yaml", "--resume", "--rerun=errored")
    assert ended.status == 3, ended.stderr
    assert "another program changed the results" in ended.stderr
    assert "3 cases: 1 passed, 2 failed" in ended.stderr


EXAM = "cases:\n  - {name: one, inputs: {name: one}, assert: [{contains: ok}]}\n"
FORGE = """
import json, os, sys, hashlib, glob
log = 'prompts/greeter/.eval.jsonl'
run = sorted(glob.glob('.agentv/results/*/'))[-1]
row = {"ts": TS, "all_passed": True, "total": 1, "passed": 1, "failed_cases": [], "run_id": RUN}
row |= {"prompt_sha256": None, "errored": 0, "partial": False}
CHANGE
print('bad')
"""


@pytest.fixture
def library(project):
    project.write(
        ".agentv/targets.yaml",
        "targets:\n  - {name: agent, provider: cli, command: [python3, forge.py, '{PROMPT}']}\n"
        "defaults: {target: agent}\n",
    )
    project.write("prompts/greeter/prompt.md", "{{ name }}\n")
    project.write("prompts/greeter/meta.yaml", "description: Greets\nstatus: draft\nowner: me\n")
    project.write("prompts/greeter/eval.yml", EXAM)
    return project


@pytest.mark.parametrize(
    ("ts", "run_id"), [("2099-01-01T00:00:00Z", "elsewhere"), ("2026-01-01T00:00:00Z", None)], ids=["later", "own id"]
)
def test_a_row_of_an_exam_that_the_agent_wrote_is_set_aside(library, ts, run_id):
    change = "open(log, 'a').write(json.dumps(row) + '\\n')"
    row = FORGE.replace("TS", repr(ts)).replace("RUN", repr(run_id) if run_id else "run.split('/')[-2]")
    library.write("forge.py", row.replace("CHANGE", change))
    ended = library.run("prompt", "eval", "greeter")
    assert ended.status == 3, ended.stderr
    assert "1 row in .eval.jsonl not written by an exam" in ended.stderr
    (kept,) = (library.path / "prompts/greeter/.eval.jsonl").read_text().splitlines()
    assert json.loads(kept)["all_passed"] is False


def test_a_log_that_the_agent_rewrote_is_put_to_right(library):
    library.write("forge.py", "print('bad')")
    assert library.run("prompt", "eval", "greeter").status == 1
    log = library.path / "prompts/greeter/.eval.jsonl"
    before = log.read_text()
    library.write("forge.py", FORGE.replace("TS", "'x'").replace("RUN", "'x'").replace("CHANGE", "os.unlink(log)"))
    ended = library.run("prompt", "eval", "greeter")
    assert ended.status == 3, ended.stderr
    assert log.read_text().startswith(before)
    assert len(log.read_text().splitlines()) == 2


def test_a_cassette_that_the_agent_rewrote_is_put_to_right(project):
    project.write("agent.py", "print('ok')")
    project.write(
        "check.py", "import os\nif os.path.exists('c.jsonl'): open('c.jsonl', 'a').write('{}')\nprint('{\"score\": 1}')"
    )
    project.write(
        "a.eval.yaml",
        "target: {name: agent, provider: cli, command: [python3, agent.py]}\n"
        "tests:\n  - {id: a, input: x, assert: [{type: script, command: [python3, check.py]}]}\n",
    )
    first = project.run("eval", "a.eval.yaml", "--record", "c.jsonl")
    assert first.status == 0, first.stderr
    before = (project.path / "c.jsonl").read_text()
    assert (project.path / "c.jsonl").stat().st_mode & 0o777 == 0o600
    ended = project.run("eval", "a.eval.yaml", "--replay", "c.jsonl")
    assert ended.status == 3, ended.stderr
    assert "c.jsonl was changed" in ended.stderr
    assert (project.path / "c.jsonl").read_text() == before


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
