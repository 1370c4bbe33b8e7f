"""`--executor ray` on a cluster of two nodes gives the rows of a run in one process, even when nodes or workers die."""

import json
from collections import Counter, defaultdict

import pytest

from doubles.ray_cluster import TwoNodes
from doubles.waiting import until
from needs import needs

AGENT = """
import json, os, re, time

def answer(prompt, case_id):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"{case_id} {os.getpid()} {os.getppid()}\\n")
    end = time.monotonic() + 600  # should the test have failed
    while case_id.startswith("held") and os.path.exists(os.environ["HOLD"]) and time.monotonic() < end:
        time.sleep(0.02)
    return f"You asked: {prompt}"

def choose(prompt):
    answers = re.findall(r"answer-([0-9a-f]{8})[^\\n]*\\n(.*?)\\n", prompt)
    return json.dumps({"reason": "it is short", "best": min(answers, key=lambda one: len(one[1]))[0]})
"""
ALL_SORTS = """
name: shop
target: python:agent.py:answer
judge: {name: judge, provider: mock, response: '{"score": 0.9, "reason": "kind"}'}
env: {SHOP: "on the corner"}
run: {repeat: 2}
assert:
  - contains: asked
  - long-enough: 5
tests:
  - {id: plain, input: hello, assert: [regex: 'h.l+o']}
  - {id: wrong, input: hello, assert: [contains: goodbye]}
  - id: judged
    repeat: 1  # two samples with one answer share a question, where they are on one worker
    input: may I return it?
    assert: [{type: llm-rubric, value: It is kind.}]
  - id: program
    input: hello
    assert: [{type: script, command: 'test -n "$SHOP"'}]
  - id: nested
    input: hello
    assert:
      - assert-set: {threshold: 0.5, assert: [{contains: hello}, {contains: goodbye}]}
  - {id: after, input: later, depends_on: [plain]}
  - {id: never, input: later, depends_on: [wrong]}
  - id: talk
    turns:
      - {input: one, assert: [contains: one]}
      - {input: two, assert: [contains: two]}
  - {id: first, input: who?, conversation_id: c}
  - {id: second, input: why?, conversation_id: c}
"""
RIVALS = """
name: rivals
targets: [{name: short, provider: mock, response: Yes.}, {name: long, provider: mock, response: "Yes, of course."}]
judge: {name: judge, provider: python, function: "agent.py:choose"}
tests:
  - id: which
    input: may I?
    assert: [select-best: the shorter]
"""
CUSTOM = """
def long_enough(ctx, *, value: int = 3):
    return len(ctx.output) >= value
"""
MANY_CASES = [*(f"c{number}" for number in range(10)), *(f"held{number}" for number in range(50))]
MANY = "name: many\ntarget: python:agent.py:answer\ntests:\n" + "".join(
    f"  - {{id: {case}, input: hello, assert: [contains: hello]}}\n" for case in MANY_CASES
)
ENDS_ITS_PROCESS = """
import os, signal, time

def survives(ctx):
    if "kill" in ctx.input[0].text:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return True
"""


pytestmark = [pytest.mark.slow, needs("ray")]


@pytest.fixture(scope="module")
def cluster():
    made = TwoNodes()
    yield made
    made.end()


@pytest.fixture
def shop(project):
    project.write("agent.py", AGENT)
    project.write(".agentv/assertions/long-enough.py", CUSTOM)
    project.write("shop.eval.yaml", ALL_SORTS)
    project.write("rivals.eval.yaml", RIVALS)
    project.write("many.eval.yaml", MANY)
    return project


def environment(project, cluster, **more):
    paths = {"CALLS": str(project.path / "calls"), "HOLD": str(project.path / "hold")}
    return {"RAY_ADDRESS": cluster.address, **paths, **more}


def on_cluster(project, cluster, *words, **more):
    env = environment(project, cluster, **more)
    return project.run("eval", *words, "--executor", "ray", "--no-progress", env=env, timeout=400)


def facts(rows):
    """Return the content of rows without times."""
    return sorted(json.dumps(timeless(row), sort_keys=True) for row in rows)


def timeless(value):
    if isinstance(value, list):
        return [timeless(one) for one in value]
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in {"timestamp", "duration_ms"}}
    return value


