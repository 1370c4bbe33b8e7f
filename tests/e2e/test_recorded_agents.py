"""Whole runs of agents in a cassette: the real agent runs again, with its tools and its workspace, without its model."""

from __future__ import annotations

import json
import sys
import time

import pytest

from agentv.model.values.message import ToolCall
from agentv.testing import Answer, ModelServer

AGENT = """
import os, subprocess, sys, threading, time, uuid
from pathlib import Path
import anthropic

prompt = sys.stdin.read()
with open(os.environ["RUNS"], "a") as file:
    file.write(prompt + "\\n")

def read(name):
    path = Path(os.environ["RUNS"]).with_name(name)
    return path.read_text() if path.exists() else ""

client = anthropic.Anthropic(max_retries=int(os.environ.get("RETRIES", "0")))

def title():
    client.messages.create(
        model="small", max_tokens=10, system="Write a title.", messages=[{"role": "user", "content": prompt}]
    )

side = threading.Thread(target=title)
side.start()
system = f"Session {uuid.uuid4()} in {os.getcwd()}, home {os.environ['HOME']}, {time.ctime()}. {read('style.txt')}"
tools = [
    {"name": name, "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    for name in ("write", "shell")
]
messages = [{"role": "user", "content": prompt}]
while True:
    with client.messages.stream(model="large", max_tokens=100, system=system, tools=tools, messages=messages) as stream:
        reply = stream.get_final_message()
    messages.append({"role": "assistant", "content": [one.model_dump(exclude_none=True) for one in reply.content]})
    results = []
    for one in reply.content:
        if one.type != "tool_use":
            continue
        text = one.input["text"]
        if one.name == "write":
            Path("price.txt").write_text(text)
            found = f"written {Path('price.txt').resolve()}"
        else:
            found = subprocess.run(text, shell=True, capture_output=True, text=True).stdout
        results.append({"type": "tool_result", "tool_use_id": one.id, "content": found})
    if not results:
        break
    messages.append({"role": "user", "content": results})
side.join()
print("".join(one.text for one in reply.content if one.type == "text"))
"""

SUITE = f"""\
target:
  name: shop
  provider: cli
  command: [{json.dumps(sys.executable)}, agent.py]
  gateway: anthropic
sandbox: none
env: {{RUNS: "${{{{ RUNS }}}}", RETRIES: "2"}}
workspace: {{template: ./repo}}
tests:
  - {{id: a, input: set a to 2, assert: [contains: Done, {{command: "grep 2 price.txt"}}]}}
  - {{id: b, input: set b to 3, assert: [contains: Done, {{command: "grep 3 price.txt"}}]}}
  - {{id: wrong, input: set wrong to 4, assert: [{{command: "grep 5 price.txt"}}]}}
"""


def model(call):
    """The model: it writes the price, looks at it, and says so. Every reply is another one."""
    if call.body["system"] == "Write a title.":
        return Answer("A title")
    price = call.text.split(" to ")[1][0]
    results = sum(message["role"] == "user" for message in call.body["messages"]) - 1
    if results == 0:
        return Answer("I write.", (ToolCall("write", {"text": price}),))
    if results == 1:
        return Answer("", (ToolCall("shell", {"text": "cat price.txt; date; echo $$ > pid.txt"}),))
    return Answer(f"Done at {time.monotonic_ns()}")


@pytest.fixture
def shop(project):
    project.write("agent.py", AGENT)
    project.write("repo/price.txt", "1")
    project.write("a.eval.yaml", SUITE)
    project.write("home/.keep", "")
    return project


KEY = "sk-ant-test-1234567890abcdef"


def run(project, *words, server=None, **env):
    there = {"ANTHROPIC_BASE_URL": server.anthropic, "ANTHROPIC_API_KEY": KEY} if server is not None else {}
    return project.run("eval", "a.eval.yaml", *words, env={"RUNS": str(project.path / "runs.txt"), **there, **env})


def runs(project) -> int:
    path = project.path / "runs.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def verdicts(project, out):
    return {(row["test_id"], row["sample"]): (row["status"], row["output"]) for row in project.rows(out)}


@pytest.fixture
def recorded(shop):
    with ModelServer(model, keys=[KEY]) as server:
        ended = run(shop, "--record", "run.jsonl", "--out", "recorded", "--repeat", "2", server=server)
        assert ended.status == 1, ended.stderr
        assert "recorded 6 agent trials in run.jsonl" in ended.stderr
        assert len(server.calls) == 6 * 4
    assert not any(row.get("reused") for row in shop.rows("recorded"))
    (shop.path / "runs.txt").unlink()
    return shop


def test_ten_replays_without_a_model_or_a_key_come_to_the_same(recorded):
    text = (recorded.path / "run.jsonl").read_text()
    assert KEY not in text
    assert str(recorded.path) not in text
    before = verdicts(recorded, "recorded")
    assert {status for status, _ in before.values()} == {"passed", "failed"}
    for number in range(10):
        ended = run(recorded, "--replay", "run.jsonl", "--out", f"replayed{number}", "--repeat", "2", "--workers", "8")
        assert ended.status == 1, ended.stderr
        assert verdicts(recorded, f"replayed{number}") == before
        assert "6 agent trials replayed from run.jsonl: real agents, recorded replies" in ended.stderr
        assert "differ" not in ended.stderr
        rows = recorded.rows(f"replayed{number}")
        assert all(row["reused"] and not row.get("notes") for row in rows), rows
        assert runs(recorded) == (number + 1) * 6, "the agent itself runs each time"
    summary = json.loads((recorded.path / "replayed0/summary.json").read_text())
    assert summary["cost_usd"] in (None, 0.0)
    assert (recorded.path / "run.jsonl").read_text() == text


def test_a_replay_whose_prompts_differ_says_so_once_and_plainly(recorded):
    recorded.write("style.txt", "You are a duck.")
    ended = run(recorded, "--replay", "run.jsonl", "--out", "out", "--filter", "a")
    assert ended.status == 0, ended.stderr
    what = "in 1 of 1 replayed trial, the agent's prompts differ from the recorded ones (a): record again to be sure"
    assert ended.stderr.count(what) == 1
    (row,) = recorded.rows("out")
    (note,) = row["notes"]
    assert note.startswith("replayed from run.jsonl with different prompts: 1 of 4 recorded model calls differ; first")
    assert "the system prompt says" in note
    assert "duck" in note
