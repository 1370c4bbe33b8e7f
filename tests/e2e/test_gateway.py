"""Agents that call their model through the gateway, end to end."""

import json
import signal
import socket
import time

import pytest

from agentv.testing import Answer, ModelServer, Status, TokenUsage
from doubles.priced_server import PricedServer
from doubles.waiting import until
from e2e.command import stopped
from needs import needs

pytestmark = pytest.mark.libraries

KEY = "sk-real-0123456789abcdef"
AGENT = """\
import json, os, sys, urllib.error, urllib.request

def ask(text, model="gpt-4o", **more):
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **more}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except OSError as error:
        return f"broken {type(error).__name__}"

prompt = sys.stdin.read().strip()
calls = int(prompt.split()[-1])
print(prompt.split()[0], *(ask(f"{prompt} call {number}") for number in range(calls)))
"""


def suite(project, server, *, cases: str, more: str = "", target: str = "", agent: str = AGENT) -> None:
    project.write("agent.py", agent)
    project.write(
        "a.eval.yaml",
        "target:\n  provider: cli\n  name: agent\n  command: [python3, agent.py]\n  gateway: openai\n"
        f"  base_url: {server.openai}\n  api_key: {KEY}\n{target}{more}tests:\n{cases}",
    )


def case(name: str, calls: int, more: str = "") -> str:
    return f"  - {{id: {name}, input: '{name} {calls}', assert: [contains: {name}]{more}}}\n"


def ran(project, *words: str, **more):
    return project.run("eval", "a.eval.yaml", "--out", "out", *words, **more)


def trace(project, row) -> dict:
    return json.loads((project.path / "out" / row["trace_path"]).read_text())


def files_of(project) -> str:
    return "".join(
        one.read_text(errors="replace")
        for one in (project.path / "out").rglob("*")
        if one.is_file() and one.suffix != ".sqlite"
    )


def test_tokens_are_counted_by_us_and_the_key_stays_with_us(project):
    agent = AGENT + "print('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))\n"
    usage = TokenUsage(input=100, output=7, total=107, cached=20, reasoning=3)
    with ModelServer(Answer("fine", usage=usage), keys=[KEY]) as server:
        suite(project, server, cases=case("a", 3), agent=agent)
        ran(project, status=0)
        assert len(server.calls) == 3
    [row] = project.rows("out")
    assert row["output"].startswith("a fine fine fine")
    assert KEY not in row["output"]
    assert row["token_usage"] == {"input": 300, "output": 21, "total": 321, "cached": 60, "reasoning": 9}
    steps = [one for one in trace(project, row)["steps"] if one["type"] == "usage"]
    assert [one["evidence"] for one in steps] == ["gateway"] * 3
    assert KEY not in files_of(project)
    assert project.summary()["token_usage"]["total"] == 321


def test_a_budget_that_runs_out_in_the_middle_of_a_turn_and_is_resumed(project):
    with PricedServer(0.10) as server:
        suite(project, server, cases=case("a", 2) + case("b", 4), more="run: {workers: 1}\n")
        ran(project, "--budget-usd", "0.45", status=3, says="$0.4000 of the budget of $0.4500 is spent")
        assert server.calls == 4
        assert [row["test_id"] for row in project.rows("out")] == ["a"]
        assert project.rows("out")[0]["cost_usd"] == pytest.approx(0.2)
        assert ran(project, "--resume").status == 3, "the same budget pays for nothing more"
        assert server.calls == 4
        ran(project, "--resume", "--budget-usd", "2", status=0)
        assert server.calls == 8
        assert project.summary()["budget"]["spent_usd"] == pytest.approx(0.8)


def test_parallel_trials_and_calls_spend_no_more_than_the_budget(project):
    with PricedServer(0.10, delay_s=0.05) as server:
        suite(project, server, cases="".join(case(f"c{one}", 8) for one in range(4)), agent=PARALLEL)
        ran(project, "--budget-usd", "1.05", "--workers", "4", status=3)
        assert server.calls == 10
        assert project.summary()["budget"]["spent_usd"] == pytest.approx(1.0)


def test_the_budget_of_a_trial_is_a_limit_of_the_agent(project):
    with PricedServer(0.10) as server:
        cases = case("a", 1) + case("b", 5) + case("c", 5, ", limits: {budget_usd: 0.9}")
        suite(project, server, cases=cases, more="limits: {budget_usd: 0.25}\n")
        ran(project, status=3)
    rows = {row["test_id"]: row for row in project.rows("out")}
    assert {name: row["status"] for name, row in rows.items()} == {"a": "passed", "b": "errored", "c": "passed"}
    assert rows["b"]["error"]["code"] == "agent-limit"
    assert rows["b"]["cost_usd"] == pytest.approx(0.2)
    assert project.summary()["cost_usd"] == pytest.approx(0.1 + 0.2 + 0.5)


