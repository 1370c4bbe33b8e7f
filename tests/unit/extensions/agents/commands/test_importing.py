"""Sessions of other programs as rows."""

import json
from contextlib import closing

import pytest
from msgspec.structs import replace

from agentv.errors import UsageError
from agentv.extensions.agents.commands.importing import ImportedSession, import_files
from agentv.extensions.agents.traces.atif import atif_of
from agentv.extensions.agents.traces.otlp_export import TraceOrigin, otlp_of
from agentv.store.files.traces import write
from agentv.targets.replay import Recordings
from doubles.traces import WORK

ACP = b'{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}\n'


def answered(file, case):
    with closing(Recordings.open(str(file))) as recordings:
        return recordings.answer(case, 1)


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "session.jsonl").write_bytes(ACP)
    (tmp_path / "two.otlp.json").write_text(
        json.dumps(otlp_of([(WORK, TraceOrigin("a", 0.0, {"agentv.case.id": "refund"})), (WORK, TraceOrigin("b"))]))
    )
    (tmp_path / "one.atif.json").write_text(json.dumps(atif_of(WORK)))
    (tmp_path / "two.jsonl").write_text(
        "".join(json.dumps({**atif_of(WORK), "session_id": name}) + "\n" for name in "xy")
    )
    return tmp_path


@pytest.mark.parametrize(
    ("form", "file", "ids"),
    [("acp", "session.jsonl", ["session"]), ("otlp", "two.otlp.json", ["refund", "session-1"]), ("atif", "one.atif.json", ["one"]), ("atif", "two.jsonl", ["x", "y"])],
)  # fmt: skip
def test_sessions_are_named_by_their_case_their_file_or_themselves(there, form, file, ids):
    assert [session.test_id for session in import_files(form, [file])] == ids


def test_a_row_is_replayed_with_its_trace(there):
    (session,) = import_files("atif", ["one.atif.json"], "refund")
    (there / "recorded.jsonl").write_text(session.row() + "\n")
    answer = answered(there / "recorded.jsonl", "refund")
    assert (answer.output, answer.token_usage.total, answer.cost_usd) == ("done", 40, 0.75)
    assert answer.trace.tool_calls == session.trace.tool_calls
    assert answer.trace.native == b""


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        (replace(WORK, stop_reason="error"), "the session ended without an answer: error"),
        (replace(WORK, stop_reason="max_tokens"), "the session ended without an answer: max_tokens"),
        (replace(WORK, partial="the session ends before the agent has answered"), "before the agent has answered"),
    ],
)
def test_a_session_without_an_answer_is_an_error_when_it_is_replayed(there, trace, says):
    (there / "recorded.jsonl").write_text(ImportedSession("refund", trace, "f").row() + "\n")
    answer = answered(there / "recorded.jsonl", "refund")
    assert says in answer.message


def test_a_recording_whose_trace_ended_in_an_error_is_no_answer(there):
    write(replace(WORK, error="the bank is closed"), there / "a")
    row = {"test_id": "refund", "output": "I look it up.", "trace_path": "a/trace.json"}
    (there / "r.jsonl").write_text(json.dumps(row) + "\n")
    failure = answered(there / "r.jsonl", "refund")
    assert (failure.code, "the session ended in an error: the bank is closed" in failure.message) == ("no-recording", True)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"trace_path": "../x/trace.json"}, "'../x/trace.json' is outside the directory of the recording"),
        ({"trace_path": "gone/trace.json"}, "cannot read trace.json: No such file or directory"),
        ({"trace": 7}, "trace:1: Expected `object`, got `int`"),
        ({"trace": {"version": 1, "steps": [{"type": "x"}]}}, "trace:1: Invalid value 'x' - at `$.type`"),
    ],
)
def test_a_recording_with_a_wrong_trace_is_no_answer(there, row, said):
    (there / "r.jsonl").write_text(json.dumps({"test_id": "a", "output": "x", **row}) + "\n")
    failure = answered(there / "r.jsonl", "a")
    assert (failure.code, failure.message) == ("bad-trace", f"r.jsonl, row of 'a': {said}")


@pytest.mark.parametrize(
    ("form", "files", "said", "hint"),
    [
        ("acp", ["sesion.jsonl"], "cannot read sesion.jsonl: No such file or directory", "did you mean 'session.jsonl'?"),
        ("acp", ["."], "it is a directory", None),
        ("otlp", ["session.jsonl"], "no spans of OTLP", "it reads as acp: agentv import acp session.jsonl"),
        ("atif", ["two.otlp.json"], "'schema_version' must be", "it reads as otlp: agentv import otlp two.otlp.json"),
        ("acp", ["session.jsonl", "./session.jsonl"], "two sessions have the id 'session'", "import them one by one, with --test-id"),
    ],
)  # fmt: skip
def test_wrong_files(there, form, files, said, hint):
    with pytest.raises(UsageError, match=said) as caught:
        import_files(form, files)
    assert caught.value.hint == hint


def test_an_id_for_several_sessions_is_refused(there):
    with pytest.raises(UsageError, match="--test-id names one session, and there are 2"):
        import_files("otlp", ["two.otlp.json"], "x")
