"""Turns, conversations across cases, dependencies, clusters and queries before cases, end to end."""

import json

import pytest

from doubles.waiting import until
from e2e.command import stopped

RECORDER = '''
import asyncio, json, os

async def answer(messages, case_id):
    """Says how many users have spoken, and writes down what it was given."""
    await asyncio.sleep(float(os.environ.get("ANSWER_S", "0")))
    with open("asked.jsonl", "a") as log:
        log.write(json.dumps({"case": case_id, "messages": [[one["role"], one["content"]] for one in messages]}) + "\\n")
    if os.path.exists(f"broken-{case_id}"):
        raise RuntimeError("broken")
    count = sum(one["role"] == "user" for one in messages)
    if case_id == "tools":
        call = {"role": "assistant", "content": "", "tool_calls": [{"name": "count", "arguments": {"users": count}}]}
        return {"output": [call, {"role": "assistant", "content": f"answer {count}"}], "cost_usd": 0.5}
    return f"answer {count} {{{{ not_rendered }}}}"
'''

TURNS = """
target: python:agent.py:answer
tests:
  - id: talk
    turns:
      - input: One
        assert: [contains: answer 1]
      - input: Two
        assert: [contains: answer 2]
    assert: [contains: answer]
"""


def asked(project) -> list[tuple[str, list[list[str]]]]:
    log = (project.path / "asked.jsonl").read_text()
    return [(line["case"], line["messages"]) for line in map(json.loads, log.splitlines())]


def test_a_target_gets_the_transcript_and_the_run_keeps_it(project):
    project.write_files({"agent.py": RECORDER, "a.eval.yaml": TURNS})
    project.run("eval", "a.eval.yaml", status=0)
    first = "answer 1 {{ not_rendered }}"
    transcript = [["user", "One"], ["assistant", first], ["user", "Two"]]
    assert asked(project) == [("talk", transcript[:1]), ("talk", transcript)]
    (row,) = project.rows()
    assert [[one["role"], one["content"]] for one in row["input"]] == transcript
    assert [turn["output"] for turn in row["turns"]] == [first, "answer 2 {{ not_rendered }}"]
    shown = [score["name"] for score in row["scores"]]
    assert shown == ["turn 1: contains: 'answer 1'", "turn 2: contains: 'answer 2'", "contains: 'answer'"]
    assert row["cost_usd"] is None


SAID = "user:\nOne\n\nassistant:\nOne\n\nuser:\nTwo"
AS_TEXT = f"""
tests:
  - id: talk
    turns: [{{input: One}}, {{input: Two}}]
    assert: [equals: {json.dumps(SAID)}]
"""


@pytest.mark.parametrize("target", ["cli:cat", "echo"])
def test_a_target_that_takes_text_gets_the_turns_under_their_roles(project, target):
    project.write("a.eval.yaml", f"target: {target}{AS_TEXT}")
    project.run("eval", "a.eval.yaml", status=0)


CHAIN = """
target: python:agent.py:answer
assert: [contains: answer]
tests:
  - {id: login, input: Log in, conversation_id: talk}
  - {id: profile, input: Show me, conversation_id: talk}
  - {id: logout, input: Bye, conversation_id: talk}
  - {id: mail, input: Mail, depends_on: profile}
  - {id: free, input: Free}
"""


def test_what_failed_holds_back_what_depends_on_it_and_is_exit_1(project):
    project.write("agent.py", RECORDER)
    project.write("a.eval.yaml", CHAIN.replace("input: Show me, ", "input: Show me, assert: [contains: nothing], "))
    ended = project.run("eval", "a.eval.yaml", "--json", status=1)
    found = json.loads(ended.stdout)
    assert found["cases"] == {"total": 5, "passed": 3, "failed": 1, "errored": 0, "skipped": 1, "shown": 0}
    shown = [(one["test_id"], one["status"]) for one in found["not_passed"]]
    assert shown == [("profile", "failed"), ("mail", "skipped")]
    project.run("eval", "a.eval.yaml", "--resume", status=1, says="5 cases: 3 passed, 1 failed, 0 errored, 1 not run")
    assert len(asked(project)) == 4


def test_a_conversation_that_was_interrupted_goes_on_where_it_ended(project):
    project.write("agent.py", RECORDER)
    cases = "".join(f"  - {{id: c{number}, input: say {number}, conversation_id: talk}}\n" for number in range(12))
    project.write(
        "a.eval.yaml",
        f"target: python:agent.py:answer\nassert: [contains: answer]\nenv: {{ANSWER_S: '0.05'}}\ntests:\n{cases}",
    )
    project.write("agent.py", RECORDER.replace('"ANSWER_S", "0"', '"ANSWER_S", "0.05"'))
    process = project.start("eval", "a.eval.yaml", "--out", "out")
    index = project.path / "out" / "index.jsonl"
    until(lambda: index.exists() and index.read_bytes().count(b"\n") >= 3)
    stopped(process, status=130)
    done = len(project.rows("out"))
    assert 3 <= done < 12

    project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out", status=0)
    assert [row["test_id"] for row in project.rows("out")] == [f"c{number}" for number in range(12)]
    case, messages = asked(project)[done]
    assert case == f"c{done}"
    assert len(messages) == 2 * done + 1
    assert messages[1] == ["assistant", "answer 1 {{ not_rendered }}"]
    assert len(asked(project)) == 12


