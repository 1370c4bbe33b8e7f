"""Selection of cases: `--list`, `--sample`, `--var`, `--prompt`, `--shuffle`, and `--shard` with `results merge`."""

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from e2e.command import AGENTV

SIDECAR = "target: echo\nprompts: ['Say {{ t }}', 'Write {{ t }}']\nassert: [{contains: x}]\n"


def lines(number: int) -> str:
    return "".join(json.dumps({"id": f"c{n}", "vars": {"t": f"x{n}"}}) + "\n" for n in range(number))


@pytest.fixture
def many(project):
    return project.write_files({"a.jsonl": lines(200), "a.yaml": SIDECAR})


def test_the_list_is_for_programs_and_its_totals_are_for_people(many):
    ended = many.run("eval", "a.jsonl", "--list", "--limit", "2", status=0)
    shown = ended.stdout.splitlines()
    assert shown == [f"a: {case} with {prompt} on echo" for case in ("c0", "c1") for prompt in ("prompt-1", "prompt-2")]
    assert "2 cases, 4 trials: 4 calls of targets, 0 calls of judges\nno target" in ended.stderr
    assert not (many.path / ".agentv").exists(), "nothing is written"


def test_a_list_whose_reader_goes_away_ends_without_a_word(project):
    project.write_files({"a.jsonl": lines(5000), "a.yaml": SIDECAR})
    ended = project.other("sh", "-c", f"{AGENTV} eval a.jsonl --list | head -n 1")
    assert ended.stdout == "a: c0 with prompt-1 on echo\n"
    assert ended.stderr == ""


def chosen(rows) -> set[str]:
    return {row["test_id"] for row in rows}


def test_a_sample_tells_of_all_cases_that_it_was_drawn_from(many):
    cases = [f"  - {{id: c{at}, input: x{at}, assert: [contains: x]}}\n" for at in range(60)]
    (many.path / "one.eval.yaml").write_text("target: echo\ntests:\n" + "".join(cases))
    alone = many.run("eval", "one.eval.yaml", "--sample", "50", "--out", "alone", "-q")
    assert "pass rate of all 60 cases that --sample drew 50 from: 100.0% (95% CI 98.3% to 100.0%)" in alone.stderr
    summary = many.summary("alone")
    assert summary["partial"] == {"cases": 50, "of": 60, "why": ["sample"], "trials": 50, "of_trials": 60}
    assert summary["pass_rate_interval_of_all"] == [59 / 60, 1.0]
    whole = many.run("eval", "one.eval.yaml", "--sample", "60", "--out", "whole", "-q")
    assert "that --sample drew" not in whole.stderr


def test_a_seed_that_nobody_gave_is_said_recorded_and_taken_up_again(many):
    first = many.run("eval", "a.jsonl", "--sample", "5", "--out", "run", "-q", status=0)
    rows = many.rows("run")
    seed = many.record("run")["settings"]["seed"]
    assert f"sample: 5 of 200 cases; repeat with --seed {seed}" in first.stderr
    assert (len(rows), len(chosen(rows))) == (10, 5)

    again = many.run("eval", "a.jsonl", "--sample", "5", "--seed", str(seed), "--out", "again", "-q")
    assert chosen(many.rows("again")) == chosen(rows), again.stderr

    index = many.path / "run" / "index.jsonl"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:3]))
    resumed = many.run("eval", "a.jsonl", "--sample", "5", "--out", "run", "--resume", "-q", status=0)
    assert chosen(many.rows("run")) == chosen(rows)
    assert "5 cases: 5 passed" in resumed.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--seed", "3"], "--seed requires --sample or --shuffle"),
        (["--shard", "3/2"], "--shard takes I/N, with I from 1 to N, found '3/2'"),
        (["--shard", "1/2", "--sample", "2"], "--shard with --sample requires --seed"),
        (["--prompt", "promt-1"], "--prompt promt-1: no suite has this prompt\n  did you mean 'prompt-1'?"),
        (["--sample", "0"], "--sample must be a whole number of 1 or more"),
        (["--sample", "3", "--seed", "x"], "--seed must be a whole number"),
        (["--sample", "3", "--filter", "d*"], "--filter 'd*' --sample 3 matches no case"),
        (["--filter", "a*", "--filter", "d*"], "--filter 'd*' matches no case"),
        (["--var", "t"], "--var takes NAME=VALUE, found 't'"),
        (["--var", "=x"], "--var takes NAME=VALUE, found '=x'"),
        (["--env-file", "gone.env"], "'gone.env' does not exist"),
    ],
)
def test_what_cannot_be_chosen_is_said(many, words, says):
    many.run("eval", "a.jsonl", *words, status=2, says=says)
    assert not many.ran


