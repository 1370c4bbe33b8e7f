import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText, context_json, read_context
from agentv.model.values.usage import TokenUsage
from agentv.targets.http.answers import LIMIT, checked, decoded, from_object, from_text, from_value, is_answer

MESSAGES = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "first"},
    {"role": "assistant", "content": "last", "tool_calls": [{"tool": "look", "input": {"at": 1}}]},
    {"role": "tool", "content": "seen"},
]


def test_a_cost_of_zero_beside_tokens_is_unknown():
    assert from_object({"output": "x", "cost_usd": 0, "token_usage": {"input": 5}}).cost_usd is None
    assert from_object({"output": "x", "cost_usd": 0}).cost_usd == 0.0


def test_text_that_utf_8_cannot_say_is_refused():
    assert from_text("ab\ud83d") == Failure("not-utf-8", "the answer contains half of a surrogate pair (character 3)")
    assert from_object(json.loads('{"output": "\\ud83d"}')).code == "not-utf-8"
    assert decoded(b"ab\xff") == Failure("not-utf-8", "the answer is not UTF-8 text (byte 3)")


def test_everything_an_answer_object_can_say():
    row = {
        "output": "yes",
        "token_usage": {"input": 1, "output": 2},
        "cost_usd": 0.5,
        "duration_ms": 7,
        "finish_reason": "stop",
        "metadata": {"a": 1},
        "context": ["a", {"page_content": "b", "metadata": {"source": "b.md"}, "score": 1}],
        "sources": "ignored",
        "cached": False,
    }
    expected = TargetResponse("yes", (), TokenUsage(1, 2, 3), 0.5, 7.0, "stop", {"a": 1}, ignored=("sources",))
    expected = replace(expected, context=(RetrievedText("a"), RetrievedText("b", "b.md", 1.0, {"source": "b.md"})))
    assert from_object(row) == expected
    shown = from_object({"text": "yes"} | dict.fromkeys(["token_usage", "cost_usd", "metadata"]))
    assert shown == TargetResponse("yes")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"ouput": "x", "cost_usd": 1}, "the answer has no 'output' or 'text'; it has 'ouput', 'cost_usd'"),
        ({"output": 5}, "'output' must be text or messages, found int"),
        ({"output": {"a": 1}}, "'output' must be text or messages, found dict"),
        ({"output": ["a"]}, "'output' must contain messages, found str"),
        ({"output": [{"role": "robot", "content": ""}]}, "a message needs one of the roles"),
        ({"output": "x", "cost_usd": -1}, "'cost_usd' must be a number of at least 0, found -1"),
        ({"output": "x", "cost_usd": float("nan")}, "'cost_usd' must be a number"),
        ({"output": "x", "duration_ms": True}, "'duration_ms' must be a number"),
        ({"output": "x", "token_usage": {"input": "5"}}, "token_usage.input must be a whole number"),
        ({"output": "x", "metadata": []}, "'metadata' must be an object, found list"),
        ({"output": "x", "metadata": {"on": date(2026, 1, 1)}}, "'metadata.on' must be JSON data, found date"),
        ({"output": "x", "context": 5}, "'context' must be text, or an object with 'text', found int"),
        ({"output": "x", "context": ["a", None]}, "'context[1]' must be text, or an object with 'text', found null"),
        ({"output": "x", "context": [{"body": "a"}]}, "'context[0]' has no text under 'text', 'content' or"),
        ({"output": "x", "context": [{"text": "a", "score": "1"}]}, "'context[0].score' must be a number, found '1'"),
        ({"output": "x", "context": [{"text": "a", "metadata": 1}]}, "'context[0].metadata' must be an object"),
    ],
)
def test_what_is_wrong_with_an_answer_object_is_named(row, says):
    found = from_object(row)
    assert found.code == "bad-answer"
    assert says in found.message
    assert len(found.message) <= 300


