"""Replies as real servers send them, valid and invalid."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import STRUCTURED, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.targets.openai_api.replies import batches, chat_answer, response_answer, vectors_of, with_calls_as_output

SAID = {"role": "assistant", "content": "Hi"}


def chat(message=SAID, finish="stop", **others):
    return chat_answer({"choices": [{"message": message, "finish_reason": finish}], **others})


def test_text_in_parts_is_joined():
    found = chat({"content": [{"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "text", "text": "b"}]})
    assert found.output == "ab"


def test_calls_of_tools_in_the_form_before_2024_are_calls():
    found = chat({"content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}, "function_call")
    assert found.messages == (Message("assistant", "", tool_calls=(ToolCall("f", {"a": 1}),)),)
    assert (found.output, found.finish_reason) == (None, "function_call")


def test_text_beside_a_call_is_the_answer():
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "not JSON"}}]
    found = chat({"content": "Let me see.", "tool_calls": calls}, "tool_calls")
    assert found.output == "Let me see."
    assert found.messages[0].tool_calls == (ToolCall("f", {"text": "not JSON"}, "1"),)


@pytest.mark.parametrize(
    ("message", "output"),
    [
        ({"content": None, "tool_calls": [{"id": "1"}]}, '[{"id":"1"}]'),
        ({"content": "", "function_call": {"name": "f"}}, '{"name":"f"}'),
        ({"content": "é", "tool_calls": [{"id": "1"}]}, '{"content":"é","tool_calls":[{"id":"1"}]}'),
    ],
)
def test_calls_can_be_the_output_as_the_api_gives_them(message, output):
    found = with_calls_as_output(TargetResponse("before"), {"choices": [{"message": message}]})
    assert (found.output, found.metadata) == (output, {STRUCTURED: True})


@pytest.mark.parametrize("message", [{"content": "a"}, {"content": "a", "tool_calls": []}])
def test_an_answer_without_calls_stays_its_text(message):
    found = TargetResponse("a")
    assert with_calls_as_output(found, {"choices": [{"message": message}]}) is found


def test_half_an_answer_that_the_filter_cut_is_refused():
    found = chat({"content": "Half of"}, "content_filter")
    assert (found.code, found.retryable) == ("refused", False)
    assert chat({"content": "Half of"}, "length").output == "Half of"


@pytest.mark.parametrize(
    ("finish", "others"),
    [
        ("error", {"error": {"code": 502, "message": "upstream is gone"}}),
        ("stop", {"error": {"message": "upstream is gone"}}),
        ("stop", {"error": "upstream is gone"}),
    ],
)
def test_an_error_beside_an_answer_is_no_answer(finish, others):
    found = chat({"content": "Half of"}, finish, **others)
    assert (found.code, found.retryable) == ("bad-answer", True)
    assert "upstream is gone" in found.message


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
def test_an_answer_that_the_server_broke_off_is_none(finish):
    found = chat({"content": "Half of"}, finish)
    assert (found.code, found.retryable) == ("bad-answer", True)
    assert finish in found.message


@pytest.mark.parametrize("finish", ["stop", None])
def test_an_error_in_a_choice_is_no_answer(finish):
    choice = {"message": {"content": "Half of"}, "finish_reason": finish, "error": {"message": "upstream is gone"}}
    found = chat_answer({"choices": [choice]})
    assert (found.code, found.message) == ("bad-answer", "the answer was cut off: upstream is gone")


@pytest.mark.parametrize("calls", [[None], [{"id": "1"}], {"name": "f"}])
def test_a_call_that_names_no_tool_is_a_bad_answer(calls):
    assert chat({"content": None, "tool_calls": calls}, "tool_calls").code == "bad-answer"


@pytest.mark.parametrize(
    ("body", "code", "retryable", "status"),
    [
        ({"error": {"code": 429, "message": "slow"}}, "http-status", True, 429),
        ({"error": {"code": 402, "message": "no credits"}, "choices": None}, "http-status", False, 402),
        ({"error": {"code": "server_error", "message": "oops"}}, "target-error", True, None),
        ({"error": {"code": "invalid", "message": "oops"}}, "target-error", False, None),
        ({"error": "oops"}, "target-error", False, None),
        ({"choices": []}, "bad-answer", True, None),
        ({"choices": ["Hi"]}, "bad-answer", True, None),
        ({}, "bad-answer", True, None),
    ],
)
def test_a_reply_without_an_answer_is_a_failure(body, code, retryable, status):
    found = chat_answer(body)
    assert (found.code, found.retryable, found.status) == (code, retryable, status)


def test_a_response_that_failed_says_why():
    found = response_answer({"status": "failed", "output": [], "error": {"code": "server_error", "message": "oops"}})
    assert (found.code, found.message, found.retryable) == ("target-error", "oops", True)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ({"status": "cancelled"}, "its status is 'cancelled'"),
        ({"status": "in_progress"}, "its status is 'in_progress'"),
        ({"status": "queued", "error": None}, "its status is 'queued'"),
        ({"status": "completed", "error": {"message": "lost it"}}, "lost it"),
        ({"error": "lost it"}, "lost it"),
    ],
)
def test_a_response_that_did_not_end_is_no_answer_however_much_of_it_there_is(end, told):
    text = {"type": "message", "content": [{"type": "output_text", "text": "Half of"}]}
    found = response_answer({"output": [text], **end})
    assert (found.code, found.retryable, told in found.message) == ("bad-answer", True, True)


def test_a_response_is_the_text_of_all_its_messages_and_nothing_of_its_thoughts():
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}]},
        {"type": "web_search_call", "content": [{"type": "output_text", "text": "no"}]},
        "junk",
    ]
    found = response_answer(
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": output}
    )
    assert (found.output, found.finish_reason) == ("ab", "max_output_tokens")


def test_a_response_of_the_filter_is_refused():
    body = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}
    assert response_answer(body).code == "refused"
    text = {"type": "message", "content": [{"type": "output_text", "text": "Half of"}]}
    assert response_answer({**body, "output": [text]}).code == "refused"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, TokenUsage(3, 4, 7)),
        ({"prompt_tokens": 3, "completion_tokens": -4, "total_tokens": True}, TokenUsage(3, None, 3)),
        ({"prompt_tokens": 10**400}, None),
        ({"prompt_tokens": 3, "prompt_tokens_details": None}, TokenUsage(3, None, 3)),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_tokens_are_counted_as_far_as_the_server_tells_them(usage, tokens):
    assert chat(usage=usage).token_usage == tokens


KEYS = ["choices", "message", "content", "tool_calls", "function", "name", "arguments", "refusal", "error", "code"]
KEYS += ["output", "type", "status", "usage", "prompt_tokens", "data", "index", "embedding", "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["choices", "output", "error", "usage", "data", "status"]), JSON))
def test_no_reply_of_any_shape_raises(body):
    assert isinstance(chat_answer(body), TargetResponse | Failure)
    assert isinstance(response_answer(body), TargetResponse | Failure)
    assert isinstance(vectors_of(body, 1), Embeddings | Failure)


# Vectors.


def test_packed_vectors_are_little_endian_floats():
    packed = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()
    assert vectors_of({"data": [{"index": 0, "embedding": packed}]}, 1).vectors == ((0.5, -2.0),)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"index": 0, "embedding": []}],
        [{"index": 0, "embedding": ["a"]}],
        [{"index": 0, "embedding": "!!"}],
        [{"index": 0, "embedding": "AAA="}],
        [{"index": 7, "embedding": [1]}],
        [{"index": 0, "embedding": [10**400]}],
        [{"index": 0, "embedding": [float("nan")]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}],
    ],
)
def test_vectors_that_cannot_be_read_are_a_bad_answer(rows):
    assert vectors_of({"data": rows}, 1).code == "bad-answer"


def test_texts_go_in_portions_that_a_call_takes():
    def sizes(texts, *, packed=True):
        return [len(batch) for batch in batches(texts, packed=packed)]

    assert sizes(["a"] * 2500) == [1024, 1024, 452]
    assert sizes(["a"] * 150, packed=False) == [128, 22]
    assert sizes(["a" * 200_000] * 3) == [1, 1, 1]
    assert sizes(["a", "b" * 400_000, "c"]) == [1, 1, 1]
    assert sizes([]) == []
