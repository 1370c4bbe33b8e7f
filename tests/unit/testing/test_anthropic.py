"""Anthropic's protocol, through its own SDK."""

from functools import partial

import anthropic
import pytest

from agentv.testing import Answer, ContentFilter, EmptyChoices, Status, TokenUsage, ToolCall

USAGE = TokenUsage(input=100, output=30, total=130, cached=40, reasoning=20)
WEATHER = ToolCall("weather", {"city": "Bern", "days": 2})
ASKED = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def ask(opened):
    return partial(
        opened, lambda server: anthropic.Anthropic(base_url=server.anthropic, api_key="the-key", max_retries=0)
    )


def test_text_and_tool_calls_with_their_usage(ask):
    server, client = ask(Answer("wait", tool_calls=(WEATHER,), usage=USAGE))
    got = client.messages.create(**ASKED, system=[{"type": "text", "text": "Be kind"}])
    type(got).model_validate_json(got.model_dump_json())
    assert [block.type for block in got.content] == ["text", "tool_use"]
    assert (got.content[0].text, got.content[1].input) == ("wait", {"city": "Bern", "days": 2})
    assert got.stop_reason == "tool_use"
    assert (got.usage.input_tokens, got.usage.cache_read_input_tokens, got.usage.output_tokens) == (60, 40, 30)
    assert got.usage.output_tokens_details.thinking_tokens == 20
    (call,) = server.calls
    assert (call.protocol, call.operation, call.model, call.text) == ("anthropic", "messages", "c", "Be kind\nHi")
    assert call.headers["authorization"] == "Bearer the-key"


@pytest.mark.parametrize(
    ("step", "texts", "reason"),
    [
        (Answer("hello"), ["hello"], "end_turn"),
        (Answer("hel", finish_reason="max_tokens"), ["hel"], "max_tokens"),
        (Answer(refusal="I will not."), ["I will not."], "end_turn"),
        (ContentFilter(), [], "refusal"),
        (EmptyChoices(), [], "end_turn"),
    ],
)
def test_how_a_message_ends(ask, step, texts, reason):
    _, client = ask(step)
    got = client.messages.create(**ASKED)
    type(got).model_validate_json(got.model_dump_json())
    assert ([block.text for block in got.content], got.stop_reason) == (texts, reason)


def test_a_stream_brings_the_same_in_pieces(ask):
    _, client = ask(Answer("one two  three", tool_calls=(WEATHER,), usage=USAGE))
    with client.messages.stream(**ASKED) as stream:
        texts = [event.text for event in stream if event.type == "text"]
        got = stream.get_final_message()
    assert texts == ["one", " two", " ", " three"]
    assert (got.content[0].text, got.content[1].input) == ("one two  three", {"city": "Bern", "days": 2})
    assert (got.stop_reason, got.usage.output_tokens, got.usage.cache_read_input_tokens) == ("tool_use", 30, 40)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_have_their_own_kind(ask, status, kind):
    _, client = ask(Status(status))
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(**ASKED)
    assert (caught.value.status_code, caught.value.type) == (status, kind)
    assert caught.value.body["type"] == "error"


def test_lists_of_models(ask):
    _, client = ask("")
    (listed,) = client.models.list().data
    type(listed).model_validate_json(listed.model_dump_json())
    assert client.models.retrieve("claude-x").id == "claude-x"
