"""Anthropic's API, through its own SDK, against a loopback server."""

from functools import partial

import pydantic
import pytest
from anthropic.types import DocumentBlockParam

from agentv.model.values.message import FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.targets.anthropic.target import MAX_TOKENS, Anthropic, converted_schema
from agentv.testing import Answer, ModelServer, Status, WrongType
from doubles import asking
from doubles.asking import answer, as_own_server, request, responses_to
from doubles.documents import PDF_BASE64, pdf

KEY = "sk-ant-a-very-secret-key"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}


def settings(server: ModelServer, model: str = "claude-haiku-4-5", **others: object) -> Anthropic:
    return Anthropic(model, **{"api_key": KEY, "base_url": server.anthropic, **others})


def sent(one: object = None, model: str = "claude-haiku-4-5", **others: object) -> dict:
    """Return the body of a request."""
    return dict(asking.received_call(partial(settings, model=model, **others), one).body)


def of(*messages: Message, model: str = "claude-haiku-4-5") -> dict:
    return sent(request(messages=messages), model)


def test_the_first_system_messages_are_the_system_prompt():
    found = of(Message("system", "Be brief."), Message("system", "Be kind."), Message("user", "hi"))
    assert found["system"] == "Be brief.\n\nBe kind."
    assert found["messages"] == [{"role": "user", "content": "hi"}]
    one = request(messages=(Message("system", "Be brief."), Message("user", "hi")))
    assert sent(one, system="You are a clerk.")["system"] == "You are a clerk.\n\nBe brief."


LATE = (Message("user", "hi"), Message("system", "Now in French."), Message("user", "well?"))


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-20250514", "claude-3-5-sonnet-latest"])
def test_an_older_model_gets_it_within_the_turn_of_the_user(model):
    (turn,) = of(*LATE, model=model)["messages"]
    assert [block["text"] for block in turn["content"]] == ["hi", "<system>\nNow in French.\n</system>", "well?"]


def test_pictures_and_files_are_blocks(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n rest")
    content = (
        TextBlock("look"),
        TextBlock(""),
        ImageBlock("./a.png", str(tmp_path / "a.png")),
        ImageBlock("https://example.com/b.png"),
        FileBlock("./c.txt", "/c.txt", "text of c"),
    )
    (turn,) = of(Message("user", content))["messages"]
    assert turn["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgogcmVzdA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/b.png"}},
        {"type": "text", "text": '<file path="./c.txt">\ntext of c\n</file>'},
    ]


def test_a_pdf_is_a_document(tmp_path):
    (turn,) = of(Message("user", (TextBlock("look"), pdf(tmp_path))))["messages"]
    source = {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64}
    assert turn["content"][1] == {"type": "document", "source": source, "title": "report.pdf"}
    pydantic.TypeAdapter(DocumentBlockParam).validate_python(turn["content"][1], extra="forbid")


def test_calls_of_tools_and_their_results_are_joined_by_ids():
    turns = of(
        Message("user", "hi"),
        Message("assistant", "", tool_calls=(ToolCall("look", {"at": 1}), ToolCall("find", {}, "toolu_7"))),
        Message("tool", "found", name="find"),
        Message("tool", "seen"),
        Message("user", "and?"),
    )["messages"]
    assert turns[1]["content"] == [
        {"type": "tool_use", "id": "call_agentv_1_0", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "toolu_7", "name": "find", "input": {}},
    ]
    assert turns[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_7", "content": "found"},
        {"type": "tool_result", "tool_use_id": "call_agentv_1_0", "content": "seen"},
        {"type": "text", "text": "and?"},
    ]


def test_a_result_that_no_call_asked_for_is_told_as_text():
    (turn,) = of(Message("tool", "seen", name="look"), Message("user", "and?"))["messages"]
    assert [block["text"] for block in turn["content"]] == ["tool (look):\nseen", "and?"]


def test_tools_may_be_in_the_shape_of_anthropic_or_of_openai():
    own = {"name": "look", "input_schema": {"type": "object"}}
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    theirs = {"type": "function", "function": {"name": "find", "description": "finds", "parameters": parameters}}
    shown = sent(tools=(own, theirs))["tools"]
    assert shown == [own, {"name": "find", "description": "finds", "input_schema": parameters}]


@pytest.mark.parametrize(
    ("choice", "sent_as"),
    [
        ("auto", {"type": "auto"}),
        ("required", {"type": "any"}),
        ("find", {"type": "tool", "name": "find"}),
        ({"type": "function", "function": {"name": "find"}}, {"type": "tool", "name": "find"}),
        ({"type": "any", "disable_parallel_tool_use": True}, {"type": "any", "disable_parallel_tool_use": True}),
    ],
)
def test_which_tool_is_called_may_be_said(choice, sent_as):
    assert sent(tool_choice=choice)["tool_choice"] == sent_as


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"stop": ("END",)}, {"stop_sequences": ["END"]}),
        ({"thinking": 2000}, {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": MAX_TOKENS + 2000}),
        ({"thinking": "adaptive"}, {"thinking": {"type": "adaptive"}}),
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ({"effort": "low"}, {"output_config": {"effort": "low"}}),
        ({"extra": {"service_tier": "auto"}}, {"service_tier": "auto"}),
        ({"max_tokens": 60_000}, {"max_tokens": 60_000}),
    ],
)
def test_settings_are_sent(given, body):
    assert sent(**given) == {
        "model": "claude-haiku-4-5",
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": "hello"}],
        **body,
    }