def calls(project):
    return [line.split() for line in (project.path / "calls").read_text().splitlines()]


SLOWLY_S = 180
"""Timeout in seconds; Ray is slow on a busy machine."""


def held_calls(project):
    """Return node → cases held there; the parent of a node's workers is its raylet."""
    found = defaultdict(list)
    for case, _, node in calls(project):
        if case.startswith("held"):
            found[node].append(case)
    return {node: sorted(cases) for node, cases in found.items()}


def test_the_rows_of_all_sorts_of_trials_are_those_of_a_run_in_one_process(shop, cluster):
    files = ("shop.eval.yaml", "rivals.eval.yaml")
    local = shop.run("eval", *files, "--out", "local", env=environment(shop, cluster))
    far = on_cluster(shop, cluster, *files, "--out", "far")
    assert far.status == local.status == 1, far.stderr
    assert facts(shop.rows("far")) == facts(shop.rows("local"))
    assert len(shop.rows("far")) == 19
    assert len({pid for _, pid, _ in calls(shop)}) >= 3  # this process and the workers
    assert cluster.files  # the logs of Ray's daemons, among others
    assert not [path for path in cluster.files if b"on the corner" in path.read_bytes()]


def test_a_node_that_dies_costs_no_row_and_gives_none_twice(shop, cluster):
    shop.write("hold", "")
    env = environment(shop, cluster)
    words = ("many.eval.yaml", "--executor", "ray", "--workers", "6", "--out", "far", "--no-progress")
    process = shop.start("eval", *words, env=env)
    index = shop.path / "far" / "index.jsonl"
    until(lambda: index.exists() and index.read_bytes().count(b"\n") >= 10, SLOWLY_S)
    until(lambda: sum(map(len, held_calls(shop).values())) == 6, SLOWLY_S)
    held, before = held_calls(shop), len(calls(shop))
    assert len(held) == 2, "one node answered alone"
    cluster.tell("kill")
    until(lambda: sorted(case for case, *_ in calls(shop)[before:]) in held.values(), SLOWLY_S)
    (shop.path / "hold").unlink()
    _, stderr = process.communicate(timeout=180)
    cluster.tell("add")
    assert process.returncode == 0, stderr
    assert "raylet" not in stderr
    rows = shop.rows("far")
    assert Counter(row["test_id"] for row in rows) == dict.fromkeys(MANY_CASES, 1)
    again = Counter(case for case, *_ in calls(shop)) - Counter(MANY_CASES)
    assert sorted(again.elements()) in held.values(), "what ran on the node that died is done again, and no others"
    shop.run("eval", "many.eval.yaml", "--out", "local", env=environment(shop, cluster), status=0)
    assert facts(rows) == facts(shop.rows("local"))
    answered_before_rows(shop.path / "far")


def answered_before_rows(run):
    """Each answer is in the journal once, before the line with its row's checksum."""
    case_of = {row["key"]: row["test_id"] for row in map(json.loads, (run / "index.jsonl").read_text().splitlines())}
    answered, vouched = [], []
    _, *lines, last = map(json.loads, (run / "journal.jsonl").read_text().splitlines())
    assert "summary" in last
    for line in lines:
        if "row" in line:
            vouched.append(case_of[line["row"]])
            assert vouched[-1] in answered
        else:
            answered.append(line["case"])
    assert sorted(answered) == sorted(vouched) == sorted(case_of.values())


def test_a_trial_that_kills_its_worker_is_errored_and_the_others_pass(shop, cluster):
    shop.write(".agentv/assertions/survives.py", ENDS_ITS_PROCESS)
    cases = "".join(f"  - {{id: c{number}, input: hello, assert: [survives]}}\n" for number in range(6))
    text = f"target: echo\ntests:\n  - {{id: bad, input: kill, assert: [survives]}}\n{cases}"
    shop.write("bad.eval.yaml", text.replace("[survives]", "[{type: survives}]"))
    ended = on_cluster(shop, cluster, "bad.eval.yaml", "--out", "far")
    assert ended.status == 3, ended.stderr
    shown = "ERRORED bad: worker-lost: 3 workers were lost while running it, the last one while running it alone"
    assert shown in ended.stderr
    assert Counter(row["status"] for row in shop.rows("far")) == {"passed": 6, "errored": 1}