def test_a_model_that_is_at_its_limit_is_waited_for(project):
    steps = [Status(429, retry_after=1), Status(429, retry_after=1), "fine"]
    with ModelServer(steps) as server:
        suite(project, server, cases=case("a", 2))
        ran(project, status=0)
        assert len(server.calls) == 4
    [row] = project.rows("out")
    assert row["output"] == "a fine fine"
    assert len([one for one in trace(project, row)["steps"] if one["type"] == "usage"]) == 2


def test_a_refused_key_stops_the_target(project):
    with ModelServer("fine", keys=["another"]) as server:
        suite(project, server, cases=case("a", 1) + case("b", 1), more="run: {workers: 1}\n")
        ran(project, status=3)
        assert len(server.calls) == 1
    assert project.rows("out")[0]["error"]["code"] == "agent-api"


def test_a_killed_run_leaves_no_listener(project):
    agent = AGENT.replace("prompt = sys", "open('base', 'w').write(os.environ['OPENAI_BASE_URL'])\nprompt = sys")
    with ModelServer(Answer("fine", delay_s=30)) as server:
        suite(project, server, cases=case("a", 1), agent=agent)
        process = project.start("eval", "a.eval.yaml", "--out", "out")
        base = project.path / "base"
        until(lambda: base.exists() and base.read_text() and server.calls)
        port = int(base.read_text().split(":")[2].split("/")[0])
        socket.create_connection(("127.0.0.1", port)).close()
        stopped(process, signal.SIGKILL)
    time.sleep(0.2)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_without_a_key_the_gateway_is_off_and_the_run_says_so(project):
    with ModelServer("fine") as server:
        suite(project, server, cases=case("a", 0))
        text = (project.path / "a.eval.yaml").read_text()
        project.write("a.eval.yaml", text.replace(f"  api_key: {KEY}\n", ""))
        ended = ran(project)
    assert ended.status == 0, ended.stderr
    assert ended.stderr.count("no API key is known, so its model calls do not pass the gateway") == 1
    keyed = ran(project, "--out", "other", env={"OPENAI_API_KEY": KEY})
    assert "no API key is known" not in keyed.stderr


@needs("bwrap")
def test_a_confined_agent_calls_its_model_and_sees_no_key(project):
    agent = AGENT + (
        "from pathlib import Path\n"
        "for file in [*Path('/proc').glob('*/environ'), *Path('/proc').glob('*/cmdline')]:\n"
        "    try:\n        print(file.read_bytes())\n    except OSError:\n        pass\n"
    )
    with ModelServer("fine", keys=[KEY]) as server:
        suite(project, server, cases=case("a", 2), more="sandbox: bwrap\nworkspace: {template: ./repo}\n", agent=agent)
        project.write("repo/agent.py", agent)
        ended = ran(project, env={"OPENAI_API_KEY": KEY})
    assert ended.status == 0, ended.stderr
    [row] = project.rows("out")
    assert row["output"].startswith("a fine fine")
    assert "environ" not in row["output"]
    assert "OPENAI_BASE_URL=http://127.0.0.1" in row["output"]
    assert (KEY in row["output"], "[redacted]" in row["output"]) == (False, False)
    assert (row["sandbox"], row["token_usage"]["total"]) == ("bwrap", 30)


def test_an_errored_trial_counts_with_what_it_took_and_so_does_the_run_that_goes_on(project):
    with PricedServer(0.10) as server:
        suite(
            project,
            server,
            cases=case("a", 2),
            agent=AGENT + "sys.exit(1 if server_down else 0)\n".replace("server_down", "os.path.exists('down')"),
        )
        project.write("down", "")
        ran(project, "--budget-usd", "0.55", status=3)
        [row] = project.rows("out")
        assert (row["status"], row["error"]["code"]) == ("errored", "exit-status")
        assert (row["cost_usd"], row["token_usage"]["total"]) == (pytest.approx(0.2), 30)
        assert project.summary()["cost_usd"] == pytest.approx(0.2)
        (project.path / "down").unlink()
        ran(project, "--resume", "--rerun=errored", status=0)
        assert project.summary()["budget"]["spent_usd"] == pytest.approx(0.4)
        assert project.summary()["cost_usd"] == pytest.approx(0.4)


PARALLEL = AGENT.replace("print(prompt", "from concurrent.futures import ThreadPoolExecutor\nprint(prompt").replace(
    '*(ask(f"{prompt} call {number}") for number in range(calls))', "*ThreadPoolExecutor(8).map(ask, [prompt] * calls)"
)


def test_a_target_of_the_same_api_and_an_agent_share_its_limits(project):
    with ModelServer("fine", delay_s=0.1) as server:
        project.write("agent.py", PARALLEL)
        api = f"base_url: '{server.openai}', api_key: {KEY}"
        project.write(
            "a.eval.yaml",
            "targets:\n"
            f"  - {{name: agent, provider: cli, command: [python3, agent.py], gateway: openai, {api}}}\n"
            f"  - {{name: model, provider: openai, model: m, {api}}}\n"
            "tests:\n  - {id: a, input: a 8, assert: [contains: fine]}\n  - {id: b, input: b 8, assert: [contains: fine]}\n",
        )
        ran(project, "--workers", "3", status=0)
        assert (server.most_at_once, len(server.calls)) == (3, 18)
