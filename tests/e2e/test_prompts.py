"""`agentv prompt`: a prompt is ready only after passing its exam (SPEC section 11)."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from doubles.waiting import until
from e2e.command import AGENTV, Project, stopped
from e2e.test_commands import EXAMPLES

TARGETS = """\
targets:
  - name: pupil
    provider: mock
    responses: {greets: Hello Ann, closes: The shop is closed., default: Hello}
  - {name: other, provider: mock, response: Hello Ann}
  - {name: strict, provider: mock, response: SCORE=2 REASON=no warmth}
  - {name: kind, provider: mock, response: SCORE=5 REASON=warm}
  - {name: doorkeeper, provider: mock, responses: {"trigger: what is the weather": "NO", default: "YES"}}
defaults: {target: pupil}
"""
EXAM = """\
cases:
  - name: greets
    inputs: {name: Ann}
    assert: [contains: Ann]
"""
META = """\
# what it is for
description: Greets a person by name   # seen by all
owner: jane
status: draft # set by promote
"""


class Library(Project):
    """A project with one prompt, `greeter`."""

    @classmethod
    def of(cls, project: Project) -> Library:
        library = cls(project.path)
        library.write(".agentv/targets.yaml", TARGETS)
        library.write_prompt("greeter")
        return library

    def write_prompt(self, name: str, *, exam: str = EXAM, meta: str = META) -> None:
        self.write(f"prompts/{name}/prompt.md", "Greet {{ name }}.\n")
        self.write(f"prompts/{name}/meta.yaml", meta)
        self.write(f"prompts/{name}/eval.yml", exam)

    def log(self, name: str = "greeter") -> list[dict]:
        path = self.path / "prompts" / name / ".eval.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def meta(self, name: str = "greeter") -> str:
        return (self.path / "prompts" / name / "meta.yaml").read_text()

    def ready(self, name: str = "greeter") -> None:
        """Run the prompt's exam and promote it."""
        assert self.run("prompt", "eval", name).status == 0
        self.run("prompt", "promote", name, "--to", "ready", status=0)


@pytest.fixture
def library(project) -> Library:
    return Library.of(project)


def test_from_an_empty_repository_to_a_ready_prompt(project):
    assert project.run("prompt", "init", "shorten").status == 0
    assert project.run("prompt", "doctor").status == 0
    project.write(
        ".agentv/targets.yaml",
        "targets: [{name: m, provider: mock, response: We meet Monday; it is closed}]\ndefaults: {target: m}\n",
    )
    assert project.run("prompt", "list").stdout.splitlines()[1].split() == ["shorten", "draft", "never"]
    project.run("prompt", "promote", "shorten", status=1, says="its exam has never run")
    sat = project.run("prompt", "eval", "shorten", status=0, says="exam of shorten: passed, 2 of 2")
    assert "can be promoted to tested: agentv prompt promote shorten" in sat.stderr
    for status in ("tested", "ready"):
        assert f"→ {status}" in project.run("prompt", "promote", "shorten").stderr
    assert project.run("prompt", "check", "--require", "ready").status == 0


def test_every_form_that_init_writes_loads_and_nothing_is_overwritten(project):
    for form in ("xml", "md", "txt"):
        assert project.run("prompt", "init", f"a-{form}", "--format", form).status == 0
    assert project.run("prompt", "doctor").stderr == "3 prompts: no problems found\n"
    project.write("prompts/a-md/meta.yaml", "description: mine\n")
    (project.path / "prompts/a-md/eval.yml").unlink()
    again = project.run("prompt", "init", "a-md", says="kept prompts/a-md/prompt.md")
    assert "wrote prompts/a-md/eval.yml" in again.stderr
    assert (project.path / "prompts/a-md/meta.yaml").read_text() == "description: mine\n"
    assert not (project.path / "prompts/a-md/prompt.xml").exists()
    for wrong in ("../up", "-x", ".hidden", "a b"):
        assert project.run("prompt", "init", "--", wrong).status == 2


@pytest.mark.parametrize(
    "words", [("eval", "prompts"), ("eval", "prompts/greeter/eval.yml"), ("prompt", "eval", "--all")]
)
def test_every_way_to_run_an_exam_puts_it_on_record(library, words):
    assert library.run(*words).status == 0
    assert [row["all_passed"] for row in library.log()] == [True]


