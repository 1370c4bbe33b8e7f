"""Gemini's API, through Google's own SDK, against a loopback server."""

import re
import subprocess
import sys
from functools import partial

import pytest

from agentv.model.values.message import FileBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.registry import fields
from agentv.targets.gemini.messages import refusal_of, response_of
from agentv.targets.gemini.target import Gemini
from agentv.testing import Answer, ContentFilter, ModelServer, Status
from doubles import asking
from doubles.asking import answer, answers, as_own_server, embed_texts, request, responses_to
from doubles.documents import PDF_BASE64, pdf

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0}},
    "required": ["score"],
    "additionalProperties": False,
}


def settings(server: ModelServer, model: str = "gemini-2.5-flash", **others: object) -> Gemini:
    return Gemini(model, **{"api_key": "AIza-a-very-secret-key", "base_url": server.gemini, **others})


def sent(one: object = None, model: str = "gemini-2.5-flash", **others: object) -> dict:
    """Return the body of a request."""
    return camel(asking.received_call(partial(settings, model=model, **others), one).body)


def camel(value):
    """Return the value with camel-case keys; the API accepts both spellings, and the SDK sends both."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {re.sub("_([a-z])", lambda found: found[1].upper(), key): camel(one) for key, one in value.items()}


def of(*messages: Message, model: str = "gemini-2.5-flash") -> dict:
    return sent(request(messages=messages), model)


def test_the_environment_does_not_lead_to_another_service(monkeypatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    with ModelServer("yes") as server:
        assert answer(settings(server)).output == "yes"


def test_the_first_system_messages_are_the_instruction_and_later_ones_stay_in_place():
    said = (Message("system", "Be brief."), Message("user", "hi"), Message("system", "Stop."), Message("user", "well?"))
    found = of(*said)
    assert found["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert found["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}, {"text": "<system>\nStop.\n</system>"}, {"text": "well?"}]}
    ]
    found = sent(request(messages=said), system="You are a clerk.")
    assert found["systemInstruction"]["parts"] == [{"text": "You are a clerk.\n\nBe brief."}]


def test_pictures_and_files_are_parts(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n rest")
    content = (
        TextBlock("look"),
        ImageBlock("./a.png", str(tmp_path / "a.png")),
        ImageBlock("https://example.com/b.jpg?x=1"),
        FileBlock("./c.txt", "/c.txt", "text of c"),
    )
    (turn,) = of(Message("user", content))["contents"]
    assert turn["parts"] == [
        {"text": "look"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgogcmVzdA=="}},
        {"fileData": {"fileUri": "https://example.com/b.jpg?x=1", "mimeType": "image/jpeg"}},
        {"text": '<file path="./c.txt">\ntext of c\n</file>'},
    ]


def test_a_pdf_is_inline_data(tmp_path):
    (turn,) = of(Message("user", (TextBlock("look"), pdf(tmp_path))))["contents"]
    assert turn["parts"][1] == {"inlineData": {"mimeType": "application/pdf", "data": PDF_BASE64}}


TOOLS = (
    Message("user", "hi"),
    Message("assistant", "", tool_calls=(ToolCall("look", {"at": 1}), ToolCall("find", {}, "f7"))),
    Message("tool", "found", name="find"),
    Message("tool", '{"seen": true}'),
)


def test_calls_of_tools_and_their_results_are_joined():
    turns = of(*TOOLS)["contents"]
    assert turns[1]["parts"] == [
        {"functionCall": {"name": "look", "args": {"at": 1}}},
        {"functionCall": {"name": "find", "args": {}, "id": "f7"}},
    ]
    assert turns[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "find", "response": {"result": "found"}, "id": "f7"}},
            {"functionResponse": {"name": "look", "response": {"seen": True}}},
        ],
    }


def test_a_call_that_the_model_did_not_make_is_marked_where_it_wants_signatures():
    (asked, other) = of(*TOOLS, model="gemini-3.8-flash")["contents"][1]["parts"]
    assert asked["thoughtSignature"]
    assert "thoughtSignature" not in other  # of parallel calls, only the first has one


def test_tools_may_be_in_the_shape_of_gemini_or_of_openai():
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
    theirs = {"type": "function", "function": {"name": "find", "description": "finds", "parameters": parameters}}
    assert sent(tools=({"google_search": {}}, theirs))["tools"] == [
        {"googleSearch": {}},
        {"functionDeclarations": [{"name": "find", "description": "finds", "parametersJsonSchema": parameters}]},
    ]


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("find", {"mode": "ANY", "allowedFunctionNames": ["find"]}),
        ({"type": "function", "function": {"name": "find"}}, {"mode": "ANY", "allowedFunctionNames": ["find"]}),
        ({"function_calling_config": {"mode": "NONE"}}, {"mode": "NONE"}),
    ],
)
def test_which_tool_is_called_may_be_said(choice, calling):
    assert sent(tool_choice=choice)["toolConfig"] == {"functionCallingConfig": calling}


@pytest.mark.parametrize(
    ("given", "generation"),
    [
        ({"max_tokens": 5, "top_p": 0.5, "top_k": 3}, {"maxOutputTokens": 5, "topP": 0.5, "topK": 3.0}),
        ({"stop": ("END",), "seed": 7, "temperature": 1.5}, {"stopSequences": ["END"], "seed": 7, "temperature": 1.5}),
        ({"thinking": 2000}, {"thinkingConfig": {"thinkingBudget": 2000}}),
        ({"thinking": 0}, {"thinkingConfig": {"thinkingBudget": 0}}),
        ({"thinking": "low"}, {"thinkingConfig": {"thinkingLevel": "LOW"}}),
        ({"thinking": {"include_thoughts": True}}, {"thinkingConfig": {"includeThoughts": True}}),
        ({"response_format": "json_object"}, {"responseMimeType": "application/json"}),
        ({"response_format": SCHEMA}, {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}),
    ],
)
def test_settings_are_sent(given, generation):
    assert sent(**given)["generationConfig"] == generation


def test_safety_headers_and_further_keys_are_sent():
    shown = sent(safety={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"})["safetySettings"]
    assert shown == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    assert sent(extra={"generationConfig": {"mediaResolution": "x"}})["generationConfig"] == {"mediaResolution": "x"}
    with ModelServer("yes") as server:
        answer(settings(server, headers={"X-Team": "support"}))
        assert server.calls[0].headers["x-team"] == "support"


def test_what_a_judge_asks_for_wins_over_the_settings():
    found = sent(request(temperature=0.0, schema=SCHEMA), temperature=1.0)["generationConfig"]
    assert found == {"temperature": 0.0, "responseMimeType": "application/json", "responseJsonSchema": SCHEMA}


def test_a_schema_is_left_out_once_it_was_refused():
    def reply(call):
        bound = "responseJsonSchema" in call.body["generationConfig"]
        return Status(400, "response_json_schema is not supported by this model") if bound else "yes"

    with ModelServer(reply) as server:
        found = answers(settings(server), request(schema=SCHEMA))
        assert [one.output for one in found] == ["yes"]
        assert len(server.calls) == 2
    with ModelServer(Status(400, "contents are empty")) as server:
        assert answer(settings(server), request(schema=SCHEMA)).status == 400
        assert len(server.calls) == 1


def test_tokens_of_thoughts_count_as_output_and_calls_have_a_price():
    usage = TokenUsage(input=100, output=20, total=120, cached=60, reasoning=5)
    with ModelServer(Answer("a", usage=usage)) as server:
        found = answer(as_own_server(settings(server)))
        assert found.token_usage == usage
        assert found.cost_usd > 0
        assert answer(settings(server)).cost_usd is None  # on a third-party server
    (found,) = responses_to(settings, Answer("a", usage=None))
    assert (found.token_usage, found.cost_usd) == (None, None)


def test_thoughts_are_no_part_of_the_answer():
    parts = [{"text": "hm", "thought": True}, {"text": "It is "}, {"text": "so."}]
    found = response_of({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}, "m")
    assert found.output == "It is so."


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_a_blocked_answer_is_refused_even_when_half_of_it_came(reason):
    found = response_of({"candidates": [{"finishReason": reason}]}, "m")
    assert (found.code, found.retryable) == ("refused", False)
    assert reason in found.message
    found = response_of({"candidates": [{"content": {"parts": [{"text": "I"}]}, "finishReason": reason}]}, "m")
    assert found.code == "refused"


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"])
def test_an_answer_that_broke_off_is_a_bad_answer_and_a_limit_is_none(reason):
    parts = {"content": {"parts": [{"text": "I"}]}}
    found = response_of({"candidates": [{**parts, "finishReason": reason}]}, "m")
    assert (found.code, found.retryable) == ("bad-answer", True)
    assert response_of({"candidates": [{**parts, "finishReason": "MAX_TOKENS"}]}, "m").output == "I"


def test_a_system_message_alone_is_the_turn_of_the_user():
    found = of(Message("system", "Say hi."))
    assert found["contents"] == [{"role": "user", "parts": [{"text": "Say hi."}]}]
    assert "systemInstruction" not in found


def test_a_blocked_prompt_is_refused():
    (found,) = responses_to(settings, ContentFilter())
    assert (found.code, found.message) == ("refused", "Gemini blocked the prompt (SAFETY)")


def test_how_long_to_wait_stands_in_the_details():
    details = {"error": {"message": "slow", "details": [{"@type": "…RetryInfo", "retryDelay": "27.5s"}]}}
    assert refusal_of(429, details, {}, frozenset(), ()).retry_after_s == 27.5
    assert refusal_of(429, details, {"Retry-After": "3"}, frozenset(), ()).retry_after_s == 3.0
    for strange in ({"error": {"details": [{"retryDelay": "1.2.3s"}, None]}}, [], "no", None):
        assert refusal_of(429, strange, {}, frozenset(), ()).retry_after_s is None


def test_a_newer_model_of_vectors_gives_one_for_each_text_too():
    with ModelServer("yes") as server:
        found = embed_texts(settings(server, embedding_model="gemini-embedding-2"), ["one", "two"])
        assert server.calls[0].model == "gemini-embedding-2"
        assert len(found.vectors) == 2
        embed_texts(settings(server, "gemini-embedding-3"), ["one"])
        assert server.calls[-1].model == "gemini-embedding-3"  # its name marks an embedding model


@pytest.mark.parametrize(
    ("given", "path"), [({"base_url": "ftp://x"}, "base_url"), ({"response_format": "xml"}, "response_format")]
)
def test_wrong_settings_are_told_at_load(given, path):
    assert [fault.path for fault in Gemini("m", **given).validate()] == [(path,)]


def test_a_file_that_needs_the_missing_sdk_does_not_load(monkeypatch):
    monkeypatch.setattr(fields, "_is_installed", lambda module: False)
    (fault,) = Gemini("m").validate()
    assert fault.message == "calling Gemini requires google.genai, which is not installed"
    assert fault.hint == "pip install 'agentv[gemini]'"


def test_the_sdk_is_imported_only_by_who_asks():
    code = "import sys, agentv.targets.gemini.target as g; list(g.Gemini('m').validate()); print('google.genai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