def test_an_answer_that_says_it_is_an_error_is_one():
    assert from_object({"error": "quota"}) == Failure("target-error", "quota")
    assert from_object({"output": "half", "error": {"code": 5}}).code == "target-error"
    assert from_object({"output": "whole", "error": None}) == TargetResponse("whole")


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ({"output": "x"}, True),
        ({"output": None}, True),
        ({"text": "x"}, True),
        ({"output": MESSAGES}, True),
        ({"output": ["a"]}, True),
        ({"text": 5}, True),
        ({"answer": "x"}, False),
        ([{"role": "user"}], False),
        (None, False),
    ],
)
def test_not_every_json_is_an_answer_object(value, is_one):
    assert is_answer(value) is is_one


@pytest.mark.parametrize(
    ("value", "output"),
    [("x", "x"), (None, None), (5, "5"), (True, "true"), ({"ä": [1]}, '{"ä": [1]}'), ([], "[]"), (MESSAGES, "last")],
)
def test_any_value_of_a_reply_can_be_the_answer(value, output):
    assert from_value(value).output == output


def test_a_response_made_by_users_code_is_looked_at():
    sound = TargetResponse("x", (Message("assistant", "x"),), TokenUsage(1), 1.5, 2)
    assert checked(sound) is sound
    assert checked(TargetResponse(None, (Message("assistant", "said"),))).output == "said"
    assert checked(TargetResponse(None)) == TargetResponse(None)
    assert checked(TargetResponse("x", context=["a"])).context == (RetrievedText("a"),)


def test_a_context_has_the_forms_that_retrievers_give():
    class Document:  # like LangChain's
        page_content, metadata = "c", {"source": "c.md"}

    items = ["a", {"content": "b", "id": 7, "score": 0.5, "page": 2}, Document(), RetrievedText("d", score=1.0)]
    found = from_object({"output": "x", "context": items}).context
    expected = (
        RetrievedText("a"),
        RetrievedText("b", "7", 0.5, {"page": 2}),
        RetrievedText("c", "c.md", None, {"source": "c.md"}),
        RetrievedText("d", score=1.0),
    )
    assert found == expected
    assert read_context(context_json(found)) == expected
    assert from_object({"output": "x", "context": "a"}).context == expected[:1]
    assert from_object({"output": "x", "context": None}).context == ()


def test_what_is_kept_beside_an_answer_is_bounded_too():
    halves = ["a" * (LIMIT // 2), "b" * (LIMIT // 2)]
    assert isinstance(from_object({"output": "x", "context": halves}), TargetResponse)
    assert from_object({"output": "x", "context": [*halves, "c"]}).code == "output-too-large"
    assert from_object({"output": "x", "metadata": {"a": halves}}).code == "output-too-large"


@pytest.mark.parametrize(
    ("response", "says"),
    [
        (TargetResponse(5), "output must not be int"),
        (TargetResponse("x", messages=[{"role": "user"}]), "messages must contain Message objects"),
        (TargetResponse("x", token_usage={"input": 1}), "token_usage must not be dict"),
        (TargetResponse("x", cost_usd="1"), "cost_usd must not be str"),
        (TargetResponse("x", cost_usd=float("inf")), "cost_usd must be a number of at least 0, found inf"),
        (TargetResponse("x", duration_ms=-1), "duration_ms must be a number of at least 0, found -1"),
        (TargetResponse("x", metadata=None), "metadata must not be null"),
        (TargetResponse("x", context="a"), "context must not be str"),
    ],
)
def test_what_is_wrong_with_it_is_named(response, says):
    assert checked(response) == Failure("bad-answer", f"TargetResponse.{says}")


texts = st.text(alphabet="aZ0 ü€\n\ud83d", max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts | st.sampled_from(["role", "content"]), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["output", "text", "error", "token_usage", "cost_usd", "metadata"]), json_values)
)
def test_no_object_whatever_is_in_it_makes_it_raise(row):
    found = from_object(row)
    if isinstance(found, TargetResponse):
        assert checked(found) == found
        assert not row.get("error")
