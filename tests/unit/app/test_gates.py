"""Minimums of `activation` decide its queries, and no other case."""

import pytest

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


def ran(tmp_path, suite, lamp, money, **chosen):
    skill = "---\nname: {0}\ndescription: For {0}.\n---\nBe kind.\n"
    skills = {f"skills/{name}/SKILL.md": skill.format(name) for name in BOTH}
    agent = AGENT.replace("LAMP", str(lamp)).replace("MONEY", str(money))
    repository(tmp_path, {"a.eval.yaml": suite, "agent.py": agent, **skills})
    return evaluate(tmp_path / "a.eval.yaml", out=tmp_path / "out", **chosen)


@pytest.mark.parametrize(("minimum", "passed"), [("min_recall: 0.5", True), ("min_precision: 0.5", False)])
def test_a_query_that_loads_nothing_is_allowed_by_recall_alone(tmp_path, minimum, passed):
    suite = SUITE.replace("min_recall: 1", minimum).replace("}]", "}, {query: hat, skill: refund}]")
    (gate,) = ran(tmp_path, suite, ["returns"], ["refund"]).summary.gates
    assert (gate.passed, "1 of 3 queries" in gate.why) == (passed, not passed)
