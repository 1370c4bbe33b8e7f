"""`activation` end to end: which skills an agent loads, gates on that, and what every report shows."""

import json
import os
from xml.etree import ElementTree as ET

import pytest

from agentv.testing import AgentScript, Answer, ModelServer, use_tool
from doubles.native_agents import target_of
from needs import needs

QUERIES = {"I want my money back": "refund", "pay me back": "refund", "take this lamp": "returns", "the weather?": None}


@pytest.fixture
def shop(project):
    for name in ("refund", "returns"):
        skill = f"---\nname: {name}\ndescription: For {name} of orders.\n---\n\nBe kind.\n"
        project.write(f"skills/{name}/SKILL.md", skill)
    rows = (json.dumps({"query": query, "skill": skill}) for query, skill in QUERIES.items())
    project.write("queries.jsonl", "\n".join(rows))

    def run(agent: str, *flags: str, more: str = "", status: int):
        activation = f"activation: {{skills: ./skills, queries: queries.jsonl{more}}}"
        project.write("a.eval.yaml", f"target: {agent}\n{activation}\n")
        words = ("eval", "a.eval.yaml", "--sandbox", "none", "--out", "out", *flags)
        ended = project.run(*words, timeout=300, env={"PATH": os.environ["PATH"]}, status=status)
        summary = project.summary()
        return ended.stderr, summary

    return run


def claude(*loading: str) -> str:
    """Return Claude Code, printing recorded streams in which it loads `refund` for these queries."""
    situations = {query: "skill" if query in loading else "answer" for query in QUERIES}
    return target_of("claude", situations, api_key="sk-of-mine-1234567", gateway=False)


def test_the_skills_that_an_agent_loads_are_counted_and_shown_everywhere(shop, project):
    shown, summary = shop(claude("I want my money back", "take this lamp"), "--out", "report.md", status=1)
    (found,) = summary["activation"]
    assert (found["target"], found["judged"], found["right"], found["errored"]) == ("claude", 4, 2, 0)
    refund, returns = found["skills"]
    assert (refund["precision"]["value"], refund["recall"]["value"], returns["precision"]) == (0.5, 0.5, None)
    assert {"expected": "returns", "loaded": "refund", "queries": 1} in found["confusion"]
    sentence = "activation with claude: 2 of 4 queries right"
    report = (project.path / "report.md").read_text()
    for text in (shown, report, project.run("results", "show", "out").stdout):
        assert sentence in text
    assert "| `refund` | 50.0% (1 of 2 that load it should;" in report


def test_a_target_that_reports_no_calls_is_errored_and_never_without_a_skill(shop):
    shown, summary = shop("echo", more=", min_recall: 0.1", status=3)
    assert "the skills that the agent loaded are unknown" in shown
    assert [(one["judged"], one["errored"]) for one in summary["activation"]] == [(0, 4)]


BOT = """
from itertools import count

numbers = count()

def sample(prompt):
    return "yes" if next(numbers) == 1 else "no"

def answer(prompt):
    skill = "returns" if "lamp" in prompt or "pay" in prompt else "refund" if "money" in prompt else None
    call = {"name": "Skill", "arguments": {"skill": skill}, "output": "…"}
    return {"output": [{"role": "assistant", "content": "Done.", "tool_calls": [call] if skill else []}]}
"""
SAMPLES = """
target: {provider: python, function: "bot.py:sample"}
run: {repeat: 3, aggregate: pass_any}
tests: [{id: once, input: Hi, assert: [{contains: yes}]}]
"""


@pytest.mark.parametrize("suite", ["gate", "samples"])
def test_for_ci_a_run_that_passed_has_no_failure(shop, project, suite):
    """Failed queries that the gate decides, and failed samples of a passed case, are shown but not as failures."""
    project.write("bot.py", BOT)
    bot, minimums = "{name: bot, provider: python, function: 'bot.py:answer'}", ", min_recall: 0.5, min_precision: 0.5"
    if suite == "gate":
        shop(bot, more=minimums, status=0)
    else:
        project.write("a.eval.yaml", SAMPLES)
    github = project.run("eval", "a.eval.yaml", "--format", "github", "-o", "a.xml", status=0).stdout
    assert "::notice file=" in github
    assert "::error" not in github
    assert "case-failed" in github
    results = json.loads(project.run("eval", "a.eval.yaml", "--format", "sarif", status=0).stdout)["runs"][0]["results"]
    assert {one["level"] for one in results} == {"note"}
    root = ET.parse(project.path / "a.xml").getroot()
    shown = [one.get("message") for one in root.iter("skipped")]
    why = "the gate 'activation' decides instead" if suite == "gate" else "its case passed by its other samples"
    assert (root.get("failures"), len(shown), all(why in one for one in shown)) == ("0", len(results), True)


@pytest.mark.agents
@needs("claude")
def test_the_real_program_loads_what_its_model_says(shop):
    loads = {query: [use_tool("skill", name=skill), Answer("ok")] for query, skill in QUERIES.items() if skill}
    with ModelServer(AgentScript([Answer("no skill")], when=loads)) as server:
        named = {"provider": "claude", "base_url": server.anthropic, "api_key": "sk-of-mine-1234567"}
        _, summary = shop(json.dumps(named), more=", min_recall: 1, min_precision: 1", status=0)
        assert len(server.calls) == len(QUERIES)
    assert summary["activation"][0]["right"] == len(QUERIES)
