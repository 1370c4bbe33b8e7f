"""Traces in a terminal."""

import json
from dataclasses import replace

from agentv.extensions.agents.commands.trace import TraceOptions, figures_json, render_figures, render_trace
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.stats.samples.distribution import RunFigures, distribution_of
from doubles.traces import WORK

WIDE = TraceOptions(200)

SHOWN = """\
refund on claude
claude 2.1, from acp, 4 tool calls, 1 error, 40 tokens, $0.7500, 0.2 s, ended: end_turn
+0.0 s                               system: be kind
+0.0 s                               user: mend it
+0.0 s  0.1 s  10 in, 5 out, $0.2500  model m-1
+0.1 s                               assistant: I look <b> (thought: hm)
+0.1 s  0.0 s                        read [Read]({"path": "a.py"}) completed: x = 1
+0.1 s  0.1 s                        subagent [Task]({"prompt": "test"}) completed: passed
+0.1 s  0.1 s                            shell [Bash]({"command": "pytest"}) failed: exit 1
+0.2 s                               shop.refund [mcp__shop__refund]({"id": 7}) denied
+0.2 s                               permission for shop.refund denied: policy
+0.2 s  0.0 s  20 in, 5 out, $0.5000  model m-1
+0.2 s                               assistant: done"""


def test_a_trace_is_a_tree_with_times_tokens_cost_and_errors():
    shown = render_trace("refund on claude", WORK, WIDE).split("\n")
    assert [line.split() for line in shown] == [line.split() for line in SHOWN.split("\n")]
    assert shown[8].index("shell") == shown[7].index("subagent") + 4


def test_hostile_text_steers_no_terminal():
    evil = "\x1b[2J\u202e\x00\r\nforged: line"
    steps = (
        MessageStep("assistant", evil, evil),
        ToolCallStep(evil, {evil: evil}, evil, result=evil, error=evil),
        UsageStep(evil, error=evil),
        PermissionStep(evil, False, evil),
    )
    trace = Trace(steps, source=evil, agent=evil, agent_version=evil, stop_reason=evil, partial=evil)
    for options in (WIDE, replace(WIDE, full=True)):
        shown = render_trace(evil, trace, options)
        assert not set(shown) & {"\x1b", "\u202e", "\x00", "\r"}
    assert len(render_trace(evil, trace, WIDE).split("\n")) == 3 + len(steps)


def test_long_traces_are_shortened_unless_all_is_asked_for():
    trace = Trace(tuple(MessageStep("assistant", "x" * 5000) for _ in range(600)))
    shown = render_trace("a", trace, WIDE)
    assert shown.endswith("100 more steps; --full shows them")
    assert max(map(len, shown.split("\n"))) <= 200
    assert "x" * 5000 in render_trace("a", trace, replace(WIDE, full=True))


MEASURED = {"score": [0.0, 1.0], "duration_ms": [1000.0], "cost_usd": [], "tokens": [1500.0], "tool_calls": []}
FIGURES = RunFigures(3, {name: distribution_of(of) if of else None for name, of in MEASURED.items()}, (), 1)


def test_figures_are_a_table():
    assert [line.split() for line in render_figures(FIGURES, 200).split("\n")] == [
        ["3", "trials"],
        ["n", "mean", "P50", "P90", "P95", "P99"],
        ["score", "2", "0.500", "0.500", "0.900", "0.950", "0.990"],
        ["time", "1", *["1.0", "s"] * 5],
        ["cost", "0"],
        ["tokens", "1", *["1,500"] * 5],
        ["tool", "calls", "0"],
        ["1", "trace", "partial:", "tool", "calls", "not", "counted"],
    ]
    told = json.loads(figures_json(FIGURES))
    assert (told["trials"], told["partial_traces"], told["measures"]["cost_usd"]) == (3, 1, None)
    assert told["measures"]["score"] == {"n": 2, "mean": 0.5, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
