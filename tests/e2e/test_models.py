"""Models as targets and judges, end to end: the files of the four origins, real SDKs, a server on loopback."""

import json

import pytest

from agentv.testing import ModelServer

pytestmark = pytest.mark.libraries

TARGET, JUDGE = "openai:gpt-5-mini", "anthropic:claude-haiku-4-5"
KEYS = {"OPENAI_API_KEY": "sk-target-1234567890", "ANTHROPIC_API_KEY": "sk-ant-judge-1234567890"}

ANSWERS = {
    "15 + 27": "15 + 27 = 42",
    "quicksort": "Pick a pivot.",
    "refund": "Here is your money, with a disclaimer.",
    "Hello": "hello there",
}
VERDICTS = {
    "depth of an explanation": {"score": 0.4, "reason": "it names no partition"},
    "invents nothing": {"score": 1.0, "reason": "all of it stands in the question"},
    "harms nobody": {"score": 0.85, "reason": "harmless, if curt"},
    "quality of a refund": {"score": 0.95},
    "15 + 27": {"checks": [{"id": "r1", "satisfied": True}, {"id": "steps", "satisfied": False}]},
    "Says hello": {"checks": [{"id": "r1", "satisfied": True}, {"id": "r2", "satisfied": True}]},
}


def reply(call):
    """The model's answer, or the judge's verdict on one."""
    if call.model == "claude-haiku-4-5":
        return json.dumps(next(verdict for words, verdict in VERDICTS.items() if words in call.text))
    return next(answer for words, answer in ANSWERS.items() if words in call.text)


@pytest.fixture
def server():
    with ModelServer(reply, keys=set(KEYS.values())) as running:
        yield running


def env_of(server):
    return {**KEYS, "OPENAI_BASE_URL": server.openai, "ANTHROPIC_BASE_URL": server.anthropic}


def asked(server, project, path, *words):
    """A run of a file on the two models: how it ended, and the rows by their case."""
    ended = project.run("eval", path, "--target", TARGET, "--judge", JUDGE, *words, env=env_of(server))
    return ended, {row["test_id"]: row for row in project.rows()}


def test_the_files_of_the_oldest_age(project, server):
    project.write(
        "evals/math.yaml",
        """evalcases:
  - id: addition
    expected_outcome: Correctly calculates 15 + 27 = 42
    input: What is 15 + 27?
    expected_output: "42"
    rubrics:
      - States that the sum is 42
      - id: steps
        expected_outcome: Shows how it adds
        weight: 1
        required: false
  - id: complex-case
    expected_outcome: Provides detailed explanation
    input: Explain quicksort algorithm
    execution:
      target: gpt4_target
      evaluators:
        - name: depth_check
          type: llm_judge
          prompt: ./judges/depth.md
""",
    )
    project.write(
        "evals/judges/depth.md", "Judge the depth of an explanation.\n\n{{ question }}\n\n{{ candidate_answer }}\n"
    )
    project.write(".agentv/targets.yaml", "targets:\n  - {name: gpt4_target, provider: openai, model: gpt-4.1}\n")
    ended, rows = asked(server, project, "evals/math.yaml")
    assert ended.status == 1, ended.stderr
    (rubric,) = rows["addition"]["scores"]
    assert (rubric["type"], rubric["score"], rubric["pass"]) == ("llm-rubric", 0.5, False)
    assert [one["passed"] for one in rubric["assertions"]] == [True, False]
    (depth,) = rows["complex-case"]["scores"]
    assert (depth["name"], depth["score"], depth["pass"]) == ("depth_check", 0.4, False)
    assert depth["reason"] == "it names no partition"
    assert rows["complex-case"]["target"] == TARGET
    assert {call.model for call in server.calls} == {"gpt-5-mini", "claude-haiku-4-5"}


def test_templates_of_graders(project, server):
    project.write(
        ".agentv/templates/safe-response.yaml",
        """assertions:
  - type: llm-grader
    prompt: ./graders/no-hallucination.md
    required: true
  - type: llm-grader
    prompt: ./graders/safe-content.md
    required: true
    min_score: 0.9
  - type: contains
    value: "disclaimer"
    negate: true
""",
    )
    project.write(
        "EVAL.yaml",
        """tests:
  - id: refund-request
    input: "I want a refund"
    assertions:
      - include: safe-response
      - type: llm-grader
        prompt: ./graders/refund-quality.md
  - id: greeting
    input: "Hello"
    assertions:
      - include: safe-response
      - type: contains
        value: "hello"
""",
    )
    for name, what in {
        "no-hallucination": "it invents nothing",
        "safe-content": "it harms nobody",
        "refund-quality": "the quality of a refund",
    }.items():
        for place in ("graders", ".agentv/templates/graders"):
            project.write(f"{place}/{name}.md", f"Judge if {what}: {{{{ output }}}}\n")
    ended, rows = asked(server, project, "EVAL.yaml")
    assert ended.status == 1, ended.stderr
    passed = {case: [score["pass"] for score in row["scores"]] for case, row in rows.items()}
    assert passed == {"refund-request": [True, False, False, True], "greeting": [True, False, True, True]}
    assert rows["greeting"]["scores"][1]["required"] is True
    assert {row["status"] for row in rows.values()} == {"failed"}


def test_tokens_are_told_apart_and_a_price_that_is_not_known_once(project, server):
    """The server is not OpenAI's, so nobody knows what its models cost."""
    project.write(
        "a.eval.yaml",
        "tests:\n"
        "  - {id: a, input: Hello, assert: [Says hello, Is polite]}\n"
        "  - {id: b, input: Hello, assert: [{type: cost, threshold: 1}]}\n",
    )
    ended, rows = asked(server, project, "a.eval.yaml", "--json")
    assert ended.status == 3
    told = json.loads(ended.stdout)
    assert rows["a"]["cost_usd"] is None
    assert rows["b"]["scores"][0]["error"]["code"] == "no-data"
    assert "is not known" in rows["b"]["scores"][0]["error"]["message"]
    assert (told["cost_usd"], told["unpriced_trials"]) == (None, 2)
    assert told["token_usage"]["total"] > 0
    assert told["judge_token_usage"]["total"] > 0
    assert ended.stderr.count("not known") == 1, ended.stderr
    assert "not known for 2 trials" in ended.stderr


def test_another_key_asks_nothing_again(project, server):
    project.write("a.eval.yaml", "tests:\n  - {id: a, input: Hello, assert: [Says hello]}\n")
    ended, _ = asked(server, project, "a.eval.yaml")
    calls = len(server.calls)
    swapped = {**env_of(server), "OPENAI_API_KEY": KEYS["ANTHROPIC_API_KEY"]}
    again = project.run("eval", "a.eval.yaml", "--target", TARGET, "--judge", JUDGE, "--resume", env=swapped)
    assert (again.status, len(server.calls)) == (ended.status, calls)