def test_a_killed_trial_with_turns_goes_on_after_the_last_answer_that_was_kept(project):
    project.write_files({"agent.py": RECORDER.replace('"ANSWER_S", "0"', '"ANSWER_S", "0.3"'), "a.eval.yaml": TURNS})
    process = project.start("eval", "a.eval.yaml", "--out", "out")
    journal = project.path / "out" / "journal.jsonl"
    until(lambda: journal.exists() and b'"key"' in journal.read_bytes())
    process.kill()
    process.communicate(timeout=120)
    before = len(asked(project))
    project.run("eval", "a.eval.yaml", "--out", "out", "--resume=out", status=0)
    again = [len(messages) for _, messages in asked(project)[before:]]
    assert again in ([3], [])  # the second call may or may not have started
    assert len(project.rows("out")) == 1


def lines(number=40, clusters=8, **given):
    """Return JSON Lines of cases; the cases of one customer either all pass or all fail."""
    rows = (
        {
            "id": f"c{one}",
            "input": "hello",
            "metadata": {"customer": one % clusters},
            "assert": [{"contains": "hello" if one % clusters < clusters * 3 / 4 else "bye"}],
            **{key: value.format(one % clusters) for key, value in given.items()},
        }
        for one in range(number)
    )
    return "\n".join(map(json.dumps, rows)) + "\n"


def rate(ended):
    return next(line.partition(", mean score")[0] for line in ended.stderr.split("\n") if line.startswith("pass rate"))


@pytest.mark.parametrize(
    ("sidecar", "flags", "said"),
    [
        ("", (), "(95% CI 59.8% to 85.8%)"),
        ("run: {cluster: customer}\n", (), "(95% CI 34.4% to 94.5%, 8 clusters by 'customer')"),
        ("cluster: nothing\n", ("--cluster", "customer"), "(95% CI 34.4% to 94.5%, 8 clusters by 'customer')"),
        (
            'cluster: "of {{ metadata.customer }}"\n',
            (),
            "(95% CI 34.4% to 94.5%, 8 clusters by 'of {{ metadata.customer }}')",
        ),
    ],
)
def test_cases_of_one_cluster_are_not_counted_as_independent(project, sidecar, flags, said):
    project.write_files({"a.jsonl": lines(), "a.yaml": f"target: echo\n{sidecar}"})
    ended = project.run("eval", "a.jsonl", "-q", *flags)
    assert rate(ended) == f"pass rate 75.0% of 40 judged {said}", ended.stderr


AGENT = """
import time

def note(what):
    with open("log", "a") as log:
        log.write(what + "\\n")

def answer(prompt):
    note("model")
    return "hi"

def judge(prompt):
    note("asked")
    time.sleep(0.05)
    note("answered")
    return "" if "say nothing" in prompt else "YES"
"""
TARGETS = """
targets:
  - {name: m, provider: python, function: "agent.py:answer"}
  - {name: j, provider: python, function: "agent.py:judge"}
defaults: {target: m, judge: j}
"""
EXAM = """
triggering:
  should_trigger: [greet Ann, greet Bob, greet Cy, QUERY]
cases:
  - {name: a, inputs: {name: x}, assertions: [{contains: hi}]}
  - {name: b, inputs: {name: y}, assertions: [{contains: hi}]}
"""


def exam(project, query: str, *words: str):
    project.write("prompts/p/prompt.md", "Greet {{ name }}\n")
    project.write("prompts/p/meta.yaml", "description: greets people\nstatus: draft\n")
    project.write("prompts/p/eval.yml", EXAM.replace("QUERY", query))
    project.write("agent.py", AGENT)
    project.write(".agentv/targets.yaml", TARGETS)
    ended = project.run("eval", "prompts/p/eval.yml", *words)
    return ended, (project.path / "log").read_text().split()


@pytest.mark.parametrize("workers", ["1", "3", "50"])
def test_no_model_is_called_before_the_last_query_is_answered(project, workers):
    ended, log = exam(project, "greet Dee", "-j", workers)
    assert ended.status == 0, ended.stderr
    assert log.count("answered") == 4
    assert log[8:] == ["model", "model"]


def test_after_a_failed_query_no_model_is_called_where_the_first_failure_ends_the_run(project):
    _, log = exam(project, "say nothing", "-j", "8", "--fail-fast")
    assert "model" not in log
