"""`--record` and `--replay`: one file stands in for targets, judges and embedders, and reports missing calls."""

import json
import shutil
import signal
import time

import pytest

from agentv.testing import ModelServer
from doubles.waiting import until
from e2e.command import Project, stopped

AGENT = """
import json, os

def note(line):
    with open("asked.txt", "a") as file:
        file.write(line + "\\n")

async def answer(prompt, case_id):
    note(f"target {case_id}")
    return {"output": f"It is {prompt}.", "cost_usd": 0.5, "token_usage": {"input": 1, "output": 2}}

def judge(prompt, case_id):
    note(f"judge {case_id}")
    return {"output": json.dumps({"checks": [{"id": "r1", "satisfied": True}]}), "cost_usd": 0.25}
"""
SUITE = """
target: python:agent.py:answer
judge: python:agent.py:judge
tests:
  - {id: b, input: blue, assert: [{contains: blue}]}
  - {id: a, input: red, assert: [{contains: red}, is a colour]}
"""


@pytest.fixture
def recorded(project):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})
    ended = project.run("eval", "a.eval.yaml", "--record", "fixtures/run.jsonl", status=0)
    assert "recorded 3 calls in fixtures/run.jsonl" in ended.stderr
    (project.path / "asked.txt").unlink()
    return project


def lines(project) -> list[dict]:
    return [json.loads(line) for line in (project.path / "fixtures" / "run.jsonl").read_text().splitlines()]


def test_a_cassette_is_read_by_people_and_by_git(recorded):
    header, *calls = lines(recorded)
    assert header == {"format": "agentv-cassette", "version": 1}
    shown = [(call["case"], call["target"]) for call in calls]
    assert shown == [("a", "python:agent.py:answer"), ("a", "python:agent.py:judge"), ("b", "python:agent.py:answer")]
    assert calls[0]["asked"] == [{"role": "user", "content": "red"}]
    assert calls[0]["answer"]["output"] == "It is red."
    assert "<answer-[nonce-0]>" in calls[1]["asked"][1]["content"]


def test_a_good_cassette_is_not_lost_to_a_target_that_is_down(recorded):
    before = lines(recorded)
    recorded.write("agent.py", AGENT.replace('note(f"target', 'assert case_id == "a", (f"target'))
    ended = recorded.run("eval", "a.eval.yaml", "--record", "fixtures/run.jsonl", status=3)
    assert "error: fixtures/run.jsonl is unchanged, because 1 trial errored: record it again" in ended.stderr
    assert lines(recorded) == before


def test_it_stands_for_everybody(recorded):
    recorded.run("eval", "a.eval.yaml", "--replay", "fixtures/run.jsonl", "--out", "out", status=0)
    assert sorted(recorded.asked) == []
    assert {row["test_id"]: row["output"] for row in recorded.rows("out")} == {"a": "It is red.", "b": "It is blue."}
    summary = recorded.summary()
    assert (summary["cost_usd"], summary["judge_cost_usd"]) == (None, 0.0)


def test_recorded_twice_it_is_the_same_but_for_the_times(recorded):
    before = lines(recorded)
    recorded.run("eval", "a.eval.yaml", "--record", "fixtures/run.jsonl")
    after = lines(recorded)
    for call in (*before[1:], *after[1:]):
        del call["answer"]["duration_ms"]
    assert before == after


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("input: blue", "input: sky"), "has no answer of 'python:agent.py:answer' to the case 'b' to this"),
        (("id: b,", "id: c,"), "has no answer of 'python:agent.py:answer' to the case 'c'"),
        (("is a colour", "is bright"), "has no answer of 'python:agent.py:judge' to the case 'a' to this"),
    ],
)
def test_a_call_that_it_does_not_hold_is_an_error_that_names_it(recorded, change, told):
    recorded.write("a.eval.yaml", SUITE.replace(*change))
    ended = recorded.run("eval", "a.eval.yaml", "--replay", "fixtures/run.jsonl", status=3, says="not-recorded")
    assert told in ended.stderr
    assert sorted(recorded.asked) == []


