"""Rules for every built-in type on every answer (SPEC sections 7.1 and 10)."""

import json
from copy import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from agentv.assertions.catalogue import TYPES
from agentv.assertions.data import Field, FieldAccuracy, JsonMatch
from agentv.assertions.evidence import LIMIT
from agentv.assertions.format.json import ContainsJson, IsJson, IsRefusal, JsonSchema
from agentv.assertions.format.markup import ContainsHtml, ContainsXml, IsHtml, IsXml
from agentv.assertions.format.sql import ContainsSql, IsSql, SqlRules
from agentv.assertions.measured import Cost, ExecutionMetrics, FinishReason, Latency, TokenUsageWithin
from agentv.assertions.structure import AssertSet
from agentv.assertions.text.embeddings import Similar
from agentv.assertions.text.matching import (
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    IContains,
    IContainsAll,
    IContainsAny,
    Levenshtein,
    MaxTokens,
    MinTokens,
    Regex,
    StartsWith,
    WordCount,
)
from agentv.assertions.text.similarity import Bleu, Gleu, RougeN
from agentv.extensions.agents.assertions.tool_calls import ExpectedCall, ToolCallF1, ToolTrajectory
from agentv.extensions.agents.assertions.trajectory import (
    Arguments,
    Counted,
    SkillUsed,
    StepBounds,
    StepCount,
    Steps,
    ToolArgsMatch,
    ToolSequence,
    ToolUsed,
)
from agentv.model.run.grade import PLACES
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import LoadedJson, LoadedSchema
from doubles.nested_grading import answer, entry, graded
from doubles.thorough import examples

plain_words = ["a", "b", "ab", "A", "ß", "I can't help", "1", " ", "\n", '{"a": 1}', "[2, 3]", "…"]
marked_up = ["<a>", "</a>", "<br/>", "<p>", "SELECT a FROM b", ";", "create a", "(", "\ud800"]
words = st.sampled_from([*plain_words, *marked_up])
texts = st.lists(words, max_size=6).map("".join)
needles = texts.filter(bool)
solid = texts.filter(str.strip)
lists = st.lists(needles, min_size=1, max_size=3).map(tuple)
counts = st.integers(0, 6)
scalars = st.sampled_from([None, True, 1, 2.5, "a", "b", "2025-01-15"])
objects = st.dictionaries(st.sampled_from(["a", "b", "c"]), scalars, max_size=3)
schemas = st.sampled_from([{}, {"type": "object"}, {"required": ["a"]}, {"items": {"type": "number"}}]).map(
    LoadedSchema
)
fractions = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.8, 1.0])
marks = st.sampled_from([0.1, 1 / 3, 0.5, 1.0])
weights = st.sampled_from([0.1, 0.3, 1.0, 3.0])
paths = st.none() | st.sampled_from(["a", "a.b", ("a", "br")])
rules = st.none() | st.builds(
    SqlRules,
    st.sampled_from(["mysql", "postgres"]),
    st.sampled_from([None, ("b",), ("c",)]),
    st.sampled_from([None, ("a",), ("c",)]),
)
fields = st.builds(
    Field,
    path=st.sampled_from(["a", "b", "c"]),
    match=st.sampled_from(["exact", "date", "numeric_tolerance", "fuzzy"]),
    required=st.booleans(),
    weight=weights,
)