def test_a_case_with_several_prompts_is_told_apart_wherever_it_is_shown(project):
    suite = "target: echo\nprompts: [{id: brief, prompt: 'Say {{ t }}'}, {id: long, prompt: 'Write {{ t }}'}]\n"
    project.write("a.eval.yaml", f"{suite}tests:\n  - {{id: a, vars: {{t: x}}, assert: [{{contains: Say}}]}}\n")
    ended = project.run("eval", "a.eval.yaml", "--out", "run", status=1, says="FAILED a with long: score 0.00")
    assert re.search(r"^ +brief +long\n +pass rate +100.0% .* 0.0% ", ended.stderr, re.MULTILINE), ended.stderr
    assert {row["prompt_id"]: row["status"] for row in project.rows("run")} == {"brief": "passed", "long": "failed"}
    shown = json.loads(project.run("eval", "a.eval.yaml", "--json").stdout)
    assert [one["prompt_id"] for one in shown["not_passed"]] == ["long"]
    assert {name: group["pass_rate"] for name, group in shown["by_prompt"].items()} == {"brief": 1.0, "long": 0.0}
    replayed = project.run("eval", "a.eval.yaml", "--target", "replay:run/index.jsonl", "--out", "replayed", "-q")
    assert "1 case: 0 passed, 1 failed, 0 errored" in replayed.stderr


SUITE = """
target: {name: m, provider: mock, response: hello}
prompts: [{id: brief, label: Brief one, prompt: 'Say {{ q }}'}, {id: long, prompt: 'Write {{ q }}'}]
assert: [{contains: hello}]
tests:
"""
CASES = "".join(f"  - {{id: c{at}, vars: {{q: x{at}}}}}\n" for at in range(7))


@pytest.fixture
def suite(project):
    project.write("evals/s.eval.yaml", SUITE + CASES)
    return project


def keys(rows: list[dict]) -> list[str]:
    return [row["key"] for row in rows]


def shards(project, of: int, *options: str) -> list[str]:
    names = [f"shard{at}" for at in range(1, of + 1)]
    for at, name in enumerate(names, 1):
        project.run("eval", "evals", "-q", "--shard", f"{at}/{of}", "--out", name, *options, status=0)
    return names


def test_merged_shards_are_the_whole_run(suite):
    names = shards(suite, 3)
    part = suite.record("shard1")
    assert part["partial"] == {"cases": 3, "of": 7, "why": ["shard"], "trials": 6, "of_trials": 14}
    merged = suite.run("results", "merge", *names, "--out", "merged")
    assert (merged.status, "7 cases: 7 passed" in merged.stdout) == (0, True), merged.stderr
    suite.run("eval", "evals", "-q", "--out", "whole")
    assert sorted(keys(suite.rows("merged"))) == sorted(keys(suite.rows("whole")))
    record, summary = suite.record("merged"), suite.summary("merged")
    whole = suite.summary("whole")
    assert (record["partial"], "partial" in summary, record["merged"]) == (None, False, names)
    shown = {name: summary[name] for name in ("cases", "trials", "pass_rate", "by_prompt")}
    assert shown == {name: whole[name] for name in ("cases", "trials", "pass_rate", "by_prompt")}
    # resuming finds every answer
    suite.run("eval", "evals", "--resume", "merged", says="14 trials complete, 0 to run")
    assert suite.run("compare", "merged", "whole").status == 0


def test_a_shard_whose_journal_ends_in_half_a_line_takes_no_answer_of_the_next(suite):
    names = shards(suite, 2)
    with Path(suite.path, "shard1", "journal.jsonl").open("ab") as journal:
        journal.write(b'{"half')
    assert suite.run("results", "merge", *names, "--out", "merged").status == 0
    merged, after = (Path(suite.path, name, "journal.jsonl").read_text().splitlines() for name in ("merged", "shard2"))
    assert set(after) < set(merged)


