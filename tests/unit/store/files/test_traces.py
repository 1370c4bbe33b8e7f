"""Writing and reading trace.json."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, PermissionStep, ToolCallStep, Trace, UsageStep
from agentv.model.values.trace_document import document, parse
from agentv.model.values.usage import TokenUsage
from agentv.store.files.traces import read, write

TRACE = Trace(
    steps=(
        MessageStep("user", "Mend it"),
        UsageStep("m-1", TokenUsage(10, 2, 12), 0.01, 5.0, 20.5),
        MessageStep("assistant", "I look", "hm", 6.0),
        ToolCallStep(
            "shell", {"command": ["ls", 1, None]}, "Bash", "c1", {"out": ["a"]}, None, "completed", 7.0, 2.5, "p"
        ),
        ToolCallStep("shop.refund", {}, "mcp__shop__refund", error="no", status="failed", evidence="tools"),
        PermissionStep("edit", False, "policy", 8.0),
    ),
    source="acp",
    agent="pi",
    agent_version="1.2",
    session_id="s",
    stop_reason="end_turn",
    duration_ms=12.25,
    metadata={"modes": ["a"]},
    native=b'{"jsonrpc": "2.0"}\n\xff',
    native_name="acp.jsonl",
    partial="the stream ends early",
)


def test_a_trace_is_read_back_exactly(tmp_path):
    files = write(TRACE, tmp_path / "artifacts" / "one")
    assert read(files.trace_path, native=True) == TRACE
    assert read(files.trace_path) == replace(TRACE, native=b"")
    assert (tmp_path / "artifacts" / "one" / "acp.jsonl").read_bytes() == TRACE.native
    assert sorted(path.name for path in (tmp_path / "artifacts" / "one").iterdir()) == ["acp.jsonl", "trace.json"]


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(arguments=st.dictionaries(st.text(st.characters(codec="utf-8")), plain, max_size=3), result=plain)
@settings(max_examples=60)
def test_arguments_and_results_of_any_form_are_read_back(arguments, result):
    trace = Trace((ToolCallStep("t", arguments, result=result),), metadata=arguments)
    assert parse(document(trace)) == trace


def test_what_json_cannot_say_is_replaced():
    deep: list = []
    for _ in range(500):
        deep = [deep]
    call = ToolCallStep("t\ud800", {"a": float("inf"), "b": 10**400, "c": deep, "d": object()}, result="\udfff")
    step = parse(document(Trace((call,)))).tool_calls[0]
    assert (step.name, step.result) == ("t\ufffd", "\ufffd")
    assert (step.arguments["a"], step.arguments["b"], step.arguments["d"]) == (None, None, "<object>")
    assert "nested too deeply" in json.dumps(step.arguments["c"])


STEP = b'{"version": 1,\n"steps": [\n{"type": "message", "role": "user", "text": "x"},\n%s\n]}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "trace.json:1: "),
        (b'{"version": 1,\n"steps": [', "trace.json:2: Input data was truncated"),
        (document(TRACE)[:400], "Input data was truncated"),
        (b'{\n"version": "1", "steps": []}', "trace.json:2: Expected `int`"),
        (b'{"version": 1,\n\n"metadata": 3, "steps": []}', "trace.json:3: Expected `object`"),
        (b'{"version": 2, "steps": []}', "trace.json:1: its version is 2; this agentv reads up to 1"),
        (b'{"version": 1, "native": "../../x", "steps": []}', "must be the name of a file beside it"),
        (b'{"version": 1,\n"x": nan, "steps": []}', "trace.json:2: invalid character"),
        (STEP % b'{"type": "tool_call"}', "trace.json:4: Object missing required field `name`"),
        (STEP % b'{"type": "tool_call", "name": "x", "status": "well"}', "trace.json:4: Invalid enum value 'well'"),
        (STEP % b'{"type": "usage", "cost_usd": 1e999}', "trace.json:4: Number out of range"),
        (STEP % b'{"type": "usage", "tokens": {"input": -1}}', "trace.json:4: Expected `int` >= 0"),
        (STEP % (b'{"type": "tool_call", "name": "x", "result": ' + b"[" * 150 + b"]" * 150 + b"}"), "trace.json:4: it is nested"),
        (STEP % (b"[" * 100_000), "nested more than"),
        (STEP % b'{"type": "message", "role": "user", "text": "\\ud800"}', "trace.json:"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_a_failure_with_its_line(content, said):
    found = parse(content)
    assert found.code == "bad-trace"
    assert said in found.message


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path):
    missing = read(tmp_path / "trace.json")
    assert missing == Failure("bad-trace", "cannot read trace.json: No such file or directory")
    write(TRACE, tmp_path)
    (tmp_path / "acp.jsonl").unlink()
    shown = read(tmp_path / "trace.json", native=True)
    assert shown == Failure("bad-trace", "cannot read acp.jsonl: No such file or directory")
    assert isinstance(read(tmp_path / "trace.json"), Trace)


@pytest.mark.parametrize(
    ("name", "written"), [("../../evil.jsonl", "evil.jsonl"), ("trace.json", "native-trace.json"), ("", "native-")]
)
def test_a_native_stream_stays_in_the_directory(tmp_path, name, written):
    files = write(Trace(native=b"x", native_name=name), tmp_path / "a" / "b")
    assert files.native_path == str(tmp_path / "a" / "b" / written)
    assert read(files.trace_path, native=True).native == b"x"


def test_only_the_owner_can_read_it_and_no_link_is_followed(tmp_path):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "trace.json").symlink_to(tmp_path / "outside")
    files = write(TRACE, tmp_path / "run")
    assert (tmp_path / "outside").read_text() == "kept"
    for path in (files.trace_path, files.native_path):
        assert Path(path).stat().st_mode & 0o777 == 0o600