def test_what_it_lacks_is_asked_and_added_where_that_is_wanted(recorded):
    recorded.write("a.eval.yaml", SUITE.replace("input: blue", "input: sky blue"))
    words = ["eval", "a.eval.yaml", "--replay", "fixtures/run.jsonl"]
    recorded.run(*words, "--replay-mode", "new", status=0)
    assert sorted(recorded.asked) == ["target b"]
    assert len(lines(recorded)) == 5  # the old call is kept, because another run may need it
    assert recorded.run(*words).status == 0


INTERRUPTED = SUITE.replace("answer\njudge", "answer\nrun: {workers: 1}\njudge").replace("id: b,", "id: slow,")
SLOW = AGENT.replace("import json, os", "import asyncio, json, os").replace(
    'note(f"target {case_id}")',
    'note(f"target {case_id}"); await asyncio.sleep(float(os.environ["SLOW_S"]) * (case_id == "slow"))',
)


def interrupted(project, *words: str) -> str:
    """Stop a run of two cases during the second one, and return its stderr."""
    project.write("agent.py", SLOW)
    first, second = INTERRUPTED.splitlines()[-1], INTERRUPTED.splitlines()[-2]
    project.write("a.eval.yaml", INTERRUPTED.replace(f"{second}\n{first}", f"{first}\n{second}"))
    process = project.start("eval", "a.eval.yaml", *words, env={"SLOW_S": "60"})
    until(lambda: "target slow" in project.asked)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    return stopped(process, status=130)


def test_an_interrupted_recording_is_begun_anew_and_with_a_cache_asks_nobody_twice(project):
    said = interrupted(project, "--record", "run.jsonl", "--cache")
    assert "run.jsonl is not written, because the run was interrupted, and a cassette requires a complete run" in said
    assert "agentv eval a.eval.yaml --cache --resume=" in said  # resuming would refuse --record
    assert not (project.path / "run.jsonl").exists()
    before = sorted(project.asked)
    project.write("a.eval.yaml", SUITE.replace("id: b,", "id: c,"))
    ended = project.run("eval", "a.eval.yaml", "--record", "run.jsonl", "--cache", env={"SLOW_S": "60"})
    assert "recorded 3 calls in run.jsonl" in ended.stderr
    assert sorted(project.asked) == sorted([*before, "target c"])
    assert '"earlier"' not in (project.path / "run.jsonl").read_text()


def test_an_interrupted_replay_keeps_what_it_added_and_goes_on(project):
    words = ("--replay", "run.jsonl", "--replay-mode", "new", "--out", "out")
    assert "added 2 calls to run.jsonl, which now holds 2" in interrupted(project, *words)
    ended = project.run("eval", "a.eval.yaml", *words, "--resume", env={"SLOW_S": "0"}, status=0)
    assert sorted(project.asked) == ["judge a", "target a", "target slow", "target slow"]
    assert "added 1 call to run.jsonl, which now holds 3" in ended.stderr


def test_a_cassette_that_would_hold_a_secret_is_not_written(project):
    target = "{provider: cli, command: 'echo it is $API_TOKEN', env: {API_TOKEN: hunter2222}}"
    project.write("a.eval.yaml", f"target: {target}\ntests:\n  - {{id: a, input: x, assert: [{{contains: it}}]}}\n")
    ended = project.run("eval", "a.eval.yaml", "--record", "run.jsonl", status=3)
    assert "run.jsonl is not written, because the call to" in ended.stderr
    assert "contains a secret" in ended.stderr
    assert "hunter2222" not in ended.stderr
    assert not (project.path / "run.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no cassette at run.jsonl"),
        ("hello\n", "run.jsonl is not a cassette"),
        ("", "run.jsonl is not a cassette"),
        (
            '{"format":"agentv-cassette","version":4}\n',
            "was written by a newer agentv (format 4; this one reads up to 3)",
        ),
        ('{"format":"agentv-cassette","version":1}\n{"key": 1}\n', "run.jsonl:2: not a cassette call"),
    ],
)
def test_a_file_that_is_no_cassette_is_refused(project, content, told):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE})
    if content is not None:
        project.write("run.jsonl", content)
    project.run("eval", "a.eval.yaml", "--replay", "run.jsonl", status=2, says=told)
    assert not (project.path / ".agentv" / "results").exists()


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("a.eval.yaml", "a.eval.yaml is not a cassette"),
        ("agent.py", "agent.py is not a cassette"),
        ("empty.jsonl", "empty.jsonl is not a cassette"),
        ("/", "/ is a directory"),
        ("agent.py/run.jsonl", "agent.py is not a directory"),
        ("n" * 253, "name too long"),
        ("", "--record has an empty name"),
    ],
)
def test_nothing_is_recorded_over_what_is_no_cassette_nor_where_it_cannot_be_written(project, file, told):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": SUITE, "empty.jsonl": ""})
    ended = project.run("eval", "a.eval.yaml", "--record", file)
    assert (ended.status, sorted(project.asked), project.ran) == (2, [], False)
    assert told.lower() in ended.stderr.lower()
    assert ((project.path / "a.eval.yaml").read_text(), (project.path / "agent.py").read_text()) == (SUITE, AGENT)