def test_gates_decide_merged_shards_as_a_whole(project):
    gated = SUITE.replace("response: hello}", "response: hello}\nrun: {gate: corrected}")
    project.write("evals/s.eval.yaml", gated + CASES)
    for at in (1, 2):
        assert project.run("eval", "evals", "-q", "--shard", f"{at}/2", "--out", f"s{at}").status == 1
    assert project.run("results", "merge", "s1", "s2", "--out", "merged").status == 0
    (gate,) = project.summary("merged")["gates"]
    assert (gate["passed"], gate["suite"], "no corrected pass rate" in gate["why"]) == (False, "s", True)
    assert "gate failed" in project.run("results", "show", "merged").stdout


def test_more_shards_than_cases_pass_and_are_merged(suite):
    """A shard without cases is a finished run with every report; a selection without cases stays an error."""
    options = ("--filter", "c[45]", "-o", "a.html", "-o", "a.xml", "-o", "a.md", "-o", "a.csv")
    names = shards(suite, 3, *options)
    empty = suite.run("eval", "evals", "--shard", "3/3", "--out", "again", "--filter", "c[45]")
    assert (empty.status, "this shard is empty: there are more shards than selected cases" in empty.stderr) == (0, True)
    assert suite.run("results", "report", "shard3", "--html", "b.html", "--junit", "b.xml").status == 0
    merged = suite.run("results", "merge", *names, "--out", "merged")
    assert (merged.status, "--filter selected 2 of 7 cases (4 of 14 trials)" in merged.stdout) == (0, True), merged
    suite.run("eval", "evals", "--shard", "3/3", "--filter", "d*", status=2, says="--filter 'd*' matches no case")


def test_a_part_of_the_shards_is_merged_on_request_and_a_resume_runs_the_rest(suite):
    first, second, _ = shards(suite, 3)
    refused = suite.run("results", "merge", first, second, "--out", "merged")
    assert (refused.status, Path(suite.path, "merged").exists()) == (2, False)
    assert "cannot merge: shard 3/3 missing" in refused.stderr
    merged = suite.run("results", "merge", first, second, "--out", "merged", "--partial")
    assert "--shard selected 5 of 7 cases" in merged.stdout
    assert suite.record("merged")["partial"]["why"] == ["shard"]
    suite.run("eval", "evals", "--resume", "merged")
    assert (len(keys(suite.rows("merged"))), suite.record("merged")["partial"]) == (14, None)


FLAKY = """
import pathlib

def answer(prompt):
    return "no" if prompt == "x3" and pathlib.Path("down").exists() else "hello"
"""
LINKED = """
target: python:agent.py:answer
assert: [{contains: hello}]
tests:
  - {id: c0, input: x0}
  - {id: c1, input: x1, depends_on: c3}
  - {id: c2, input: x2}
  - {id: c3, input: x3}
"""


def test_shards_that_were_rerun_and_resumed_are_merged(project):
    """A case skipped because its dependency failed completes a shard, and rerunning it does not make another run."""
    project.write_files({"evals/s.eval.yaml": LINKED, "evals/agent.py": FLAKY, "down": ""})
    names = ["shard1", "shard2"]
    ended = [
        project.run("eval", "evals", "-q", "--shard", f"{at}/2", "--out", name, "--shuffle", "--seed", f"{at}").status
        for at, name in enumerate(names, 1)
    ]
    assert ended == [0, 1]
    merged = project.run("results", "merge", *names, "--out", "before")
    assert "finished" in merged.stdout, merged
    assert "4 cases: 2 passed, 1 failed, 0 errored, 1 not run" in merged.stdout
    (project.path / "down").unlink()
    rerun = ("eval", "evals", "-q", "--resume", "shard2", "--rerun", "failed", "--timeout", "9", "--budget-usd", "1")
    assert project.run(*rerun).status == 0
    merged = project.run("results", "merge", *names, "--out", "after")
    assert "4 cases: 4 passed" in merged.stdout, merged
    assert project.record("after")["settings"]["rerun"] == "failed"
    refused = project.run("eval", "evals", "--resume", "shard1", "--filter", "c3")
    assert "--filter c3 selects no trial of the run shard1, which is one shard" in refused.stderr


@pytest.mark.parametrize(
    ("options", "edit", "why"),
    [
        (("--threshold", "0.5"), "", "have other settings: threshold (null, 0.5)"),
        ((), "# edited\n", "are of other files: evals/s.eval.yaml"),
    ],
)
def test_shards_of_another_run_are_refused(suite, options, edit, why):
    first, _ = shards(suite, 2)
    suite.write("evals/s.eval.yaml", SUITE + CASES + edit)
    suite.run("eval", "evals", "-q", "--shard", "2/2", "--out", "other", *options)
    suite.run("results", "merge", first, "other", status=2, says=f"cannot merge: the runs shard1 and other {why}")