@pytest.mark.parametrize(
    ("model", "others"), [("claude-opus-5", {}), ("claude-opus-4-7", {}), ("claude-haiku-4-5", {"thinking": 2000})]
)
def test_a_judge_does_without_a_temperature_where_the_model_takes_none(model, others):
    assert "temperature" not in sent(request(temperature=0.0), model, **others)


def test_any_other_bad_request_is_not_repeated():
    with ModelServer(Status(400, "messages: text content blocks must be non-empty")) as server:
        assert answer(settings(server), request(temperature=0.0, schema=SCHEMA)).status == 400
        assert len(server.calls) == 1


def test_a_schema_becomes_structured_output():
    assert sent(request(schema=SCHEMA), effort="low")["output_config"] == {
        "effort": "low",
        "format": {
            "type": "json_schema",
            "schema": {
                **SCHEMA,
                "properties": {"score": {"type": "number", "description": "{minimum: 0, maximum: 1}"}},
            },
        },
    }


def test_tokens_of_the_cache_count_as_input_and_have_their_price():
    usage = TokenUsage(input=100, output=20, total=120, cached=60, reasoning=5)
    with ModelServer([Answer("a", usage=usage), Answer("a", usage=TokenUsage(100, 20, 120, 0, 0))]) as server:
        cached, plain = (answer(as_own_server(settings(server))) for _ in range(2))
    assert cached.token_usage == usage
    assert 0 < cached.cost_usd < plain.cost_usd


def test_tokens_written_to_the_cache_count_as_input_too():
    from agentv.targets.anthropic.messages import response_of

    counts = {"input_tokens": 1, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 7}
    found = response_of({"content": [], "stop_reason": "end_turn", "usage": counts}, "claude-haiku-4-5")
    assert found.token_usage == TokenUsage(111, 7, 118, 100, None)


def test_a_cut_answer_shows_by_its_finish_reason():
    (found,) = responses_to(settings, Answer("a", finish_reason="max_tokens"))
    assert (found.output, found.finish_reason) == ("a", "max_tokens")


def test_a_paused_turn_is_no_answer():
    (found,) = responses_to(settings, Answer("I search", finish_reason="pause_turn"))
    assert (found.code, found.retryable) == ("bad-answer", True)


def test_an_answer_that_the_provider_cut_by_a_refusal_is_a_failure():
    (cut,) = responses_to(settings, Answer("Half of", finish_reason="refusal"))
    assert (cut.code, cut.retryable) == ("refused", False)


@pytest.mark.parametrize(
    ("step", "code", "retryable", "stops"),
    [
        (Status(400, "Your credit balance is too low"), "http-status", False, True),
        (WrongType('{"content": "text"}', "application/json"), "bad-answer", True, False),
    ],
)
def test_what_goes_wrong_is_a_value(step, code, retryable, stops):
    (found,) = responses_to(settings, step)
    assert (found.code, found.retryable, found.stops) == (code, retryable, stops)
    assert KEY not in found.message


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"base_url": "api.anthropic.com"}, "base_url"),
        ({"thinking": 1000}, "thinking"),
        ({"thinking": 5000, "max_tokens": 5000}, "thinking"),
        ({"thinking": "deep"}, "thinking"),
        ({"thinking": True}, "thinking"),
        ({"thinking": [2000]}, "thinking"),
        ({"thinking": 2000, "temperature": 0.5}, "temperature"),
        ({"response_format": "json_object"}, "response_format"),
    ],
)
def test_settings_that_the_api_would_refuse_are_told_at_load(given, path):
    assert [fault.path for fault in Anthropic("m", **given).validate()] == [(path,)]


def test_an_endpoint_is_the_address_with_a_hash_of_the_key():
    one, other = (Anthropic("m", api_key=key).endpoint() for key in ("a", "b"))
    assert one.startswith("anthropic https://api.anthropic.com ")
    assert one != other
    assert Anthropic("n", api_key="a").endpoint() == one


def test_text_between_other_blocks_stays_apart():
    from agentv.targets.anthropic.messages import response_of

    pieces = [("text", "I look. "), ("text", "Now."), ("server_tool_use", ""), ("text", "It is so.")]
    content = [{"type": kind, "text": text} for kind, text in pieces]
    found = response_of({"content": [{"type": "thinking", "thinking": "hm"}, *content], "stop_reason": "end_turn"}, "m")
    assert found.output == "I look. Now.\n\nIt is so."


@pytest.mark.parametrize(
    ("schema", "sent_as"),
    [
        (
            {"type": ["string", "null"], "maxLength": 9, "description": "why"},
            {"description": "why", "anyOf": [{"type": "string", "description": "{maxLength: 9}"}, {"type": "null"}]},
        ),
        (
            {"type": "object", "properties": {"type": {"type": ["integer", "null"]}}, "required": ["type"]},
            {
                "type": "object",
                "properties": {"type": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
                "required": ["type"],
                "additionalProperties": False,
            },
        ),
        (
            {
                "type": "array",
                "items": {"$ref": "#/definitions/A"},
                "definitions": {"A": {"type": "string", "maxLength": 9}},
            },
            {
                "type": "array",
                "items": {"$ref": "#/definitions/A"},
                "definitions": {"A": {"type": "string", "description": "{maxLength: 9}"}},
            },
        ),
        ({"type": "object", "properties": {"any": {}}}, {"type": "object", "properties": {"any": {}}}),
        ({"type": "date"}, {"type": "date"}),
    ],
)
def test_a_schema_is_converted_by_the_sdk_also_where_it_lists_types(schema, sent_as):
    assert converted_schema(schema) == sent_as