@pytest.mark.parametrize("words", [(), ("--limit", "1")], ids=lambda words: " ".join(words) or "whole")
def test_eval_of_the_file_is_prompt_eval_of_the_id(library, words):
    second = "  - {name: closes, inputs: {name: Bo}, assert: [contains: e]}\n"
    library.write("prompts/greeter/eval.yml", "defaults: {model: pupil}\n" + EXAM + second)
    by_id = library.run("prompt", "eval", "greeter", "--json", *words)
    by_file = library.run("eval", "prompts/greeter/eval.yml", "--json", *words)
    rows = [{key: row[key] for key in row if key not in {"ts", "run_id"}} for row in library.log()]
    assert rows[0] == rows[1]
    assert rows[0]["partial"] is bool(words)
    for one in (by_id, by_file):
        [exam] = json.loads(one.stdout)["exams"]
        assert (exam["promotion"]["to"], exam["promotion"]["open"]) == ("tested", not words)


def test_an_unrelated_target_does_not_matter_and_an_edited_one_does(library):
    unrelated = "  - {name: code, provider: python, function: 'm.py:f'}\ndefaults:"
    library.write(".agentv/targets.yaml", TARGETS.replace("defaults:", unrelated))
    library.write("m.py", "def f(prompt):\n    return prompt\n")
    library.ready()
    library.write("m.py", "def f(prompt):\n    return 'x'\n")
    assert library.run("prompt", "doctor").status == 0
    library.write(".agentv/targets.yaml", TARGETS.replace("Hello Ann, closes", "Hi Ann, closes"))
    library.run("prompt", "doctor", status=1, says="   the target 'pupil': edited\n")
    (listed,) = json.loads(library.run("prompt", "list", "--json").stdout)
    assert listed["edited"], "as doctor says"
    assert library.run("prompt", "demote", "greeter").status == 0
    refused = library.run("prompt", "promote", "greeter", "--explain", status=1)
    covered = {
        name: (before, now) for before, _, now, name in (row.split(None, 3) for row in refused.stderr.splitlines()[-4:])
    }
    assert covered.keys() == {"eval.yml", "description", "prompt.md", "target 'pupil'"}
    assert [name for name, (before, now) in covered.items() if before != now] == ["target 'pupil'"]


@pytest.mark.parametrize("edits", [True, False])
def test_a_model_that_the_command_line_alone_names_is_part_of_the_evidence(library, edits):
    targets = TARGETS.replace("defaults: {target: pupil}\n", "")
    library.write(".agentv/targets.yaml", targets)
    assert library.run("prompt", "eval", "greeter", env={"AGENTV_TARGET": "other"}).status == 0
    (row,) = library.log()
    assert (row["model"], row.get("partial", False), "targets.yaml#other" in row["files"]) == ("other", False, True)
    library.write(".agentv/targets.yaml", targets.replace("Hello Ann}", "Hi Ann}" if edits else "Hello Ann}"))
    (listed,) = json.loads(library.run("prompt", "list", "--json").stdout)
    assert bool(listed["changes"]) is edits
    promoted = library.run("prompt", "promote", "greeter")
    assert (promoted.status, "the target 'other': edited" in promoted.stderr) == (int(edits), edits)


def test_diff_shows_what_changed_since_the_exam(library):
    assert library.run("prompt", "diff", "greeter").status == 0
    library.ready()
    assert library.run("prompt", "diff", "greeter").stdout == ""
    library.write("prompts/greeter/prompt.md", "Greet {{ name }} \x1b[2Jwarmly.")
    library.write("prompts/greeter/meta.yaml", library.meta().replace("Greets", "Welcomes"))
    shown = library.run("prompt", "diff", "greeter").stdout
    assert "-Greet {{ name }}.\n" in shown
    assert "+Greet {{ name }} \\x1b[2Jwarmly.\n\\ No newline at end of file" in shown
    assert "-Greets a person by name\n" in shown
    assert "--- description" in shown
    for kept in (library.path / ".agentv" / "exams").iterdir():
        kept.unlink()
    assert "the examined text is not stored here" in library.run("prompt", "diff", "greeter").stdout
    told = json.loads(library.run("prompt", "diff", "greeter", "--json").stdout)
    assert {one["path"]: one["kept"] for one in told["differences"]} == {"prompt.md": False, "description": False}


def test_render_prints_what_the_model_would_see_and_nothing_else(library):
    assert library.run("prompt", "render", "greeter").stdout == "Greet Ann.\n"
    library.write(
        "prompts/greeter/prompt.md", "<system>\nBe {{ '{{' }} kind.\n</system>\n<user>\nGreet {{ name }}.\n</user>\n"
    )
    assert library.run("prompt", "render", "greeter").stdout == "system:\nBe {{ kind.\n\nuser:\nGreet Ann.\n"
    told = json.loads(library.run("prompt", "render", "greeter", "--json").stdout)
    assert [one["role"] for one in told["messages"]] == ["system", "user"]
    library.write("prompts/greeter/eval.yml", EXAM + EXAM.removeprefix("cases:\n").replace("greets", "again"))
    library.run("prompt", "render", "greeter", status=2, says="there are greets, again")
    assert "did you mean 'again'?" in library.run("prompt", "render", "greeter", "--case", "agian").stderr