def test_a_shuffled_run_keeps_its_order_when_it_is_resumed(suite):
    options = ("eval", "evals", "-q", "--workers", "1")
    suite.run(*options, "--shuffle", "--seed", "4", "--out", "whole")
    shuffled = keys(suite.rows("whole"))
    suite.run(*options, "--out", "ordered")
    assert (shuffled != keys(suite.rows("ordered")), set(shuffled)) == (True, set(keys(suite.rows("ordered"))))
    suite.write("evals/s.eval.yaml", SUITE.replace("response: hello", "response: bye") + CASES)
    suite.run(*options, "--shuffle", "--seed", "4", "--out", "cut", "--fail-fast")
    cut = keys(suite.rows("cut"))
    assert len(cut) < len(shuffled)
    suite.run(*options, "--resume", "cut")
    fresh = suite.run(*options, "--shuffle", "--seed", "4", "--out", "fresh")
    assert (keys(suite.rows("cut")), fresh.status) == (keys(suite.rows("fresh")), 1)
    suite.run(*options, "--resume", "ordered", "--shuffle", says="the run ordered started without --shuffle")


def test_tables_have_the_order_of_the_file_whatever_the_order_of_the_rows(suite):
    suite.run("eval", "evals", "-q", "--shuffle", "--seed", "4", "-o", "a.csv", "-o", "a.xml", "-o", "run/", status=0)
    wanted = [(f"c{at}", prompt) for at in range(7) for prompt in ("brief", "long")]
    with (suite.path / "a.csv").open(newline="") as file:
        assert [(row["test_id"], row["prompt_id"]) for row in csv.DictReader(file)] == wanted
    named = re.findall(r"c\d[^\w\d].{0,5}(?:brief|long)", (suite.path / "a.xml").read_text())
    assert [one[:2] for one in named] == [identity for identity, _ in wanted]
    shown = suite.run("results", "show", "run", "--limit", "20").stdout
    assert re.findall(r"^PASSED (c\d) with (\w+)", shown, re.MULTILINE) == wanted


LAST_FAILED_SUITE = """\
name: two
targets:
  - {name: good, provider: mock, response: hello}
  - {name: bad, provider: mock, response: bye}
tests:
  - {id: a, input: hi, assert: [{contains: hello}]}
  - {id: "b [x=1] it's *", input: hi, assert: [{contains: hello}]}
  - {id: "b [x=1] it's long", input: hi, assert: [{contains: e}]}
  - {id: c, input: hi, assert: [{contains: bye}]}
"""


@pytest.fixture
def failing(project):
    project.write("evals/my suite.eval.yaml", LAST_FAILED_SUITE)
    return project


def ran(project):
    """Return the trials of the last run."""
    return sorted((row["test_id"], row["target"], row["status"]) for row in project.rows())


FAILED = [("a", "bad", "failed"), ("b [x=1] it's *", "bad", "failed"), ("c", "good", "failed")]


def test_each_command_runs_the_failures_of_its_group_and_no_others(failing):
    shown = failing.run("eval", "evals").stderr
    commands = re.findall(r"^ *run again: agentv (.*)$", shown, re.MULTILINE)
    assert len(commands) == 2
    seen = []
    for command in commands:
        assert failing.run(*shlex.split(command)).status == 1
        seen += ran(failing)
    assert sorted(seen) == FAILED


def test_the_last_command_runs_what_did_not_pass_until_all_of_it_passes(failing):
    shown = failing.run("eval", "evals").stderr
    (again,) = re.findall(r"^run all of them again: agentv (.*)$", shown, re.MULTILINE)
    assert "--last-failed" in again
    part = failing.run(*shlex.split(again))
    assert (part.status, ran(failing)) == (1, FAILED)
    assert "--last-failed selected 3 of 4 cases (3 of 8 trials); the rest did not run" in part.stderr
    # a partial run in between does not affect the other failures
    assert failing.run("eval", "evals", "--filter", "c", "--target", "bad").status == 0
    failing.write("evals/my suite.eval.yaml", LAST_FAILED_SUITE.replace("response: bye", "response: hello bye"))
    mended = failing.run("eval", "evals", "--lf", "--json")
    found = (mended.status, ran(failing))
    assert found == (1, [("a", "bad", "passed"), ("b [x=1] it's *", "bad", "passed"), FAILED[2]])
    summary = json.loads(mended.stdout)
    assert summary["partial"] == {"cases": 3, "of": 4, "why": ["last-failed"], "trials": 3, "of_trials": 8}
    assert [group["cases"] for group in summary["failure_groups"]] == [1]
    failing.run("eval", "evals", "--lf")
    assert ran(failing) == [FAILED[2]]


