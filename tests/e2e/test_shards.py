"""`--shard` and `results merge`, `--prompt` and `--shuffle`, as a person uses them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

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


def document(project, path: str) -> dict:
    return json.loads((project.path / path).read_text())


def rows(project, run: str) -> list[dict]:
    return [json.loads(line) for line in (project.path / run / "index.jsonl").read_text().splitlines()]


def keys(project, run: str) -> list[str]:
    return [row["key"] for row in rows(project, run)]


def shards(project, of: int, *options: str) -> list[str]:
    names = [f"shard{at}" for at in range(1, of + 1)]
    for at, name in enumerate(names, 1):
        ended = project.run("eval", "evals", "-q", "--shard", f"{at}/{of}", "--out", name, *options)
        assert ended.status == 0, ended.stderr
    return names


def test_merged_shards_are_the_whole_run(suite):
    names = shards(suite, 3)
    part = document(suite, "shard1/run.json")
    assert part["partial"] == {"cases": 3, "of": 7, "why": ["shard"], "trials": 6, "of_trials": 14}
    merged = suite.run("results", "merge", *names, "--out", "merged")
    assert (merged.status, "7 cases: 7 passed" in merged.stdout) == (0, True), merged.stderr
    suite.run("eval", "evals", "-q", "--out", "whole")
    assert sorted(keys(suite, "merged")) == sorted(keys(suite, "whole"))
    record, summary = document(suite, "merged/run.json"), document(suite, "merged/summary.json")
    whole = document(suite, "whole/summary.json")
    assert (record["partial"], "partial" in summary, record["merged"]) == (None, False, names)
    assert {name: summary[name] for name in ("cases", "trials", "pass_rate", "by_prompt")} == {
        name: whole[name] for name in ("cases", "trials", "pass_rate", "by_prompt")
    }
    # a resume finds every answer
    resumed = suite.run("eval", "evals", "--resume", "merged")
    assert "14 trials complete, 0 to run" in resumed.stderr
    assert suite.run("compare", "merged", "whole").status == 0


def test_merged_shards_keep_their_gates(project):
    gated = SUITE.replace("response: hello}", "response: hello}\nrun: {gate: corrected}")
    project.write("evals/s.eval.yaml", gated + CASES)
    for at in (1, 2):
        assert project.run("eval", "evals", "-q", "--shard", f"{at}/2", "--out", f"s{at}").status == 1
    merged = project.run("results", "merge", "s1", "s2", "--out", "merged")
    assert "those of each shard are of its own cases" in merged.stderr
    assert [gate["passed"] for gate in document(project, "merged/summary.json")["gates"]] == [False, False]
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
    refused = suite.run("eval", "evals", "--shard", "3/3", "--filter", "d*")
    assert (refused.status, "--filter 'd*' matches no case" in refused.stderr) == (2, True), refused.stderr


def test_a_part_of_the_shards_is_merged_on_request_and_a_resume_runs_the_rest(suite):
    first, second, _ = shards(suite, 3)
    refused = suite.run("results", "merge", first, second, "--out", "merged")
    assert (refused.status, Path(suite.path, "merged").exists()) == (2, False)
    assert "cannot merge: shard 3/3 missing" in refused.stderr
    merged = suite.run("results", "merge", first, second, "--out", "merged", "--partial")
    assert "--shard selected 5 of 7 cases" in merged.stdout
    assert document(suite, "merged/run.json")["partial"]["why"] == ["shard"]
    suite.run("eval", "evals", "--resume", "merged")
    assert (len(keys(suite, "merged")), document(suite, "merged/run.json")["partial"]) == (14, None)


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
    """A case that is held back because its dependency failed ends a shard; a rerun of it is no other run."""
    for name, text in {"evals/s.eval.yaml": LINKED, "evals/agent.py": FLAKY, "down": ""}.items():
        project.write(name, text)
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
    assert document(project, "after/run.json")["settings"]["rerun"] == "failed"
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
    refused = suite.run("results", "merge", first, "other")
    assert (refused.status, f"cannot merge: the runs shard1 and other {why}" in refused.stderr) == (2, True), refused


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shard", "3/2"), "--shard takes I/N, with I from 1 to N, found '3/2'"),
        (("--shard", "1/2", "--sample", "2"), "--shard with --sample requires --seed"),
        (("--prompt", "brif"), "--prompt brif: no suite has this prompt\n  did you mean 'brief'?"),
        (("--seed", "2"), "--seed requires --sample or --shuffle"),
    ],
)
def test_what_selects_nothing_is_refused(suite, options, said):
    refused = suite.run("eval", "evals", *options)
    assert (refused.status, said in refused.stderr) == (2, True), refused.stderr


def test_a_shuffled_run_keeps_its_order_when_it_is_resumed(suite):
    options = ("eval", "evals", "-q", "--workers", "1")
    suite.run(*options, "--shuffle", "--seed", "4", "--out", "whole")
    shuffled = keys(suite, "whole")
    suite.run(*options, "--out", "ordered")
    assert (shuffled != keys(suite, "ordered"), set(shuffled)) == (True, set(keys(suite, "ordered")))
    suite.write("evals/s.eval.yaml", SUITE.replace("response: hello", "response: bye") + CASES)
    suite.run(*options, "--shuffle", "--seed", "4", "--out", "cut", "--fail-fast")
    cut = keys(suite, "cut")
    assert len(cut) < len(shuffled)
    suite.run(*options, "--resume", "cut")
    fresh = suite.run(*options, "--shuffle", "--seed", "4", "--out", "fresh")
    assert (keys(suite, "cut"), fresh.status) == (keys(suite, "fresh"), 1)
    refused = suite.run(*options, "--resume", "ordered", "--shuffle")
    assert "the run ordered started without --shuffle" in refused.stderr


def test_tables_have_the_order_of_the_file_whatever_the_order_of_the_rows(suite):
    ended = suite.run("eval", "evals", "-q", "--shuffle", "--seed", "4", "-o", "a.csv", "-o", "a.xml", "-o", "run/")
    assert ended.status == 0, ended.stderr
    wanted = [(f"c{at}", prompt) for at in range(7) for prompt in ("brief", "long")]
    with (suite.path / "a.csv").open(newline="") as file:
        assert [(row["test_id"], row["prompt_id"]) for row in csv.DictReader(file)] == wanted
    named = re.findall(r"c\d[^\w\d].{0,5}(?:brief|long)", (suite.path / "a.xml").read_text())
    assert [one[:2] for one in named] == [identity for identity, _ in wanted]
    shown = suite.run("results", "show", "run", "--limit", "20").stdout
    assert re.findall(r"^PASSED (c\d) with (\w+)", shown, re.MULTILINE) == wanted
