"""Which cases run: `--list`, `--sample`, `--var`, as a person uses them."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from e2e.command import AGENTV

SIDECAR = "target: echo\nprompts: ['Say {{ t }}', 'Write {{ t }}']\nassert: [{contains: x}]\n"


def lines(number: int) -> str:
    return "".join(json.dumps({"id": f"c{n}", "vars": {"t": f"x{n}"}}) + "\n" for n in range(number))


@pytest.fixture
def many(project):
    project.write("a.jsonl", lines(200))
    project.write("a.yaml", SIDECAR)
    return project


def test_the_list_is_for_programs_and_its_totals_are_for_people(many):
    ended = many.run("eval", "a.jsonl", "--list", "--limit", "2")
    assert ended.status == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        f"a: {case} with {prompt} on echo" for case in ("c0", "c1") for prompt in ("prompt-1", "prompt-2")
    ]
    assert "2 cases, 4 trials: 4 calls of targets, 0 calls of judges\nno target" in ended.stderr
    assert not (many.path / ".agentv").exists(), "nothing is written"


def test_the_list_as_json(many):
    ended = many.run("eval", "a.jsonl", "--list", "--json", "--filter", "c1?")
    found = json.loads(ended.stdout)
    assert (len(found["cases"]), found["totals"]["cases"], found["totals"]["trials"]) == (20, 10, 20)
    assert found["cases"][0]["source"] == "a.jsonl:11"


def test_a_list_whose_reader_goes_away_ends_without_a_word(project):
    project.write("a.jsonl", lines(5000))
    project.write("a.yaml", SIDECAR)
    piped = f"{AGENTV} eval a.jsonl --list | head -n 1"
    ended = subprocess.run(
        ["sh", "-c", piped], cwd=project.path, env=project.environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "a: c0 with prompt-1 on echo\n"
    assert ended.stderr == ""


def chosen(rows) -> set[str]:
    return {row["test_id"] for row in rows}


def test_a_sample_tells_of_all_cases_that_it_was_drawn_from(many):
    cases = [f"  - {{id: c{at}, input: x{at}, assert: [contains: x]}}\n" for at in range(60)]
    (many.path / "one.eval.yaml").write_text("target: echo\ntests:\n" + "".join(cases))
    alone = many.run("eval", "one.eval.yaml", "--sample", "50", "--out", "alone", "-q")
    assert "pass rate of all 60 cases that --sample drew 50 from: 100.0% (95% CI 98.3% to 100.0%)" in alone.stderr
    summary = json.loads((many.path / "alone" / "summary.json").read_text())
    assert summary["partial"] == {"cases": 50, "of": 60, "why": ["sample"], "trials": 50, "of_trials": 60}
    assert summary["pass_rate_interval_of_all"] == [59 / 60, 1.0]
    whole = many.run("eval", "one.eval.yaml", "--sample", "60", "--out", "whole", "-q")
    assert "that --sample drew" not in whole.stderr


def test_a_seed_that_nobody_gave_is_said_recorded_and_taken_up_again(many):
    first = many.run("eval", "a.jsonl", "--sample", "5", "--out", "run", "-q")
    assert first.status == 0, first.stderr
    rows = many.rows("run")
    seed = json.loads((many.path / "run" / "run.json").read_text())["settings"]["seed"]
    assert f"sample: 5 of 200 cases; repeat with --seed {seed}" in first.stderr
    assert (len(rows), len(chosen(rows))) == (10, 5)

    again = many.run("eval", "a.jsonl", "--sample", "5", "--seed", str(seed), "--out", "again", "-q")
    assert chosen(many.rows("again")) == chosen(rows), again.stderr

    index = many.path / "run" / "index.jsonl"
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:3]))
    resumed = many.run("eval", "a.jsonl", "--sample", "5", "--out", "run", "--resume", "-q")
    assert resumed.status == 0, resumed.stderr
    assert chosen(many.rows("run")) == chosen(rows)
    assert "5 cases: 5 passed" in resumed.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--seed", "3"], "--seed requires --sample"),
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
    ended = many.run("eval", "a.jsonl", *words)
    assert ended.status == 2
    assert says in ended.stderr
    assert not many.ran


def test_a_case_with_several_prompts_is_told_apart_wherever_it_is_shown(project):
    suite = "target: echo\nprompts: [{id: brief, prompt: 'Say {{ t }}'}, {id: long, prompt: 'Write {{ t }}'}]\n"
    project.write("a.eval.yaml", f"{suite}tests:\n  - {{id: a, vars: {{t: x}}, assert: [{{contains: Say}}]}}\n")
    ended = project.run("eval", "a.eval.yaml", "--out", "run")
    assert ended.status == 1
    assert "FAILED a with long: score 0.00" in ended.stderr
    assert re.search(r"^ +brief +long\n +pass rate +100.0% .* 0.0% ", ended.stderr, re.MULTILINE), ended.stderr
    assert {row["prompt_id"]: row["status"] for row in project.rows("run")} == {"brief": "passed", "long": "failed"}
    shown = json.loads(project.run("eval", "a.eval.yaml", "--json").stdout)
    assert [one["prompt_id"] for one in shown["not_passed"]] == ["long"]
    assert {name: group["pass_rate"] for name, group in shown["by_prompt"].items()} == {"brief": 1.0, "long": 0.0}
    replayed = project.run("eval", "a.eval.yaml", "--target", "replay:run/index.jsonl", "--out", "replayed", "-q")
    assert "1 case: 0 passed, 1 failed, 0 errored" in replayed.stderr