def test_where_nothing_failed_all_cases_run_and_it_says_so(failing):
    first = failing.run("eval", "evals", "--lf")
    assert "note: --last-failed: there is no earlier run of these suites; running all 4 cases" in first.stderr
    failing.write(
        "evals/my suite.eval.yaml",
        LAST_FAILED_SUITE.replace("response: bye", "response: hello bye").replace("{contains: bye}", "{contains: e}"),
    )
    failing.run("eval", "evals")
    whole = failing.run("eval", "evals", "--lf")
    assert "note: --last-failed: no case failed in the last run; running all 4 cases" in whole.stderr
    assert (whole.status, len(ran(failing)), "selected" in whole.stderr) == (0, 8, False)


def test_an_interrupted_rerun_is_resumed_with_the_same_cases(failing):
    failing.run("eval", "evals")
    run = failing.run("eval", "evals", "--lf", "--max-errors", "1")
    resumed = failing.run("eval", "evals", "--resume")
    assert (run.status, resumed.status, len(ran(failing))) == (1, 1, 3)
    assert "selected 3 of 4 cases (3 of 8 trials)" in resumed.stderr


def test_an_exam_of_the_failed_cases_alone_is_no_evidence(project):
    project.write("prompts/p/prompt.md", "Say {{ word }}")
    project.write("prompts/p/meta.yaml", "description: says a word\nstatus: draft\nowner: me\n")
    exam = "defaults: {target: echo}\ncases:\n" + "".join(
        f"  - {{name: {name}, inputs: {{word: {name}}}, assert: [{{contains: {word}}}]}}\n"
        for name, word in (("one", "one"), ("two", "TWO"))
    )
    project.write("prompts/p/eval.yml", exam)
    assert project.run("prompt", "eval", "p").status == 1
    project.write("prompts/p/eval.yml", exam.replace("TWO", "two"))
    project.run("prompt", "eval", "p", "--last-failed", status=0, says="--last-failed")
    row = json.loads((project.path / "prompts/p/.eval.jsonl").read_text().splitlines()[-1])
    assert row["partial"]
    assert project.run("prompt", "promote", "p").status == 1


AGENT = """
import os

def answer(prompt, case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\n")
    if case_id == "breaks" and not os.path.exists("mended"):
        raise ValueError("no")
    return "better" if os.path.exists("mended") else "good" if case_id == "good" else "bad"
"""
RERUNS_SUITE = """
target: python:agent.py:answer
tests:
  - {id: good, input: a, assert: [{contains-any: [good, better]}]}
  - {id: fails, input: b, assert: [{contains-any: [good, better]}]}
  - {id: breaks, input: c, assert: [{contains-any: [good, better, bad]}]}
"""


@pytest.fixture
def mixed(project):
    project.write_files({"agent.py": AGENT, "a.eval.yaml": RERUNS_SUITE})
    project.run("eval", "a.eval.yaml", "--out", "out", status=3)
    (project.path / "asked.txt").unlink()
    return project


def statuses(project) -> dict[str, str]:
    return {row["test_id"]: row["status"] for row in project.rows("out")}


def test_the_newest_row_counts(mixed):
    mixed.write("mended", "")
    assert mixed.run("eval", "a.eval.yaml", "--out", "out", "--rerun", "failed").status == 3
    assert mixed.run("eval", "a.eval.yaml", "--out", "out", "--rerun", "errored").status == 0
    assert sorted(mixed.asked) == ["breaks", "fails"]
    assert statuses(mixed) == dict.fromkeys(("good", "fails", "breaks"), "passed")
    assert len(mixed.rows("out")) == 3
    summary = mixed.summary()
    assert summary["cases"] == {"total": 3, "passed": 3, "failed": 0, "errored": 0, "skipped": 0, "shown": 0}
    assert mixed.run("eval", "a.eval.yaml", "--out", "out", "--resume").status == 0
