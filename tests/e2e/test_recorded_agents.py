"""Whole agent runs in a cassette: the real agent runs again with its tools and workspace, but without its model."""

import json
import shutil
import signal
import sys
import time

import pytest

from agentv.model.values.message import ToolCall
from agentv.testing import Answer, Hang, ModelServer
from doubles.thorough import examples
from doubles.waiting import until
from e2e.command import Project, stopped

pytestmark = pytest.mark.libraries

AGENT = r"""
import json, os, subprocess, sys, threading, time, uuid
from pathlib import Path
from urllib.request import Request, urlopen

prompt = sys.stdin.read()
with open(os.environ["RUNS"], "a") as file:
    file.write(prompt + "\n")

def read(name):
    path = Path(os.environ["RUNS"]).with_name(name)
    return path.read_text() if path.exists() else ""

def ask(system, messages, **more):
    body = {"model": "gpt-5-mini", "messages": [{"role": "system", "content": system}, *messages], **more}
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]

if read("silent.txt"):
    sys.exit(print("Done without a model"))
side = threading.Thread(target=ask, args=("Write a title.", [{"role": "user", "content": prompt}]))
side.start()
system = f"Session {uuid.uuid4()} in {os.getcwd()}, home {os.environ['HOME']}, {time.ctime()}. {read('style.txt')}"
tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("write", "shell")]
messages = [{"role": "user", "content": prompt}]
while True:
    message = ask(system, messages, tools=tools)
    messages.append(message)
    for call in message.get("tool_calls") or ():
        text = json.loads(call["function"]["arguments"])["text"]
        if call["function"]["name"] == "write":
            Path("price.txt").write_text(text)
            found = f"written {Path('price.txt').resolve()}"
        else:
            found = subprocess.run(text, shell=True, capture_output=True, text=True).stdout
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})
    if not message.get("tool_calls"):
        break
side.join()
if read("more.txt"):
    ask(system, [*messages, {"role": "user", "content": "Are you sure?"}])
print(message["content"])
"""


SUITE = f"""\
target:
  name: shop
  provider: cli
  command: [{json.dumps(sys.executable)}, agent.py]
  gateway: openai
sandbox: none
env: {{RUNS: "${{{{ RUNS }}}}"}}
workspace: {{template: ./repo}}
tests:
  - {{id: a, input: set a to 2, assert: [contains: Done, {{command: "grep 2 price.txt"}}]}}
  - {{id: b, input: set b to 3, assert: [contains: Done, {{command: "grep 3 price.txt"}}]}}
  - {{id: wrong, input: set wrong to 4, assert: [{{command: "grep 5 price.txt"}}]}}
"""


def model(call):
    """Play the model: write the price, look at it, and answer; every reply differs."""
    if "Write a title." in call.text:
        return Answer("A title")
    price = call.text.split(" to ")[1][0]
    roles = [message["role"] for message in call.body["messages"]]
    results = roles.count("tool") or roles.count("user") - 1
    if results == 0:
        return Answer("I write.", (ToolCall("write", {"text": price}),))
    if results == 1:
        return Answer("", (ToolCall("shell", {"text": "cat price.txt; date; echo $$ > pid.txt"}),))
    return Answer(f"Done at {time.monotonic_ns()}")


@pytest.fixture
def shop(project):
    return opened_shop(project)


def opened_shop(project):
    return project.write_files({"agent.py": AGENT, "repo/price.txt": "1", "a.eval.yaml": SUITE, "home/.keep": ""})


KEY = "sk-test-1234567890abcdef"


def run(project, *words, server=None, status=None, **env):
    there = {"OPENAI_BASE_URL": server.openai, "OPENAI_API_KEY": KEY} if server is not None else {}
    env = {"RUNS": str(project.path / "runs.txt"), **there, **env}
    return project.run("eval", "a.eval.yaml", *words, status=status, env=env)


def runs(project) -> int:
    path = project.path / "runs.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


