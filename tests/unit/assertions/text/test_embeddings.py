import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.assertions.text.embeddings import Similar, cosine
from agentv.model.values.response import Embeddings, Failure
from doubles.embedding import CountingEmbedder
from doubles.nested_grading import answer, graded

vectors = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)


@dataclass
class Services:
    embedding: CountingEmbedder
    asked_for: str | None = "nothing"

    def embedder(self, name):
        self.asked_for = name
        return self.embedding


def said(output, *, embedding=None, reference=None):
    services = Services(embedding or CountingEmbedder())
    return replace(answer(output, reference=reference), _services=services), services


def grade_of(assertion, output, **given):
    return graded(assertion, said(output, **given)[0])


@pytest.mark.parametrize(
    ("assertion", "passed", "score"),
    [
        (Similar("hi"), True, 0.993884),
        (Similar("bye"), False, 0.110432),
        (Similar(("bye", "hi")), True, 0.993884),
        (Similar("hello", 1.0), True, 1.0),
        (Similar("hi", 0.9, "dot"), True, 0.9),
        (Similar("hi", 0.95, "dot"), False, 0.9),
        (Similar("hi", 0.2, "euclidean"), True, 0.876),
        (Similar("hi", 0.1, "euclidean"), False, 0.876),
        (Similar("hello", 0.0, "euclidean"), True, 1.0),
    ],
)
def test_the_closest_reference_counts(assertion, passed, score):
    grade = grade_of(assertion, "hello")
    assert grade.error is None
    assert grade.passed is passed
    assert grade.score == pytest.approx(score, abs=1e-3)
    assert grade.counted == float(passed)


@pytest.mark.parametrize(
    "reply",
    [
        Embeddings(((1.0,),)),
        Embeddings(((), ())),
        Embeddings(((1.0,), (1.0, 2.0))),
        Embeddings(((math.nan,), (1.0,))),
        Failure("http-status", "401", retryable=False),
        Failure("embedder-bad-answer", "odd"),
    ],
)
def test_what_cannot_be_compared_is_no_verdict(reply):
    grade = grade_of(Similar("hi"), "hello", embedding=CountingEmbedder(lambda _: reply))
    assert grade.passed is False
    assert grade.error.code == ("embedder-http-status" if "401" in str(reply) else "embedder-bad-answer")
    assert grade.negated() is grade


def test_without_an_answer_nothing_is_embedded():
    context, services = said(None)
    assert graded(Similar("hi"), context).error.code == "no-output"
    context, services = said(" \n")
    assert graded(Similar("hi"), context).passed is False
    assert services.embedding.asked == []


@given(vectors, vectors)
def test_a_cosine_lies_between_minus_1_and_1(one, other):
    assert -1.0 <= cosine(one, other) <= 1.0
    assert cosine(one, other) == cosine(other, one)
    assert cosine(one, one) == pytest.approx(1.0) or math.hypot(*one) < 1e-150
