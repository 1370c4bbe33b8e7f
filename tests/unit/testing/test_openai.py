"""OpenAI's protocol, through its own SDK."""

import json
from functools import partial

import openai
import pytest

from agentv.testing import Answer, ContentFilter, EmptyChoices, Status, TokenUsage, ToolCall

USAGE = TokenUsage(input=100, output=30, total=130, cached=40, reasoning=20)
WEATHER = ToolCall("weather", {"city": "Bern", "days": 2})
HI = [
    {"role": "system", "content": "Be kind"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Hi"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ],
    },
]


@pytest.fixture
def ask(opened):
    """Return a client for a server with given replies."""
    return partial(opened, lambda server: openai.OpenAI(base_url=server.openai, api_key="the-key", max_retries=0))


def strict(model):
    """Validate a response with the SDK's own model in strict mode; the SDK itself does not validate."""
    return type(model).model_validate_json(model.model_dump_json())


def test_a_text_with_its_usage_and_what_was_asked(ask):
    server, client = ask(Answer("hello there", usage=USAGE, headers={"x-request-id": "r1"}))
    got = client.chat.completions.create(model="m", messages=HI, seed=3, response_format={"type": "json_object"})
    strict(got)
    assert (got.choices[0].message.content, got.choices[0].finish_reason, got.model) == ("hello there", "stop", "m")
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (100, 30, 130)
    assert got.usage.prompt_tokens_details.cached_tokens == 40
    assert got.usage.completion_tokens_details.reasoning_tokens == 20
    assert got._request_id == "r1"
    (call,) = server.calls
    shown = (call.protocol, call.operation, call.path, call.model)
    assert shown == ("openai", "chat", "/openai/v1/chat/completions", "m")
    assert (call.text, call.prompt) == ("Be kind\nHi", "Hi")
    assert (call.body["seed"], call.body["response_format"]) == (3, {"type": "json_object"})
    assert call.headers["authorization"] == "Bearer the-key"
    assert "the-key" not in repr(call)


def test_tool_calls(ask):
    _, client = ask(Answer(tool_calls=(WEATHER, ToolCall("stop", {}, "call_x"))))
    got = client.chat.completions.create(model="m", messages=HI)
    strict(got)
    first, second = got.choices[0].message.tool_calls
    assert (first.function.name, json.loads(first.function.arguments)) == ("weather", {"city": "Bern", "days": 2})
    assert second.id == "call_x"
    assert first.id
    assert (got.choices[0].message.content, got.choices[0].finish_reason) == (None, "tool_calls")


def test_no_choices_and_no_usage(ask):
    _, client = ask([EmptyChoices(), Answer("a", usage=None, finish_reason="length")])
    assert client.chat.completions.create(model="m", messages=HI).choices == []
    second = client.chat.completions.create(model="m", messages=HI)
    assert (second.usage, second.choices[0].finish_reason) == (None, "length")


def test_a_stream_brings_the_same_in_pieces(ask):
    _, client = ask(Answer("one two  three", tool_calls=(WEATHER,), usage=USAGE))
    with client.chat.completions.stream(model="m", messages=HI, stream_options={"include_usage": True}) as stream:
        deltas = [event.chunk for event in stream if event.type == "chunk"]
        got = stream.get_final_completion()
    assert len(deltas) > 5
    for delta in deltas:
        strict(delta)
    assert got.choices[0].message.content == "one two  three"
    assert json.loads(got.choices[0].message.tool_calls[0].function.arguments) == {"city": "Bern", "days": 2}
    assert (got.choices[0].finish_reason, got.usage.prompt_tokens_details.cached_tokens) == ("tool_calls", 40)


def test_a_streams_usage_is_left_out_unless_it_is_asked_for(ask):
    _, client = ask("one two")
    chunks = list(client.chat.completions.create(model="m", messages=HI, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


def test_responses(ask):
    server, client = ask(Answer("look", tool_calls=(WEATHER,), usage=USAGE))
    got = client.responses.create(
        model="m", instructions="Be kind", input=[{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
    )
    strict(got)
    assert (got.output_text, got.status) == ("look", "completed")
    assert [item.type for item in got.output] == ["reasoning", "message", "function_call"]
    assert json.loads(got.output[2].arguments) == {"city": "Bern", "days": 2}
    assert (got.usage.input_tokens_details.cached_tokens, got.usage.output_tokens_details.reasoning_tokens) == (40, 20)
    (call,) = server.calls
    assert (call.operation, call.text, call.prompt) == ("responses", "Be kind\nHi", "Hi")


@pytest.mark.parametrize(
    ("step", "status", "reason"),
    [
        (Answer("half", finish_reason="max_output_tokens"), "incomplete", "max_output_tokens"),
        (ContentFilter(), "incomplete", "content_filter"),
        (EmptyChoices(), "completed", None),
    ],
)
def test_responses_that_are_not_whole(ask, step, status, reason):
    _, client = ask(step)
    got = client.responses.create(model="m", input="Hi")
    strict(got)
    assert (got.status, got.incomplete_details and got.incomplete_details.reason) == (status, reason)
    assert got.output_text == ("half" if isinstance(step, Answer) else "")


@pytest.mark.parametrize(
    "answer", [Answer("one two", tool_calls=(WEATHER,), usage=USAGE), Answer(refusal="I will not.")]
)
def test_a_response_streams(ask, answer):
    _, client = ask(answer)
    with client.responses.stream(model="m", input="Hi") as stream:
        events = list(stream)
        got = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    said = "".join(
        event.delta for event in events if event.type in ("response.output_text.delta", "response.refusal.delta")
    )
    assert said == (answer.refusal or "one two")
    assert got.output_text == ("" if answer.refusal else "one two")


def test_vectors_that_are_given(ask):
    _, client = ask([Answer(vectors=((0.0, 1.0),)), EmptyChoices()])
    assert client.embeddings.create(model="e", input=["a", "b"]).data[0].embedding == [0.0, 1.0]
    with pytest.raises(ValueError, match="No embedding data"):
        client.embeddings.create(model="e", input="a")


def test_lists_of_models_take_no_step(ask):
    server, client = ask(["first", "second"])
    (listed,) = client.models.list().data
    strict(listed)
    assert client.models.retrieve("other/name").id == "other/name"
    assert client.chat.completions.create(model="m", messages=HI).choices[0].message.content == "first"
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("status", "raised", "code"),
    [
        (400, openai.BadRequestError, None),
        (401, openai.AuthenticationError, "invalid_api_key"),
        (403, openai.PermissionDeniedError, None),
        (404, openai.NotFoundError, "model_not_found"),
        (429, openai.RateLimitError, "rate_limit_exceeded"),
        (500, openai.InternalServerError, None),
        (503, openai.InternalServerError, None),
        (529, openai.InternalServerError, None),
    ],
)
def test_errors_are_those_of_the_sdk(ask, status, raised, code):
    _, client = ask(Status(status))
    with pytest.raises(raised) as caught:
        client.chat.completions.create(model="m", messages=HI)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert set(caught.value.body) == {"message", "type", "param", "code"}
    assert caught.value.body["message"]
