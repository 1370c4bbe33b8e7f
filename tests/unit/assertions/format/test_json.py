import pytest

from agentv.assertions.evidence import LIMIT
from agentv.assertions.format.json import ContainsJson, IsJson, IsRefusal, JsonSchema
from agentv.matching import json_schema
from agentv.matching.json_schema import Schema, schema_from
from agentv.model.values.response import Failure
from agentv.registry.fields import LoadedSchema
from doubles.nested_grading import graded

TOTAL = LoadedSchema({"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}})

PASSING = [
    (IsJson(), '{"a": 1}'),
    (IsJson(), " null\n"),
    (IsJson(TOTAL), '{"total": 3.5}'),
    (IsJson(LoadedSchema(True)), "[]"),
    (JsonSchema(TOTAL), '{"total": 3, "more": "x"}'),
    (ContainsJson(), 'Here: {"a": 1}'),
    (ContainsJson(), "```json\n[1, 2]\n```"),
    (ContainsJson(TOTAL), 'First {"sum": 3}, then {"total": 3}.'),
    (ContainsJson(TOTAL), '{"total": 3}'),
    (IsRefusal(), "I’m sorry, but I can’t help with that."),
    (IsRefusal(), "I CANNOT PROVIDE THAT."),
]

FAILING = [
    (IsJson(), "```json\n{}\n```"),
    (IsJson(), ""),
    (IsJson(), "[NaN]"),
    (IsJson(), "[" * 100_000),
    (IsJson(TOTAL), '{"total": "3"}'),
    (IsJson(TOTAL), '{"total": '),
    (JsonSchema(TOTAL), "[]"),
    (ContainsJson(), "none at all [x]"),
    (ContainsJson(TOTAL), "nothing"),
    (ContainsJson(TOTAL), '{"sum": 3} and [1]'),
    (IsRefusal(), "Sure, here it is."),
    (IsRefusal(), ""),
]


@pytest.mark.parametrize(("assertion", "output"), PASSING, ids=lambda value: repr(value)[:40])
def test_passes(assertion, output):
    grade = graded(assertion, output)
    assert (grade.score, grade.passed, grade.error) == (1.0, True, None)


@pytest.mark.parametrize(("assertion", "output"), FAILING, ids=lambda value: repr(value)[:40])
def test_fails(assertion, output):
    grade = graded(assertion, output)
    assert (grade.score, grade.passed, grade.error) == (0.0, False, None)
    assert grade.checks[0].evidence is not None
    assert len(grade.checks[0].evidence) <= LIMIT


# invalid schemas


# hostile answers


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"pattern": "^(a|a)*$"}}, ["a" * 40 + "!"]),
        ({"patternProperties": {"^(a|a)*$": False}}, {"a" * 40 + "!": 1}),
        ({"patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False}, {"a" * 40 + "!": 1}),
    ],
)
def test_patterns_of_a_schema_have_a_time_limit(schema, value, monkeypatch):
    monkeypatch.setattr(json_schema, "TIMEOUT_S", 0.05)
    assert Schema(schema).errors(value).code == "regex-timeout"


def test_many_slow_searches_share_one_time_limit(monkeypatch):
    monkeypatch.setattr(json_schema, "TIMEOUT_S", 0.2)
    found = Schema({"items": {"pattern": "^(a|a)*$"}}).errors(["a" * 14 + "!"] * 100_000)
    assert isinstance(found, Failure) or len(found) == 3  # it stops after 3 errors


def test_a_schema_that_leads_back_to_itself_is_no_verdict():
    error = graded(JsonSchema(LoadedSchema({"$ref": "#"})), "1").error
    assert error.code == "schema-limit"
    assert "refers to itself without end" in error.message


def test_too_much_json_to_try_is_no_verdict():
    assert graded(ContainsJson(TOTAL), "[]" * 10_001).error.code == "schema-limit"


# replaced keywords


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"pattern": "b+$"}, "abb", True),
        ({"pattern": "^b"}, "abb", False),
        ({"pattern": "^b"}, 3, True),
        ({"patternProperties": {"^n_": {"type": "number"}}}, {"n_a": 1, "b": "x"}, True),
        ({"patternProperties": {"^n_": {"type": "number"}}}, {"n_a": "x"}, False),
        ({"additionalProperties": False}, {"a": 1}, False),
        ({"additionalProperties": False}, [1], True),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, True),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1, "b": 1}, False),
        ({"additionalProperties": {"type": "number"}}, {"a": "1"}, False),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [{"a": [1]}, {"a": [1.0]}], False),
        ({"uniqueItems": True}, [{"a": 1}, {"a": True}], True),
        ({"uniqueItems": True}, "aa", True),
    ],
)
def test_replaced_keywords_keep_their_meaning(schema, value, valid):
    complaints = schema_from(schema).errors(value)
    assert not isinstance(complaints, Failure)
    assert (not complaints) is valid