@pytest.mark.parametrize(("words", "status"), [(["--fail-fast"], 1), (["--max-errors", "1"], 3)])
def test_a_run_that_stopped_early_is_no_cassette(recorded, words, status):
    file = recorded.path / "fixtures" / "run.jsonl"
    before = file.read_text()
    check = "contains: no" if status == 1 else "python: 1/0"
    recorded.write("a.eval.yaml", SUITE.replace("contains: blue", check))
    common = ("eval", "a.eval.yaml", "--record", "fixtures/run.jsonl", "--workers", "1", *words)
    ended = recorded.run(*common, status=status)
    shown = "run.jsonl is not written, because the run stopped early, and a cassette requires a complete run"
    assert shown in ended.stderr
    assert file.read_text() == before
    ended = recorded.run(*common, "--filter", "b")  # stopped by its last trial, it is complete
    said = "recorded 1 call in fixtures/run.jsonl, replacing 3" if status == 1 else "is unchanged, because 1 trial"
    assert said in ended.stderr


@pytest.mark.libraries
def test_a_model_an_embedder_and_no_key_are_needed_no_more(project):
    suite = """
target: openai:gpt-5-mini
tests:
  - {id: a, input: hello, expected_output: hi, assert: [contains: hi, {type: similar, value: hi, weight: 0}]}
"""
    project.write("a.eval.yaml", suite)
    with ModelServer("hi there", keys=["k-1234567"]) as server:
        env = {"OPENAI_BASE_URL": server.openai, "OPENAI_API_KEY": "k-1234567"}
        project.run("eval", "a.eval.yaml", "--record", "run.jsonl", env=env, status=0)
    calls = [json.loads(line) for line in (project.path / "run.jsonl").read_text().splitlines()[1:]]
    assert len(calls) == 3
    ended = project.run("eval", "a.eval.yaml", "--replay", "run.jsonl", env={"OPENAI_BASE_URL": env["OPENAI_BASE_URL"]})
    assert ended.status == 0, ended.stderr


ATTACHED = """
targets: ["python:agent.py:answer", {name: sh, provider: cli, command: [sh, ./agent.sh], cwd: tools}]
tests:
  - id: a
    input:
      - role: user
        content:
          - {type: text, value: look}
          - {type: file, value: notes.md}
          - {type: file, value: /notes.md}
    assert: [{contains: look}]
"""


def test_a_copy_of_the_repository_asks_the_same(project, tmp_path_factory):
    project.write("agent.py", AGENT)
    project.write("tools/agent.sh", "echo sh >> ../asked.txt\ncat\n")
    project.write("notes.md", "one")
    project.write("a.eval.yaml", ATTACHED)
    assert project.run("eval", "a.eval.yaml", "--record", "run.jsonl", "--cache").status == 0
    assert sorted(project.asked) == ["sh", "target a"]
    assert str(project.path) not in (project.path / "run.jsonl").read_text()
    copy = Project(tmp_path_factory.mktemp("copy") / "project")
    shutil.copytree(project.path, copy.path)
    (copy.path / "asked.txt").unlink()
    for more in (("--replay", "run.jsonl"), ("--cache",)):
        ended = copy.run("eval", "a.eval.yaml", *more)
        assert (ended.status, sorted(copy.asked)) == (0, []), ended.stderr
    copy.write("notes.md", "two")
    copy.run("eval", "a.eval.yaml", "--replay", "run.jsonl", "-o", "edited", status=3)
    assert {row["error"]["code"] for row in copy.rows("edited")} == {"not-recorded"}
    assert copy.run("eval", "a.eval.yaml", "--cache").status == 0
    assert sorted(copy.asked) == ["sh", "target a"]


