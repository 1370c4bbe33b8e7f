"""`--record-code`: a cassette stands for code that grades, and tells when it does not."""

from __future__ import annotations

import json
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.running.outcome import Outcome
from agentv.app.settings import EvalSettings
from agentv.errors import StoreError, UsageError
from doubles.loading import repository

SUITE = """\
name: shop
target: echo
judge: 'mock:{"score": 1}'
tests:
  - id: a
    input: hello
    assert:
      - {type: script, name: noted, command: ./check.sh}
      - assert-set: [{polite: 0.7}, contains: hello]
      - python: |
          with open("ran", "a") as file:
              file.write("p")
          return len(output) / 5
      - {type: script, name: asks, command: ./check.sh, target: {max_calls: 1}}
      - {type: not-script, name: refused, command: ./refuse.sh, weight: 0}
  - id: b
    input: bye
    repeat: 2
    assert: [{type: script, command: ./check.sh}]
"""
CHECK = """#!/bin/sh
printf s >> ran
echo '{"score": 0.9, "checks": [{"text": "fine", "passed": true, "evidence": "so it is"}], "details": {"n": 1}}'
"""
REFUSE = '#!/bin/sh\nprintf r >> ran\necho \'{"pass": false, "reason": "no"}\'\n'
POLITE = """
def polite(context, value):
    with open("ran", "a") as file:
        file.write("c")
    return {"score": value, "pass": True, "reason": "kind"}
"""


@pytest.fixture
def project(tmp_path):
    files = {"a.eval.yaml": SUITE, "check.sh": CHECK, "refuse.sh": REFUSE, ".agentv/assertions/polite.py": POLITE}
    repository(tmp_path / "one", files)
    for script in ("check.sh", "refuse.sh"):
        (tmp_path / "one" / script).chmod(0o755)
    with chdir(tmp_path / "one"):
        yield tmp_path / "one"


def run(**options: Any) -> Outcome:
    return evaluate(prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, **options)), lambda _event: None)


def recorded() -> Outcome:
    outcome = run(record="run.jsonl", record_code=True)
    Path("ran").unlink()
    return outcome


def ran() -> str:
    return "".join(sorted(Path("ran").read_text())) if Path("ran").exists() else ""


def grades(outcome: Outcome) -> dict[tuple[str, int], list[Any]]:
    rows = [json.loads(line) for line in (outcome.directory / "index.jsonl").read_text().splitlines()]
    keys = ("name", "score", "pass", "assertions", "reason", "details")
    return {
        (row["test_id"], row["sample"]): [
            row["status"],
            row["score"],
            [[one[key] for key in keys] for one in row["scores"]],
        ]
        for row in rows
    }


def edit(file: str, old: str, new: str) -> None:
    text = Path(file).read_text()
    assert old in text
    Path(file).write_text(text.replace(old, new))


def test_no_code_runs_and_the_grades_are_the_same(project):
    first = recorded()
    again = run(replay="run.jsonl")
    assert ran() == ""
    assert grades(again) == grades(first)
    assert again.status == first.status == 0


def test_another_checkout_replays_it(project):
    recorded()
    shutil.copytree(project, project.parent / "two")
    with chdir(project.parent / "two"):
        assert run(replay="run.jsonl").status == 0
        assert ran() == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "which"),
    [
        ("check.sh", "0.9", "0.8", "noted"),
        (".agentv/assertions/polite.py", "kind", "rude", "polite"),
        ("a.eval.yaml", "polite: 0.7", "polite: 0.6", "polite"),
        ("a.eval.yaml", '"score": 1}', '"score": 0}', "asks"),
    ],
)
def test_what_changed_is_an_error_that_names_it(project, file, old, new, which):
    recorded()
    edit(file, old, new)
    outcome = run(replay="run.jsonl")
    assert (outcome.status, ran()) == (3, "")
    errors = [row for row in (outcome.directory / "index.jsonl").read_text().splitlines() if "not-recorded" in row]
    assert any("run.jsonl has no " in row and which in row for row in errors)


def test_what_it_lacks_is_run_and_added(project):
    recorded()
    edit(".agentv/assertions/polite.py", "kind", "very kind")
    outcome = run(replay="run.jsonl", replay_mode="new")
    assert (outcome.status, ran()) == (0, "c")
    assert "added 1 call to run.jsonl" in outcome.notes[-1]
    assert (run(replay="run.jsonl").status, ran()) == (0, "c")


def test_what_could_not_judge_is_not_recorded(project):
    Path("refuse.sh").write_text('#!/bin/sh\necho \'{"score": "high"}\'\n')
    recorded()
    assert "refused" not in Path("run.jsonl").read_text()
    outcome = run(replay="run.jsonl")
    assert (
        "the answer, the code or its options changed, or it could not grade when this was recorded"
        in (outcome.directory / "index.jsonl").read_text()
    )


def test_a_grade_that_holds_a_secret_is_no_line_of_a_cassette(project):
    edit("check.sh", "so it is", "hunter2222")
    edit("a.eval.yaml", "target: echo", "target: {provider: echo, env: {API_TOKEN: hunter2222}}")
    outcome = run(record="run.jsonl", record_code=True)
    told = outcome.problem or ""  # of whichever grade came first
    assert told.startswith("run.jsonl is not written, because the call to '")
    assert told.endswith("contains a secret")
    assert not Path("run.jsonl").exists()


def test_what_it_cost_is_not_paid_again(project):
    recorded()
    lines = Path("run.jsonl").read_text().splitlines(keepends=True)
    priced = [line.replace('"score":0.9', '"cost_usd":0.5,"score":0.9') for line in lines]
    Path("run.jsonl").write_text("".join(priced))
    assert run(replay="run.jsonl").summary.judge_cost_usd == 0.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"score":0.9', '"score":1.5'),
        ('"pass":true', '"pass":1'),
        ('"grade":{', '"grade":{"x":1,'),
        ('"checks":', '"c":'),
    ],
)
def test_a_line_that_is_no_grade_is_refused(project, old, new):
    recorded()
    edit("run.jsonl", old, new)
    with pytest.raises(StoreError, match=r"run.jsonl:\d+: not a cassette call: .*grade"):
        run(replay="run.jsonl")


def test_it_says_what_a_cassette_holds(project):
    with pytest.raises(UsageError, match="--record-code requires a recording"):
        run(record_code=True)
    with pytest.raises(UsageError, match="--record-code requires a recording"):
        run(replay="run.jsonl", record_code=True)
