"""Minimums of `activation` decide its queries and no other cases."""

import pytest

from agentv.app.exports import Exported, rendered
from agentv.app.results.merging import merge_runs
from agentv.app.results.stored import open_run
from agentv.sdk import evaluate
from doubles.loading import repository

AGENT = """
def answer(prompt):
    loaded = {"lamp": LAMP, "money": MONEY}.get(prompt, [])
    calls = [{"name": "Skill", "arguments": {"skill": name}, "output": "…"} for name in loaded]
    return {"output": [{"role": "assistant", "content": "done", "tool_calls": calls}]}
"""
SUITE = """
target: {provider: python, function: "agent.py:answer"}
activation:
  skills: ./skills
  queries: [{query: lamp, skill: returns}, {query: money, skill: refund}]
  max_turns: 3
  min_recall: 1
"""
OWN = "tests: [{id: mine, tags: [activation], metadata: {skill: refund}, input: Hi, assert: [{equals: WANTED}]}]\n"


BOTH = ["refund", "returns"]


@pytest.mark.parametrize(
    ("loaded", "more", "chosen", "status", "gates"),
    [
        ((["returns"], ["refund"]), "", {}, "PASSED", [True]),
        ((BOTH, BOTH), "", {}, "FAILED", [False]),
        ((BOTH, BOTH), "  min_precision: 0.5\n", {}, "PASSED", [True]),
        ((["returns"], ["returns"]), "", {}, "FAILED", [False]),
        ((["returns"], ["refund"]), OWN.replace("WANTED", "other"), {}, "FAILED", [True]),
        ((["returns"], ["refund"]), OWN.replace("{skill", "{query: Hi, skill"), {}, "FAILED", [True]),
        ((["refund"], []), OWN.replace("WANTED", "done"), {"filter": ["mine"]}, "PASSED", []),
    ],
)
def test_they_decide_queries_alone(tmp_path, loaded, more, chosen, status, gates):
    found = ran(tmp_path, SUITE + more, *loaded, **chosen)
    assert (found.status.name, [gate.passed for gate in found.summary.gates]) == (status, gates)


def ran(tmp_path, suite, lamp, money, name="out", **chosen):
    skill = "---\nname: {0}\ndescription: For {0}.\n---\nBe kind.\n"
    skills = {f"skills/{name}/SKILL.md": skill.format(name) for name in BOTH}
    agent = AGENT.replace("LAMP", str(lamp)).replace("MONEY", str(money))
    repository(tmp_path, {"a.eval.yaml": suite, "agent.py": agent, **skills})
    return evaluate(tmp_path / "a.eval.yaml", out=tmp_path / name, **chosen)


@pytest.mark.parametrize(("minimum", "passed"), [("min_recall: 0.5", True), ("min_precision: 0.5", False)])
def test_a_query_that_loads_nothing_is_allowed_by_recall_alone(tmp_path, minimum, passed):
    suite = SUITE.replace("min_recall: 1", minimum).replace("}]", "}, {query: hat, skill: refund}]")
    (gate,) = ran(tmp_path, suite, ["returns"], ["refund"]).summary.gates
    assert (gate.passed, "1 of 3 queries" in gate.why) == (passed, not passed)


def test_merged_shards_are_decided_by_all_of_their_queries(tmp_path, monkeypatch):
    """The shard with the only failed query misses the minimum; the whole run reaches it."""
    suite = SUITE.replace("min_recall: 1", "min_recall: 0.5\n  min_precision: 0.5").replace(
        "}]", "}, {query: hat, skill: refund}]"
    )
    shards = []
    for at in (1, 2, 3):
        found = ran(tmp_path, suite, ["returns"], ["refund"], shard=f"{at}/3", name=f"s{at}")
        shards.append((str(found.directory), [gate.passed for gate in found.summary.gates]))
    assert [passed for _, passed in shards] == [[False], [False], [False]]  # no shard has queries of every skill
    monkeypatch.chdir(tmp_path)
    merged = merge_runs([path for path, _ in shards], str(tmp_path / "merged"))
    run = open_run(str(merged.path), action="show")
    (gate,) = Exported(run).totals().gates
    assert (gate.gate, gate.passed, gate.failed, merged.notes) == ("activation", True, 1, ())
    junit = "".join(rendered(".xml", Exported(run)))
    assert ('failures="0"' in junit, "the gate 'activation' decides instead, and passed" in junit) == (True, True)
