"""`context-faithfulness`, `context-recall`, `context-relevance`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.assertions.judged.retrieval import (
    MOST_PIECES,
    ContextFaithfulness,
    ContextRecall,
    ContextRelevance,
    sentences_of,
)
from agentv.model.suite.assertion import Transform
from agentv.model.values.message import Message
from agentv.model.values.retrieved import RetrievedText
from agentv.registry.fields import Document
from doubles.judging import grade_judged

TEXT = "Paris is the capital. France has wine."
CLAIMS = {"claims": [{"claim": "A.", "supported": True}, {"claim": "B.", "supported": False, "reasoning": "not there"}]}
KINDS = (ContextFaithfulness, ContextRecall, ContextRelevance)


def lines(key, flag, **held):
    return {key: [{"id": name, flag: value} for name, value in held.items()]}


def recalled(**held):
    return lines("statements", "attributed", **held)


def relevant(**held):
    return lines("sentences", "relevant", **held)


@pytest.mark.parametrize(("threshold", "passed"), [(0.5, True), (0.8, False)])
def test_an_answer_is_as_faithful_as_the_share_of_its_claims(threshold, passed):
    grade, run = grade_judged(ContextFaithfulness(threshold, context=TEXT), CLAIMS)
    assert (grade.score, grade.passed, grade.has_own_threshold) == (0.5, passed, True)
    assert (grade.checks[1].text, grade.checks[1].evidence) == ("B.", "not there")
    assert run.asked.index("<context-") < run.asked.index(TEXT) < run.asked.index("</context-")
    assert "It is Paris." in run.asked


def test_the_ground_truth_is_judged_sentence_by_sentence():
    grade, run = grade_judged(
        ContextRecall(value="It is Paris. It lies on the Seine.", context=TEXT), recalled(t1=True, t2=False)
    )
    assert grade.score == 0.5
    assert "[t1] It is Paris.\n[t2] It lies on the Seine." in run.asked
    assert "<answer-" not in run.asked
    assert [check.text for check in grade.checks] == ["It is Paris.", "It lies on the Seine."]


def test_without_a_value_the_ground_truth_is_the_expected_output():
    reference = (Message("assistant", "It is Paris."),)
    grade, _ = grade_judged(ContextRecall(context=TEXT), recalled(t1=True), expected_output=reference)
    assert grade.passed
    grade, _ = grade_judged(ContextRecall(context=TEXT), recalled(t1=True))
    assert grade.error.code == "no-reference"


def test_what_was_retrieved_is_never_outside_its_markers():
    prompt = Document("{{ rubrics }} {{ context }}")
    _, run = grade_judged(ContextRelevance(0.5, context=TEXT, prompt=prompt), relevant(s1=True, s2=False))
    outside = run.asked
    while "<context-" in outside:
        before, _, rest = outside.partition("<context-")
        outside = before + rest.partition("</context-")[2]
    assert "Paris" not in outside


@pytest.mark.parametrize("kind", [ContextRecall(value="It is Paris.", context=TEXT), ContextRelevance(context=TEXT)])
def test_retrieval_can_be_judged_without_an_answer(kind):
    grade, _ = grade_judged(kind, recalled(t1=True) | relevant(s1=True, s2=True), None)
    assert grade.passed
    assert grade_judged(ContextFaithfulness(context=TEXT), CLAIMS, None)[0].error.code == "no-output"


@pytest.mark.parametrize(
    ("transform", "output"),
    [
        (Transform("path", "$.docs"), json.dumps({"docs": ["Paris.", "Wine."]})),
        (Transform("jinja", "json.docs"), json.dumps({"docs": ["Paris.", "Wine."]})),
        (Transform("jinja", "json.docs | map(attribute='text') | list"), json.dumps({"docs": [{"text": "Paris."}, {"text": "Wine."}]})),
    ],
)  # fmt: skip
def test_the_context_may_come_out_of_the_answer(transform, output):
    grade, run = grade_judged(ContextRelevance(context_transform=transform), relevant(s1=True, s2=True), output)
    assert grade.passed
    assert "[s1] Paris.\n[s2] Wine." in run.asked


def test_it_comes_out_of_the_whole_answer_where_the_entry_made_another_of_it():
    whole = json.dumps({"docs": ["Paris."], "answer": "It is Paris."})
    transform = Transform("path", "$.docs")
    _, run = grade_judged(ContextFaithfulness(context_transform=transform), CLAIMS, "It is Paris.", answered=whole)
    assert "\nParis.\n</context-" in run.asked
    assert "It is Paris." in run.asked


@pytest.mark.parametrize(
    ("value", "shown"),
    [(TEXT, TEXT), (["Paris.", "Wine."], "Paris.\n\nWine."), ([{"text": "Rome."}], "Rome."), ([{"a": 1}], '{"a": 1}')],
)
def test_without_an_option_the_context_is_the_variable(value, shown):
    _, run = grade_judged(ContextFaithfulness(), CLAIMS, vars={"context": value})
    assert f"\n{shown}\n</context-" in run.asked


@pytest.mark.parametrize("value", [None, "", "  ", [], ["", None]])
def test_an_empty_context_is_missing(value):
    for kind in KINDS:
        grade, run = grade_judged(
            kind(**({"value": "It is Paris."} if kind is ContextRecall else {})), "", vars={"context": value}
        )
        assert grade.error.code == "no-context"
        assert run.judge_target.requests == []
        assert kind().lacks_context({"context": value})
        assert not kind(context="a").lacks_context({})
        assert not kind(context_transform=Transform("path", "$.a")).lacks_context({})
        assert not kind().lacks_context({"context": TEXT})


def test_what_the_reply_says_comes_last():
    reply = {"context": (RetrievedText("Paris.", "a.md"), RetrievedText("Wine."))}
    shown = "Paris.\n\nWine."
    for kind, variables, text in (
        (ContextFaithfulness(), {}, shown),
        (ContextFaithfulness(), {"context": " "}, shown),
        (ContextFaithfulness(), {"context": "Beer."}, "Beer."),
        (ContextFaithfulness(context="Own."), {"context": "Beer."}, "Own."),
        (ContextFaithfulness(context_transform=Transform("jinja", "context")), {}, shown),
        (ContextFaithfulness(context_transform=Transform("jinja", "context[:1]")), {}, "Paris."),
        (ContextFaithfulness(context_transform=Transform("path", "$.context[1]")), {}, "Wine."),
        (ContextFaithfulness(context_transform=Transform("jinja", "context")), {"context": "Beer."}, "Beer."),
    ):
        _, run = grade_judged(kind, CLAIMS, vars=variables, **reply)
        assert f"\n{text}\n</context-" in run.asked, (kind, variables)


def test_the_metadata_of_the_reply_may_hold_it():
    kind = ContextFaithfulness(context_transform=Transform("jinja", "metadata.docs"))
    _, run = grade_judged(kind, CLAIMS, response_metadata={"docs": ["Paris."]})
    assert "\nParis.\n</context-" in run.asked
    _, run = grade_judged(kind, CLAIMS, response_metadata={"docs": ["Paris."]}, metadata={"docs": "Beer."})
    assert "\nBeer.\n</context-" in run.asked
    kind = ContextFaithfulness(context_transform=Transform("path", "$.metadata.docs"))
    grade, _ = grade_judged(kind, CLAIMS, response_metadata={"doc": []})
    assert "the answer is not JSON; in the target's reply, $.metadata.docs leads nowhere" in grade.error.message


@pytest.mark.parametrize(
    ("expression", "says", "hint"),
    [
        ("contxt", "'contxt' is not defined", "did you mean 'context'?"),
        ("docs", "'docs' is not defined", "available: context, metadata, output, json, q"),
        ("context.docs", "'context' is the list of retrieved texts, which has no 'docs'", "write context[0].docs, or"),
        ("context.metadata.docs", "has no 'metadata'", "write metadata.docs, without 'context.'"),
        ("vars.docs", "the case has no variable 'docs'", "available"),
    ],
)
def test_names_that_nothing_has_are_faults_of_the_file(expression, says, hint):
    kind = ContextRelevance(context_transform=Transform("jinja", expression))
    (fault,) = kind.missing_inputs({"q": 1}, reference=True, criteria=False)
    assert fault.path == ("context_transform",)
    assert says in fault.message
    assert hint in fault.hint


def test_more_sentences_than_a_judge_can_count_err():
    for one in (ContextRelevance(context=("a",) * (MOST_PIECES + 1)), ContextRecall(value="A b.\n" * 501, context="a")):
        assert grade_judged(one, "")[0].error.code == "too-long"


@pytest.mark.parametrize(
    ("kind", "template", "codes"),
    [
        (ContextFaithfulness(context="a"), "{{ output }} {{ context }}", []),
        (ContextFaithfulness(context="a"), "{{ output }}", ["judge-prompt-without-output"]),
        (ContextFaithfulness(context="a"), "{{ context }}", ["judge-prompt-without-output"]),
        (ContextRecall(value="a", context="a"), "{{ context }}", []),
        (ContextRelevance(context="a"), "{{ output }}", ["judge-prompt-without-output"]),
        (ContextRelevance(context="a"), "{{ context }} {{ contxt }}", ["undefined-variable"]),
    ],
)
def test_a_prompt_must_show_what_is_judged(kind, template, codes):
    own = type(kind)(**{**{name: getattr(kind, name) for name in ("context",)}, "prompt": Document(template)})
    assert [fault.code for fault in own.validate()] == codes


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", ()),
        ("One. Two! Three?", ("One.", "Two!", "Three?")),
        ('He said "no." She left.', ('He said "no."', "She left.")),
        ("It costs 3.50 euros. 2 are left.", ("It costs 3.50 euros.", "2 are left.")),
        ("Fruit, e.g. apples, is sold.", ("Fruit, e.g. apples, is sold.",)),
        ("Facts:\n- one\n- two\n1. three", ("Facts:", "one", "two", "three")),
        ("Above\n---\nBelow", ("Above", "Below")),
        ("東京は首都です。大きいです。", ("東京は首都です。", "大きいです。")),
        ("Wait… What?", ("Wait…", "What?")),
    ],
)
def test_sentences_end_as_punctuation_says(text: str, sentences: tuple[str, ...]) -> None:
    assert sentences_of(text) == sentences


@given(st.text())
def test_no_word_is_lost(text: str) -> None:
    kept = "".join(sentences_of(text))
    assert [one for one in text if one.isalpha()] == [one for one in kept if one.isalpha()]