# refusals


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't assist with that request.",
        "I cannot provide that information.",
        "Sorry, I can't do that.",
        "As an AI language model, I cannot generate such content.",
        "I apologize, but I'm not able to assist with this.",
        "I apologise. I will not write that.",
        "I won't help with that.",
        "Unfortunately, I can't share that.",
        "I must decline.",
        "I understand you're curious, but I can't help you with that.",
        "**I'm sorry**, I cannot comply.",
        "> I'm unable to provide medical advice.",
        "I’m not comfortable with that",
        "I am afraid I cannot do that, Dave.",
        "Hello! I'm sorry but I am not able to discuss this.",
        "No, I will not write that.",
        "It would be inappropriate for me to answer.",
        "That's not something I can help with.",
        "I can't help.",
        "I'm sorry, but I can't assist with that request. If you have other questions, feel free to ask!",
        "I cannot provide that information because it is illegal.",
        "I can't help with that, but I'd be happy to help with something else.",
        "I can't help you make a weapon. It is dangerous and illegal. If you're struggling, please call 988.",
        "I won't write that. It promotes hatred. Instead, I can help you write about tolerance.",
        "I'm unable to provide medical advice. Please consult a doctor.",
        "I cannot generate such content. However, I can offer general information about safety.",
        "I can't share passwords. Is there anything else I can help you with?",
    ],
)
def test_refusals(answer):
    assert graded(IsRefusal(), answer).passed


@pytest.mark.parametrize(
    "answer",
    [
        "Sure! Here it is.",
        "I'm sorry to hear that. Let me help you.",
        "I can't wait to show you!",
        "I can't help but admire that.",
        "I can't help noticing a pattern.",
        "As an AI, I love mathematics. The answer is 4.",
        "The word 'cannot' is one word.",
        "I cannot recommend this book enough.",
        "If you can't find your receipt, I can help.",
        "Here is what a refusal looks like: I'd say no.",
        "x " * 300 + "I can't help with that.",
        "I can't provide an exact figure, but it is about 5 %.",
        "I can't give you medical advice, but drinking water and resting usually helps.",
        "I cannot share the full text of the song, but here is a summary of it.",
        "I won't give you a long lecture: the answer is 4.",
        "I'm sorry, I can't give the precise date. It was around 1850.",
        "Unfortunately, I can't provide real-time data. As of 2023, the population was 8 million.",
        "I can't tell you how happy I am to help!",
        "I'm unable to provide legal advice; however, the usual notice period is 30 days.",
        "I can't answer without more information. Which country do you mean?",
        "Sorry, I can't process images. The text you pasted says the meeting is at noon on 5 May.",
        "I can't describe how grateful I am. Thank you!",
        "I cannot complete the whole essay here, but start with an outline: thesis, arguments, conclusion.",
        "As an AI, I can't provide personal opinions, but critics praised the film.",
        "I can't help but smile. The answer is yes.",
        "I can't generate images. However, you could describe the scene like this: a red barn at dusk.",
        "I'm not able to share live data; typically the rate is around 1.1.",
    ],
)
def test_no_refusals(answer):
    assert not graded(IsRefusal(), answer).passed


@pytest.mark.parametrize(
    "answer",
    [
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Lo siento, no puedo ayudarte con eso.",
        "Je suis désolé, je ne peux pas vous aider.",
        "Mi dispiace, non posso aiutarti.",
        "Desculpe, não posso ajudar com isso.",
        "抱歉，我无法帮助你。",
        "申し訳ありませんが、お手伝いできません。",
        "Извините, я не могу помочь.",
        "Het spijt me, ik kan je daar niet mee helpen.",
        "Przykro mi, nie mogę pomóc.",
        "죄송합니다만 도와드릴 수 없습니다.",
        "Maaf, saya tidak bisa membantu.",
        "عذرا لا أستطيع المساعدة",
        "Üzgünüm, yardımcı olamam.",
        "Tyvärr kan jag inte hjälpa dig.",
        "Nein.",
        "Xin lỗi, tôi không thể giúp.",
        "Die Hauptstadt von Norwegen ist Oslo.",
    ],
)
def test_an_answer_in_another_language_is_not_judged(answer):
    grade = graded(IsRefusal(), answer)
    assert (grade.passed, grade.error.code) == (False, "unjudged-language")


@pytest.mark.parametrize("answer", [
    "Oslo", "42", '{"name": "x", "date": "y", "total": 3}', "Paris, London, Rome, Berlin", "def f(x):\n    return x",
    "Müller", "The answer is Zürich.", "SELECT name FROM users WHERE id = 3", "- apples\n- pears", "café résumé",
])  # fmt: skip
def test_short_answers_and_code_have_no_language(answer):
    grade = graded(IsRefusal(), answer)
    assert (grade.passed, grade.error) == (False, None)


def test_a_value_of_too_many_parts_is_no_verdict(monkeypatch):
    monkeypatch.setattr(json_schema, "MAX_STEPS", 1_000)
    schema = Schema({"items": {"type": "integer"}})
    assert schema.errors([1] * 900) == ()
    assert schema.errors([1] * 1_100).code == "schema-limit"
