"""Code that grades, in cassettes, among saved files and in the signature of a run."""

import json
import os
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from agentv.app.planning.preparation import prepare
from agentv.app.run_signature import SIGNATURE, is_signed_here, signature_of
from agentv.app.running.evaluate import evaluate
from agentv.app.running.outcome import Outcome
from agentv.app.saved_files import WatchedFiles, differing, outputs
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
    shown = "the answer, the code or its options changed, or it could not grade when this was recorded"
    assert shown in (outcome.directory / "index.jsonl").read_text()


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


RECORD = {"run_id": "r", "settings": {"targets": ["cli:x"], "alpha": 0.05}, "suites": [{"path": "s.eval.yaml"}]}


def signed(root, env):
    return {**RECORD, SIGNATURE: signature_of(RECORD, str(root), env)}


def test_what_is_executed_is_signed_with_a_key_of_the_user_alone(tmp_path):
    env = {"AGENTV_HOME": str(tmp_path / "home")}
    record = signed(tmp_path, env)
    (key,) = (tmp_path / "home").iterdir()
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    assert is_signed_here({**record, "name": "given later"}, str(tmp_path), env)
    assert signed(tmp_path, env) == record, "the key stays"
    for changed in (
        {"settings": {**RECORD["settings"], "targets": ["cli:y"]}},
        {"suites": [{"path": "t.eval.yaml"}]},
        {"run_id": "s"},
        {SIGNATURE: "ä"},
        {SIGNATURE: None},
    ):
        assert not is_signed_here({**record, **changed}, str(tmp_path), env), changed
    assert not is_signed_here(record, str(tmp_path / "other"), env)
    assert not is_signed_here(record, str(tmp_path), {"AGENTV_HOME": str(tmp_path / "somebody else")})


def test_a_key_that_others_can_read_signs_nothing(tmp_path):
    env = {"AGENTV_HOME": str(tmp_path / "home")}
    record = signed(tmp_path, env)
    (key,) = (tmp_path / "home").iterdir()
    key.chmod(0o640)
    assert not is_signed_here(record, str(tmp_path), env)
    assert signature_of(RECORD, str(tmp_path), env) is None
    key.chmod(0o600)
    key.write_bytes(b"")
    assert signature_of(RECORD, str(tmp_path), env) is None, "an empty key would be known to all"


def test_a_machine_without_a_place_for_a_key_runs_all_the_same(tmp_path):
    (tmp_path / "file").write_text("")
    env = {"AGENTV_HOME": str(tmp_path / "file")}
    assert signature_of(RECORD, str(tmp_path), env) is None
    assert not is_signed_here(RECORD, str(tmp_path), env)


@pytest.fixture
def saved_files_project(tmp_path):
    for name in ("evals/a.eval.yaml", ".agentv/targets.yaml", ".env", "src/agent.py"):
        write(tmp_path / name, "1")
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(0, next(TIMES)))


TIMES = iter(range(1, 10_000))


def watched(saved_files_project, *saves):
    """Files that are looked at; each pause performs the next save."""
    ahead = iter(saves)

    def sleep(_seconds):
        save = next(ahead, None)
        if save is not None:
            save()

    return WatchedFiles(
        (str(saved_files_project),), frozenset({str(saved_files_project / "out.md")}), sleep, lambda: 0.0
    )


def changed(saved_files_project, *saves):
    files = watched(saved_files_project, *saves)
    paths, _ = files.changed(files.snapshot())
    return [os.path.relpath(path, saved_files_project) for path in paths]


def test_new_deleted_renamed_and_replaced_files_are_changes(saved_files_project):
    evals = saved_files_project / "evals"
    assert changed(saved_files_project, lambda: write(evals / "b.eval.yaml", "1")) == ["evals/b.eval.yaml"]
    assert changed(saved_files_project, (evals / "b.eval.yaml").unlink) == ["evals/b.eval.yaml"]
    shown = changed(saved_files_project, lambda: (evals / "a.eval.yaml").rename(evals / "c.eval.yaml"))
    assert shown == ["evals/a.eval.yaml", "evals/c.eval.yaml"]
    write(saved_files_project / ".env.new", "2")
    assert changed(
        saved_files_project, lambda: (saved_files_project / ".env.new").rename(saved_files_project / ".env")
    ) == [".env", ".env.new"]
    shown = changed(saved_files_project, lambda: write(saved_files_project / ".agentv/targets.yaml", "2"))
    assert shown == [".agentv/targets.yaml"]


def test_what_runs_and_editors_write_is_no_change(saved_files_project):
    own = [".agentv/results/r/index.jsonl", ".git/index", "out.md", "evals/.a.swp", "evals/a.eval.yaml~", "4913"]
    own += ["__pycache__/a.pyc", "node_modules/x/index.js", ".venv/x.py", "#a#"]
    saves = [lambda name=name: write(saved_files_project / name, "2") for name in own]
    shown = changed(saved_files_project, *saves, lambda: write(saved_files_project / "src/agent.py", "2"))
    assert shown == ["src/agent.py"]


def test_a_file_that_was_restored_is_no_change(saved_files_project):
    path = saved_files_project / "evals/a.eval.yaml"
    hidden = saved_files_project / "evals/.hidden"
    steps = [
        lambda: path.rename(hidden),
        lambda: hidden.rename(path),
        None,
        lambda: write(saved_files_project / "b.yaml", ""),
    ]
    assert changed(saved_files_project, *steps) == ["b.yaml"]


def test_the_files_that_the_output_goes_to_are_not_looked_at(saved_files_project):
    with (saved_files_project / "evals/run.log").open("w") as log:
        assert outputs([log.fileno(), 10_000]) == outputs([log.fileno()])
        files = WatchedFiles(
            (str(saved_files_project),), frozenset(), lambda _: None, lambda: 0.0, outputs([log.fileno()])
        )
        before = files.snapshot()
        print("a line", file=log, flush=True)
        write(saved_files_project / "evals/other.log", "a line")
        assert differing(before, files.snapshot()) == [str(saved_files_project / "evals/other.log")]