def verdicts(project, out):
    return {(row["test_id"], row["sample"]): (row["status"], row["output"]) for row in project.rows(out)}


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A project with a recorded run, made once, and a copy of it."""
    directory = tmp_path_factory.mktemp("recorded")
    (directory / "shop" / ".git").mkdir(parents=True)
    shop = opened_shop(Project(directory / "shop", libraries=True))
    with ModelServer(model, keys=[KEY]) as server:
        ended = run(shop, "--record", "run.jsonl", "--out", "recorded", "--repeat", "2", server=server, status=1)
        assert "recorded 6 agent trials in run.jsonl" in ended.stderr
        assert len(server.calls) == 6 * 4
    assert not any(row.get("reused") for row in shop.rows("recorded"))
    (shop.path / "runs.txt").unlink()
    return shop, shutil.copytree(shop.path, directory / "copy")


@pytest.fixture
def recorded(recording):
    """The recorded project at its original path, which a variable of its agent contains."""
    shop, copy = recording
    shutil.rmtree(shop.path)
    shutil.copytree(copy, shop.path)
    return shop


def test_replays_without_a_model_or_a_key_come_to_the_same(recorded):
    text = (recorded.path / "run.jsonl").read_text()
    assert KEY not in text
    assert str(recorded.path) not in text
    before = verdicts(recorded, "recorded")
    assert {status for status, _ in before.values()} == {"passed", "failed"}
    for number in range(examples(10, 3)):
        ended = run(recorded, "--replay", "run.jsonl", "--out", f"replayed{number}", "--repeat", "2", "--workers", "8")
        assert ended.status == 1, ended.stderr
        assert verdicts(recorded, f"replayed{number}") == before
        assert "6 agent trials replayed from run.jsonl: real agents, recorded replies" in ended.stderr
        assert "differ" not in ended.stderr
        rows = recorded.rows(f"replayed{number}")
        assert all(row["reused"] and not row.get("notes") for row in rows), rows
        assert runs(recorded) == (number + 1) * 6, "the agent itself runs each time"
    summary = recorded.summary("replayed0")
    assert summary["cost_usd"] in (None, 0.0)
    assert (recorded.path / "run.jsonl").read_text() == text


def test_a_replay_whose_prompts_differ_says_so_once_and_plainly(recorded):
    recorded.write("style.txt", "You are a duck.")
    ended = run(recorded, "--replay", "run.jsonl", "--out", "out", "--filter", "a", status=0)
    what = "in 1 of 1 replayed trial, the agent's prompts differ from the recorded ones (a): record again to be sure"
    assert ended.stderr.count(what) == 1
    (row,) = recorded.rows("out")
    (note,) = row["notes"]
    assert note.startswith("replayed from run.jsonl with different prompts: 1 of 4 recorded model calls differ; first")
    assert "the system prompt says" in note
    assert "duck" in note
    assert "different prompts" in " ".join(recorded.run("results", "show", "out").stdout.split())
    assert recorded.run("results", "export", "out", "-o", "out.html").status == 0
    assert "with different prompts" in (recorded.path / "out.html").read_text()


def test_a_call_that_was_not_recorded_is_an_error_and_no_model_is_asked(recorded):
    recorded.write("more.txt", "ask again")
    with ModelServer(model, keys=[KEY]) as server:
        ended = run(recorded, "--replay", "run.jsonl", "--out", "out", "--filter", "a", server=server)
        assert server.calls == []
    assert ended.status == 3, ended.stderr
    (row,) = recorded.rows("out")
    assert (row["status"], row["error"]["code"]) == ("errored", "not-recorded")
    assert "the agent made a model call that is not recorded (POST openai/chat/completions)" in row["error"]["message"]
    assert "4 of 4 recorded calls made" in row["error"]["message"]


def test_an_agent_that_answers_without_its_model_was_not_replayed(recorded):
    recorded.write("silent.txt", "be silent")
    recorded.write("a.eval.yaml", SUITE.replace(', {command: "grep 2 price.txt"}', ""))
    run(recorded, "--replay", "run.jsonl", "--out", "out", "--filter", "a", status=3)
    (row,) = recorded.rows("out")
    assert row["error"]["code"] == "not-replayed"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("set a to 2", "set a to 2 now"), "it has one, but the input changed since"),
        (("template: ./repo", "template: ./other"), "the workspace, the variant or the tools changed since"),
        (("gateway: openai", "gateway: openai\n  env: {STYLE: x}"), "the environment or the target's settings changed"),
        (("id: a,", "id: new,"), "has no recorded trial of 'shop' at the case 'new'"),
    ],
)
def test_a_trial_that_changed_is_not_graded_by_an_old_recording(recorded, change, why):
    recorded.write_files({"other/price.txt": "0", "a.eval.yaml": SUITE.replace(*change)})
    run(recorded, "--replay", "run.jsonl", "--out", "out", "--limit", "1", status=3)
    (row,) = recorded.rows("out")
    assert row["error"]["code"] == "not-recorded"
    assert why in row["error"]["message"]
    assert runs(recorded) == 0


def test_a_recording_that_is_killed_goes_on_with_the_trial_that_was_cut(shop):
    words = ("--replay", "run.jsonl", "--replay-mode", "new", "--workers", "1")
    hung = []

    def hangs(call):
        if "set b to" in call.text and not hung and "tool" in str(call.body["messages"][-1]["role"]):
            hung.append(call)
            return Hang()
        return model(call)

    with ModelServer(hangs, keys=[KEY]) as server:
        env = {"RUNS": str(shop.path / "runs.txt"), "OPENAI_BASE_URL": server.openai, "OPENAI_API_KEY": KEY}
        process = shop.start("eval", "a.eval.yaml", *words, env=env)
        until(lambda: hung)
        stopped(process, signal.SIGKILL)
    trials = [json.loads(line) for line in (shop.path / "run.jsonl").read_text().splitlines()[1:]]
    assert {one["case"] for one in trials} == {"a"}
    assert trials[0]["exchanges"] == len(trials) - 1 == 4
    with ModelServer(model, keys=[KEY]) as server:
        ended = run(shop, *words, "--out", "out", server=server)
        assert len(server.calls) == 8, "a is replayed, b and wrong are recorded"
    assert ended.status == 1, ended.stderr
    assert "added 2 agent trials to run.jsonl, which now holds 3" in ended.stderr
    shown = [row.get("reused", False) for row in sorted(shop.rows("out"), key=lambda row: row["test_id"])]
    assert shown == [True, False, False]
    assert run(shop, "--replay", "run.jsonl").status == 1
