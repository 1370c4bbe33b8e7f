"""`agentv import`, `agentv trace` and `results export --format`, as a person runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.extensions.agents.traces.acp import read_acp
from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of
from agentv.store.files.traces import read
from doubles.traces import WORK

SUITE = """
name: support
target: {provider: replay, fixtures: ../recorded.jsonl}
tests:
  - id: refund
    input: mend it
    assert:
      - {type: "trajectory:tool-used", value: [Bash, shop.refund]}
      - {type: tool-trajectory, mode: in_order, expected: [{tool: read}, {tool: mcp__shop__refund}]}
      - {type: execution-metrics, max_tool_calls: 4}
"""


@pytest.fixture
def there(project):
    project.write("one.atif.json", json.dumps(atif_of(WORK)))
    project.write("refund.otlp.json", json.dumps(otlp_of([(WORK, TraceOrigin("k"))])))
    project.write("evals/a.eval.yaml", SUITE)
    return project


@pytest.mark.parametrize(("form", "file"), [("atif", "one.atif.json"), ("otlp", "refund.otlp.json")])
def test_a_session_of_another_program_is_graded_without_running_anything(there, form, file):
    done = there.run("import", form, file, "--test-id", "refund", "-o", "recorded.jsonl")
    assert (done.status, done.stderr) == (0, "wrote recorded.jsonl: 1 session\n")
    graded = there.run("eval", "evals")
    assert (graded.status, "1 passed" in graded.stdout + graded.stderr) == (0, True)


def test_the_traces_of_a_run_are_shown_and_exported(there):
    there.run("import", "atif", "one.atif.json", "--test-id", "refund", "-o", "recorded.jsonl")
    there.run("eval", "evals")
    shown = there.run("trace", "show", "last", "refund")
    assert (shown.status, shown.stdout.startswith("refund on replay\n"), "assistant: done" in shown.stdout) == (
        0,
        True,
        True,
    )
    wrong = there.run("trace", "show", "last", "refnd")
    assert (wrong.status, "did you mean 'refund'?" in wrong.stderr) == (2, True)
    told = json.loads(there.run("trace", "show", "last", "refund", "--json").stdout)
    assert told["version"] == 1
    figures = json.loads(there.run("trace", "stats", "last", "--json").stdout)
    assert (figures["trials"], figures["measures"]["tokens"]["mean"]) == (1, 40)
    exported = there.run("results", "export", "last", "--format", "otlp", "-o", "out.json")
    assert (exported.status, exported.stderr) == (0, "wrote out.json: 1 trace\n")
    again = there.run("import", "otlp", "out.json")
    assert json.loads(again.stdout)["test_id"] == "refund"
    assert there.run("results", "export", "last", "--format", "atif", "-o", "out.csv").status == 2


AGENT = {"prompts": [[
    {"think": "hm"}, {"say": "I look"},
    {"update": {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "mcp__shop__refund", "rawInput": {"id": 7}}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "rawOutput": {"ok": True}}},
    {"ask": {"tool_call_id": "t2", "then": "a.txt"}},
    {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "completed"}},
    {"say": "done"}, {"usage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}},
]]}  # fmt: skip


@pytest.mark.libraries
def test_the_stream_of_an_agent_of_ours_is_imported_as_the_same_trace(project):
    command = [sys.executable, str(Path(__file__).parents[1] / "doubles" / "acp_agent.py"), json.dumps(AGENT)]
    target = {"provider": "acp", "command": command}
    suite = {
        "target": target,
        "workspace": {},
        "sandbox": "none",
        "tests": [{"id": "refund", "input": "mend it", "assert": [{"contains": "done"}]}],
    }
    project.write("a.eval.yaml", json.dumps(suite))
    assert project.run("eval", "a.eval.yaml").status == 0
    (folder,) = project.path.glob(".agentv/results/*/artifacts/*")
    stored, again = read(folder / "trace.json"), read_acp((folder / "acp.jsonl").read_bytes())
    assert again.partial == ""

    def without_times(trace):
        names = ("started_ms", "duration_ms", "reason")
        return [replace(step, **{name: None for name in names if hasattr(step, name)}) for step in trace.steps]

    assert without_times(again) == without_times(stored)
    assert len(again.steps) == 7
    page = project.run("results", "export", "last", "-o", "report.html")
    assert page.status == 0
    content = (project.path / "report.html").read_text()
    assert '"trace":{"path":"artifacts/' in content
    assert '"diff":{"text":"diff --git' in content


def test_a_partial_session_gives_no_verdict_about_calls_also_when_graded_again(there):
    there.write(
        "cut.jsonl", '{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}\n{oops\n'
    )
    imported = there.run("import", "acp", "cut.jsonl", "-o", "recorded.jsonl")
    assert (imported.status, "warning: cut.jsonl is partial: line 2: " in imported.stderr) == (0, True)
    entry = '{type: "not-trajectory:tool-used", value: shell}'
    there.write(
        "evals/a.eval.yaml",
        f"target: {{provider: replay, fixtures: ../recorded.jsonl}}\ntests: [{{id: cut, input: x, assert: [{entry}]}}]\n",
    )
    for arguments in (("eval", "evals"), ("eval", "evals", "--regrade", "last")):
        graded = there.run(*arguments)
        assert (graded.status, "no-data" in graded.stdout + graded.stderr) == (3, True), graded.stdout + graded.stderr