OPTIONS = {
    "contains": st.builds(Contains, needles),
    "contains-any": st.builds(ContainsAny, lists),
    "contains-all": st.builds(ContainsAll, lists),
    "icontains": st.builds(IContains, needles),
    "icontains-any": st.builds(IContainsAny, lists),
    "icontains-all": st.builds(IContainsAll, lists),
    "starts-with": st.builds(StartsWith, solid),
    "ends-with": st.builds(EndsWith, solid),
    "equals": st.builds(Equals, texts | objects | st.lists(scalars, max_size=2).map(tuple)),
    "regex": st.builds(Regex, st.sampled_from(["a+b", "^a", r"\d", "[^a]$", "x"]), st.sampled_from(["", "i", "ms"])),
    "levenshtein": st.builds(Levenshtein, needles, counts),
    "word-count": st.builds(WordCount, counts) | st.builds(WordCount, min=counts, max=counts),
    "min-tokens": st.builds(MinTokens, counts),
    "max-tokens": st.builds(MaxTokens, counts),
    "rouge-n": st.builds(RougeN, st.none() | solid | lists, marks, st.sampled_from([1, 2])),
    "bleu": st.builds(Bleu, st.none() | solid | lists, marks, st.sampled_from(["13a", "char"])),
    "gleu": st.builds(Gleu, st.none() | solid | lists, marks),
    "is-xml": st.builds(IsXml, paths),
    "contains-xml": st.builds(ContainsXml, paths),
    "is-html": st.builds(IsHtml),
    "contains-html": st.builds(ContainsHtml),
    "is-sql": st.builds(IsSql, rules),
    "contains-sql": st.builds(ContainsSql, rules),
    "is-json": st.builds(IsJson, st.none() | schemas),
    "contains-json": st.builds(ContainsJson, st.none() | schemas),
    "json-schema": st.builds(JsonSchema, schemas),
    "is-refusal": st.builds(IsRefusal),
    "field-accuracy": st.builds(
        FieldAccuracy,
        st.lists(fields, min_size=1, max_size=4).map(tuple),
        st.sampled_from(["weighted_average", "all_or_nothing"]),
    ),
    "json-match": st.builds(JsonMatch, st.none() | objects.map(LoadedJson), st.sampled_from(["subset", "equal"])),
    "latency": st.builds(Latency, st.floats(0, 10)),
    "cost": st.builds(Cost, st.floats(0, 10)),
    "token-usage": st.builds(TokenUsageWithin, counts, st.none() | counts, st.none() | counts),
    "execution-metrics": st.builds(
        ExecutionMetrics, counts, st.none() | counts, st.none() | counts, max_duration_ms=st.floats(0, 10)
    ),
    "finish-reason": st.builds(FinishReason, st.sampled_from(["stop", "length", ("stop", "tool_use")])),
}

tools = st.sampled_from(["search", "add", "s*", "?dd", "skill"])
several = st.lists(tools, min_size=1, max_size=3).map(tuple)
used = tools | several | st.builds(Counted, tools, st.just(1), st.just(2) | st.none())
arguments = st.dictionaries(st.sampled_from(["a", "skill"]), scalars, max_size=2)
expected = st.builds(
    ExpectedCall, tools, st.none() | st.just("any") | arguments, max_duration_ms=st.none() | st.just(5.0)
)
OPTIONS |= {
    "similar": st.builds(Similar, st.none() | solid | lists, marks, st.sampled_from(["cosine", "dot", "euclidean"])),
    "tool-trajectory": st.builds(
        ToolTrajectory,
        st.sampled_from(["any_order", "in_order", "exact", "subset", "superset"]),
        expected=st.lists(expected, min_size=1, max_size=3).map(tuple),
        args_match=st.sampled_from(["exact", "superset", "subset", "ignore", ("a",)]),
    ),
    "tool-call-f1": st.builds(ToolCallF1, tools | several, marks),
    "trajectory:tool-used": st.builds(ToolUsed, used) | st.builds(ToolUsed, several, st.just("any")),
    "skill-used": st.builds(SkillUsed, used) | st.builds(SkillUsed, several, st.just("any")),
    "trajectory:tool-sequence": st.builds(
        ToolSequence, several | st.builds(Steps, several, st.sampled_from(["exact", "in_order"]))
    ),
    "trajectory:tool-args-match": st.builds(
        ToolArgsMatch,
        st.builds(
            Arguments, tools, arguments, st.sampled_from(["partial", "exact"]), st.none() | arguments, st.none() | tools
        ),
    ),
    "trajectory:step-count": st.builds(
        StepCount, st.builds(StepBounds, counts, st.none() | counts, st.sampled_from([None, "tool", "message"]))
    ),
}

plain = st.one_of(*(st.tuples(st.just(name), options) for name, options in OPTIONS.items()))