def test_a_log_that_cannot_be_written_is_no_success_and_the_results_stay(library):
    (library.path / "prompts" / "greeter" / ".eval.jsonl").mkdir()
    ended = library.run("prompt", "eval", "greeter", status=3, says="not recorded: ")
    assert "1 passed" in ended.stderr


SLOW = "import asyncio\nasync def answer(prompt):\n    await asyncio.sleep(0.05)\n    return prompt\n"


def test_an_interrupted_exam_is_on_record_as_partial_and_can_be_gone_on_with(library):
    library.write("agent.py", SLOW)
    cases = "".join(
        f"  - {{name: c{number}, inputs: {{name: Ann}}, assert: [contains: Ann]}}\n" for number in range(40)
    )
    library.write("prompts/greeter/eval.yml", f"defaults: {{model: 'python:/agent.py:answer'}}\ncases:\n{cases}")
    eva = str(Path(AGENTV).with_name("eva"))
    process = subprocess.Popen(
        [eva, "eval", "greeter", "--workers", "2"],
        cwd=library.path,
        env=library.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    results = library.path / ".agentv" / "results"
    until(lambda: any(path.read_bytes().count(b"\n") >= 4 for path in results.glob("*/index.jsonl")))
    stderr = stopped(process, status=130)
    [row] = library.log()
    assert row["partial"] is True
    assert row["total"] == 40
    assert row["passed"] + len(row["failed_cases"]) == 40
    [line] = [line.strip() for line in stderr.splitlines() if "--resume=" in line]
    words = line.split()
    assert words[0] == "eva"
    library.run("prompt", *words[1:], status=0)
    assert [(row["passed"], row["partial"]) for row in library.log()][1:] == [(40, False)]
    assert len({row["run_id"] for row in library.log()}) == 1


@pytest.fixture
def example(project) -> Library:
    shutil.copytree(EXAMPLES / "prompts", project.path, dirs_exist_ok=True)
    return Library(project.path)


def test_the_example_library_sits_its_exams_offline(example):
    example.run("prompt", "eval", "--all", status=0, says="triggering: 4 of 4 queries right")
    assert not any(example.log(name)[-1]["partial"] for name in ("changelog-entry", "diff-surgeon", "refund-reply"))
    assert example.run("prompt", "promote", "diff-surgeon").status == 0
    assert example.run("prompt", "promote", "refund-reply", "--to", "ready").status == 0
    assert example.run("prompt", "check", "--require", "ready").status == 0
    example.write(
        "prompts/refund-reply/prompt.xml",
        "<system>\nBe kind. {{ policy }}\n</system>\n<user>\n{{ message }}\n</user>\n",
    )
    assert "+Be kind. {{ policy }}" in example.run("prompt", "diff", "refund-reply").stdout
    assert example.run("prompt", "check").status == 1
    assert example.run("prompt", "demote", "refund-reply", "--to", "draft").status == 0
    assert example.run("prompt", "check").status == 0
    assert example.run("prompt", "eval", "refund-reply", "--filter", "kind-*").status == 0
    assert example.run("prompt", "promote", "refund-reply").status == 1


LAUNDERED = {
    "prompts/p/prompt.md": "Greet {{ name }}.\n",
    "prompts/p/meta.yaml": "description: Greets.\nstatus: draft\n",
    "prompts/p/eval.yml": (
        "defaults: {model: m, judge: j}\ncases:\n"
        "  - {name: a, inputs: {name: Ann}, assert: [contains: hello]}\n"
        "  - {name: b, inputs: {name: Bob}, assert: [contains: hello]}\n"
    ),
    "agent.py": (
        "import os, pathlib, time\n"
        "def answer(prompt, case_id):\n"
        "    time.sleep(float(os.environ.get('ANSWER_S', '0')))\n"
        "    good = case_id == 'a' or pathlib.Path('good').exists()\n"
        "    return 'hello' if good else 'awful'\n"
    ),
    ".agentv/targets.yaml": (
        "targets:\n  - {name: m, provider: python, function: 'agent.py:answer'}\n"
        "  - {name: j, provider: mock, response: 'SCORE=5 REASON=fine'}\ndefaults: {target: m, judge: j}\n"
    ),
}


def sat(project) -> list[tuple[int, bool, bool]]:
    """Return for every row of the log the number of passed cases, and whether it was the whole exam and partial."""
    lines = (project.path / "prompts" / "p" / ".eval.jsonl").read_text().splitlines()
    return [(row["passed"], row["all_passed"], row["partial"]) for row in map(json.loads, lines)]


@pytest.fixture
def flaky(project):
    return project.write_files(LAUNDERED)


@pytest.mark.parametrize("again", [["--resume"], ["--regrade", "-o", "o"]])
def test_a_recording_that_was_edited_never_becomes_evidence(flaky, again):
    flaky.run("eval", "prompts/p", "--record", "r.jsonl")
    cassette = flaky.path / "r.jsonl"
    cassette.write_text(cassette.read_text().replace("awful", "hello"))
    replayed = flaky.run("eval", "prompts/p", "--replay", "r.jsonl")
    assert "not evidence for a promotion: answers from a cassette (--replay)" in replayed.stderr
    assert flaky.run("eval", "prompts/p", *again).status == 0
    assert sat(flaky) == [(1, False, False), (2, True, True), (2, True, True)]
    assert flaky.run("prompt", "promote", "p", "--to", "ready").status == 1


def test_what_the_cache_may_have_answered_is_no_evidence(flaky):
    """The model may answer differently by now."""
    flaky.write(".agentv/config.yaml", "run: {cache: true}\n")
    ended = flaky.run("eval", "prompts/p", "-o", "c")
    flaky.run("eval", "prompts/p", "--no-cache", "-o", "c", "--resume")
    flaky.run("eval", "prompts/p", "--no-cache")
    shown = "not evidence for a promotion: answers may come from the cache (--no-cache calls the target again)"
    assert shown in ended.stderr
    assert [partial for _, _, partial in sat(flaky)] == [True, True, False]


def test_a_check_that_was_edited_until_a_kept_answer_passed_is_no_evidence(flaky):
    flaky.run("eval", "prompts/p", "-o", "r")
    flaky.write(
        "prompts/p/eval.yml",
        (flaky.path / "prompts/p/eval.yml").read_text().replace("assert: [", "assert: [regex: ., "),
    )
    flaky.run("eval", "prompts/p", "-o", "r", "--resume", says="some answers were reused (rows with 'reused')")
    assert [partial for _, _, partial in sat(flaky)] == [False, True]


def test_what_was_tried_again_until_it_passed_is_no_evidence(flaky):
    flaky.run("eval", "prompts/p")
    flaky.write("good", "")
    assert flaky.run("eval", "prompts/p", "--rerun=failed").status == 0
    assert flaky.run("eval", "prompts/p", "--resume").status == 0
    assert sat(flaky) == [(1, False, False), (2, True, True), (2, True, True)]
    assert flaky.run("prompt", "promote", "p", "--to", "ready").status == 1
    assert flaky.run("eval", "prompts/p").status == 0
    assert flaky.run("prompt", "promote", "p", "--to", "ready").status == 0


@pytest.mark.parametrize(
    ("words", "env"), [(["--target", "mock:hello"], {}), ([], {"AGENTV_JUDGE": "mock:SCORE=5 REASON=x"})]
)
def test_whoever_stands_in_for_the_projects_own_target_or_judge_is_told(flaky, words, env):
    exam = LAUNDERED["prompts/p/eval.yml"].replace("defaults: {model: m, judge: j}\n", "")
    flaky.write("prompts/p/eval.yml", exam.replace("assert: [contains: hello]", "rubric: It greets."))
    flaky.run("eval", "prompts/p", *words, env=env)
    assert sat(flaky)[0][2]


def test_a_check_that_is_edited_while_the_exam_is_sat_makes_it_no_evidence(flaky):
    check = "def f(output):\n    return {}\n"
    flaky.write("prompts/p/checks/c.py", check.format("False"))
    exam = LAUNDERED["prompts/p/eval.yml"].replace("assert: [contains: hello]", "assert: [python: 'checks/c.py:f']")
    flaky.write("prompts/p/eval.yml", exam)
    agent = LAUNDERED["agent.py"].replace("    time.sleep(", "    pathlib.Path('called').touch()\n    time.sleep(")
    flaky.write("agent.py", agent)
    process = flaky.start("eval", "prompts/p", "--workers", "1", env={"ANSWER_S": "1.0"})
    while process.poll() is None and not (flaky.path / "called").exists():
        time.sleep(0.01)
    flaky.write("prompts/p/checks/c.py", check.format("True"))
    process.communicate(timeout=120)
    assert sat(flaky)[0][2]


@pytest.mark.parametrize(("child", "status"), [("zzz", 1), ("hello", 0)])
def test_no_threshold_of_a_set_lets_a_failed_line_of_an_exam_pass(flaky, child, status):
    flaky.write("good", "")
    entry = f"{{type: assert-set, threshold: 0, assert: [contains: hello, contains: {child}]}}"
    exam = LAUNDERED["prompts/p/eval.yml"].replace("assert: [contains: hello]", f"assert: [{entry}]")
    flaky.write("prompts/p/eval.yml", exam)
    assert flaky.run("eval", "prompts/p").status == status
