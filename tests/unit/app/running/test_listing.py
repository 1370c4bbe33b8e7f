"""What `--list` says of a project, down to the calls and their price."""

from __future__ import annotations

import json
from contextlib import chdir
from typing import Any

import pytest

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.running.listing import PlanListing
from agentv.app.settings import EvalSettings
from agentv.model.run.listing import ListedCase, ListedTotals
from doubles.loading import repository

SUITE = """\
target: echo
judge: 'mock:{"score": 1}'
prompts: [{id: brief, prompt: "{{ t }}"}, {id: long, prompt: "At length {{ t }}"}]
tests:
  - {id: a, vars: {t: x}, tags: [smoke], assert: [{contains: x}, Is polite, Is short]}
  - id: b
    vars: {t: x}
    repeat: 3
    assert:
      - assert-set: [{llm-rubric: Is polite}, {contains: x}, {not-llm-rubric: Is rude}]
      - {type: script, command: "true", target: {max_calls: 4}}
"""


@pytest.fixture
def project(tmp_path):
    repository(tmp_path, {"a.eval.yaml": SUITE})
    with chdir(tmp_path):
        yield tmp_path


def listed(**options: Any) -> tuple[list[ListedCase], ListedTotals]:
    listing = PlanListing(prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, **options)))
    return list(listing), listing.totals


def shown(cases: list[ListedCase]) -> list[tuple[str, str | None, str, int]]:
    return [(one.test_id, one.prompt_id, one.target, one.trials) for one in cases]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"filter": "b*"}, {"b"}),
        ({"tags": ("smoke",)}, {"a"}),
        ({"exclude_tags": ("smoke",)}, {"b"}),
        ({"limit": 1}, {"a"}),
        ({"sample": 1, "seed": 3}, None),
        ({"repeat": 2}, {"a", "b"}),
    ],
)
def test_every_flag_that_chooses_is_respected(project, options, ids):
    cases, totals = listed(**options)
    prepared = prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, **options))
    assert (totals.cases, totals.trials) == prepared.counts
    if ids is not None:
        assert {one.test_id for one in cases} == ids


def test_what_a_resumed_run_has_is_not_listed(project):
    evaluate(prepare(EvalSettings(paths=("a.eval.yaml",), process_env={}, out="run")), lambda _event: None)
    index = project / "run" / "index.jsonl"
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(line for line in lines if json.loads(line)["test_id"] == "a"))
    cases, _ = listed(resume="run")
    assert shown(cases) == [("b", "brief", "echo", 3), ("b", "long", "echo", 3)]
    assert listed(resume="run", filter="a")[0] == []
    index.write_text(lines[0])
    assert len(listed(resume="run")[0]) == 3


def rows(directory, *costs: tuple[float | None, float | None], suite="a") -> None:
    directory.mkdir(parents=True)
    common = {"test_id": "a", "target": "echo", "suite": suite, "status": "passed", "key": "k"}
    (directory / "index.jsonl").write_text(
        "".join(json.dumps({**common, "cost_usd": cost, "judge_cost_usd": judged}) + "\n" for cost, judged in costs)
    )


def test_the_price_is_the_mean_of_the_last_run_that_tells(project):
    results = project / ".agentv" / "results"
    rows(results / "20260101T000000Z-0000", (9.0, None))
    rows(results / "20260102T000000Z-0000", (0.2, None), (0.3, 0.1), (None, 5.0))
    rows(results / "20260103T000000Z-0000", (None, None))
    rows(results / "20260104T000000Z-0000", (7.0, None), suite="another")
    cases, totals = listed(targets=("echo", "mock:hi"))
    assert totals.cost_usd == pytest.approx(8 * 0.3)
    assert totals.unpriced == 8
    assert len(cases) == 8


@pytest.mark.parametrize("damage", [b"", b"\xff", b"no json\n", b'{"schema_version": 99}\n'])
def test_no_price_is_no_zero(project, damage):
    rows(project / ".agentv" / "results" / "20260101T000000Z-0000", (0.5, None))
    (project / ".agentv" / "results" / "20260101T000000Z-0000" / "index.jsonl").write_bytes(damage)
    _, totals = listed()
    assert (totals.cost_usd, totals.unpriced) == (None, 8)
