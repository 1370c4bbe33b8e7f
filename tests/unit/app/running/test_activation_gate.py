"""Minimums of `activation` decide its queries, and no other case."""

from __future__ import annotations

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
        ((BOTH, BOTH), "", {}, "PASSED", [True]),
        ((["returns"], ["returns"]), "", {}, "FAILED", [False]),
        ((["returns"], ["refund"]), OWN.replace("WANTED", "other"), {}, "FAILED", [True]),
        ((["refund"], []), OWN.replace("WANTED", "done"), {"filter": ["mine"]}, "PASSED", []),
    ],
)
def test_they_decide_queries_alone(tmp_path, loaded, more, chosen, status, gates):
    skill = "---\nname: {0}\ndescription: For {0}.\n---\nBe kind.\n"
    skills = {f"skills/{name}/SKILL.md": skill.format(name) for name in BOTH}
    agent = AGENT.replace("LAMP", str(loaded[0])).replace("MONEY", str(loaded[1]))
    repository(tmp_path, {"a.eval.yaml": SUITE + more, "agent.py": agent, **skills})
    found = evaluate(tmp_path / "a.eval.yaml", out=tmp_path / "out", **chosen)
    assert (found.status.name, [gate.passed for gate in found.summary.gates]) == (status, gates)