def set_of(children):
    entries = st.lists(
        st.builds(
            lambda child, weight, required, negate: entry(
                child[1], child[0], weight=weight, required=required, negate=negate
            ),
            children,
            weights | st.just(0.0),
            st.sampled_from([False, False, True, 0.5]),
            st.booleans(),
        ),
        min_size=1,
        max_size=3,
    )
    return st.builds(
        lambda parts, threshold: ("assert-set", AssertSet(tuple(parts), threshold)), entries, st.none() | fractions
    )


one_level = set_of(plain)
two_levels = set_of(plain | one_level)
sets = one_level | two_levels | set_of(plain | two_levels)
OPTIONS["assert-set"] = sets.map(lambda pair: pair[1])

usages = st.none() | st.builds(TokenUsage, input=st.none() | counts, output=counts, total=st.none() | counts)
calls = st.lists(
    st.builds(ToolCall, tools, arguments, duration_ms=st.none() | st.sampled_from([1.0, 9.0])), max_size=3
).map(tuple)
answers = st.builds(
    answer,
    st.none() | texts | objects.map(json.dumps),
    reference=st.none() | texts | objects,
    token_usage=usages,
    cost_usd=st.none() | st.floats(0, 10),
    duration_ms=st.none() | st.floats(0, 10),
    finish_reason=st.none() | st.sampled_from(["stop", "end_turn", "max_tokens"]),
    messages=st.just(()) | calls.map(lambda made: (Message("assistant", "", tool_calls=made),)),
    threshold=fractions,
)


def test_every_type_of_these_families_is_held_to_the_laws():
    families = ("matching", "similarity", "json", "markup", "sql", "data", "measured", "structure")
    families = (*families, "tool_calls", "trajectory", "embeddings")
    ours = {name for name, place in TYPES.items() if place.split(":")[0].rpartition(".")[2] in families}
    assert OPTIONS.keys() == ours - {"tool-errors", "permission-denials", "tool-state", "turns"}, (
        "add how its options are drawn"
    )


each_type = pytest.mark.parametrize("name", OPTIONS)


@each_type
@given(data=st.data(), context=answers)
@settings(max_examples=examples(30, 12))
def test_not_x_is_exactly_the_complement_of_x(name, data, context):
    grade = graded(data.draw(OPTIONS[name]), context)
    negated = grade.negated()
    needs = grade.needs if grade.needs is None or grade.error is not None else round(grade.needs, PLACES)
    assert negated.negated() == structs.replace(grade, needs=needs)
    if grade.error is not None:
        assert negated is grade
        return
    assert negated.score == pytest.approx(1.0 - grade.score, abs=1e-12)
    assert negated.counted == pytest.approx(1.0 - grade.counted, abs=1e-12)
    assert negated.passed is not grade.passed
    assert [check.passed for check in negated.checks] == [not check.passed for check in grade.checks]


@each_type
@given(data=st.data(), context=answers)
@settings(max_examples=examples(30, 12))
def test_the_same_answer_gets_the_same_grade_with_evidence(name, data, context):
    assertion = data.draw(OPTIONS[name])
    grade = graded(assertion, context)
    assert grade == graded(copy(assertion), copy(context))
    assert 0.0 <= grade.score <= 1.0
    if grade.error is not None:
        assert (grade.passed, grade.checks) == (False, ())
        assert grade.error.code
        assert grade.error.message
        return
    assert grade.checks
    assert all(check.text and len(check.evidence or "") <= LIMIT for check in grade.checks)


@given(data=st.data(), context=answers)
@settings(max_examples=60)
def test_a_negated_set_is_the_complement_of_the_set(data, context):
    _, whole = data.draw(sets)
    straight = graded(AssertSet((entry(whole, "assert-set"),), 1.0), context)
    inverted = graded(AssertSet((entry(whole, "assert-set", negate=True),), 1.0), context)
    assert (straight.error is None) is (inverted.error is None)
    if straight.error is None:
        assert inverted.passed is not straight.passed
        assert inverted.score == 1.0 - straight.score