def test_todays_assertions_grade_yesterdays_answers(recorded):
    recorded.write("a.eval.yaml", SUITE.replace("{contains: blue}", "{contains: green}, is short"))
    recorded.run("eval", "a.eval.yaml", "--regrade", "-o", "new", status=1, says="grading 2 answers of 20")
    assert sorted(recorded.asked) == ["judge b"]  # the judge's reply for the other case is recorded
    rows = {row["test_id"]: row for row in recorded.rows("new")}
    assert [rows[name]["status"] for name in "ab"] == ["passed", "failed"]
    assert (rows["b"]["output"], rows["b"]["reused"], rows["b"]["cost_usd"]) == ("It is blue.", True, 0.5)
    found = recorded.summary("new")
    assert (found["cost_usd"], found["token_usage"], found["judge_cost_usd"]) == (None, None, 0.25)


def test_an_interrupted_regrading_goes_on(recorded):
    recorded.run("eval", "a.eval.yaml", "--regrade", "-o", "new")
    index = recorded.path / "new" / "index.jsonl"
    index.write_text(index.read_text().splitlines(keepends=True)[0])
    recorded.run("eval", "a.eval.yaml", "--regrade", "-o", "new", "--resume", status=0)
    assert sorted(recorded.asked) == []
    assert recorded.summary("new")["cases"]["passed"] == 2
    assert recorded.summary("new")["cost_usd"] is None


def test_a_trial_without_an_answer_is_errored_and_never_asked(recorded):
    recorded.write("a.eval.yaml", SUITE.replace("input: blue", "input: sky blue"))
    ended = recorded.run("eval", "a.eval.yaml", "--regrade", "-o", "new", status=3, says="grading 1 answer of 20")
    assert "1 trial without a stored answer will be errored" in ended.stderr
    assert "no-kept-answer" in ended.stderr
    assert sorted(recorded.asked) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--regrade=20200101T000000Z-0000"], "cannot regrade: no run '20200101T000000Z-0000'"),
        (["--regrade", "--rerun=failed"], "--regrade and --rerun conflict: one calls no target, the other does"),
    ],
)
def test_what_cannot_be_regraded_is_refused(recorded, words, told):
    recorded.run("eval", "a.eval.yaml", *words, status=2, says=told)


def test_thoughts_of_a_stored_answer_are_graded_as_the_target_says_today(project):
    target = "{name: t, provider: mock, response: '<think>maybe 41?</think> 42'THOUGHTS}"
    suite = "target: TARGET\ntests: [{id: a, input: x, assert: [{contains: '41'}]}]\n"
    stripped, kept = (target.replace("THOUGHTS", said) for said in ("", ", thoughts: keep"))
    project.write("a.eval.yaml", suite.replace("TARGET", stripped))
    assert project.run("eval", "a.eval.yaml", "-o", "first").status == 1
    (row,) = project.rows("first")
    assert (row["output"], row["thoughts"]) == ("42", "<think>maybe 41?</think> ")
    project.write("a.eval.yaml", suite.replace("TARGET", kept))
    assert project.run("eval", "a.eval.yaml", "--regrade=first", "-o", "second").status == 0
    assert project.rows("second")[0]["output"] == "<think>maybe 41?</think> 42"
    resumed = project.run("eval", "a.eval.yaml", "--resume", "-o", "first")
    assert resumed.status == 0, resumed.stderr  # the graded content changed, so the trial is graded again
    project.write("a.eval.yaml", suite.replace("TARGET", stripped))
    assert project.run("eval", "a.eval.yaml", "--regrade=second", "-o", "third").status == 1
