"""`similar`: compares the meaning of the answer with a reference, using an embedding model (SPEC section 7.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Annotated, ClassVar, Literal

from agentv.assertions.evidence import NO_OUTPUT, excerpt, listed, texts_in
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import PLACES, TOLERANCE, Check, Grade
from agentv.model.suite.suite import JUDGE_TIMEOUT_S
from agentv.model.values.response import Embeddings, Failure
from agentv.registry.fields import Alias, Between, DeclaredAssertion, Doc, FileText, FileTexts, Issue

Vector = Sequence[float]
Measure = Literal["cosine", "dot", "euclidean"]


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two vectors, from -1 to 1, or 0 if one of them has length 0."""
    lengths = math.hypot(*one) * math.hypot(*other)
    return min(max(dot(one, other) / lengths, -1.0), 1.0) if lengths else 0.0


def dot(one: Vector, other: Vector) -> float:
    """Return the dot product of two vectors, which is their cosine if both have length 1."""
    return math.fsum(map(mul, one, other))


_MEASURES: dict[Measure, Callable[[Vector, Vector], float]] = {"cosine": cosine, "dot": dot, "euclidean": math.dist}


@dataclass(frozen=True, slots=True)
class Similar(DeclaredAssertion):
    """The meaning of the answer is similar to that of a reference: their embeddings are close."""

    value: Annotated[
        FileText | FileTexts | None,
        Doc("the reference, or several of which the closest counts; default: the expected output"),
    ] = None
    threshold: Annotated[float, Between(0), Doc("minimum similarity to pass; euclidean: maximum distance")] = 0.75
    measure: Annotated[Measure, Doc("how two embeddings are compared")] = "cosine"
    embedder: Annotated[
        str | None,
        Alias(("provider", "judge", "model")),
        Doc("the target that computes embeddings; default: the target under test, else the judge in effect"),
    ] = None

    needs_embedder: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = JUDGE_TIMEOUT_S

    def label(self) -> str:
        """The first few references."""
        return listed(texts_in(self.value))

    def validate(self) -> Iterable[Issue]:
        """Report a threshold that every answer reaches or that none can reach."""
        if self.measure != "euclidean" and self.threshold == 0:
            hint = "weight: 0 reports the score without counting it"
            yield Issue(("threshold",), "nearly any two texts are this similar, so this checks nothing", hint=hint)
        elif self.measure == "cosine" and self.threshold > 1:
            yield Issue(("threshold",), f"a cosine is at most 1, so no answer can reach {self.threshold:g}")

    async def grade(self, context: AssertionContext) -> Grade:
        """Embed the answer and the references, and compare the similarity to the closest one with the threshold."""
        references = texts_in(self.value) or texts_in(context.reference or None)
        if context.output is None:
            return NO_OUTPUT
        if not any(one.strip() for one in references):
            return Grade.errored("no-reference", "there is neither a value nor an expected output to compare with")
        if not context.output.strip():  # models cannot embed an empty text
            check = Check(f"is similar in meaning to {listed(tuple(references))}", False, "the answer is empty")
            return Grade(0.0, False, (check,), has_own_threshold=True)
        texts = (context.output, *references)
        found = await context.services.embedder(self.embedder).embed(texts, JUDGE_TIMEOUT_S)
        if not isinstance(found, Failure):
            problem = _unusable(found, len(texts))
            if problem is None:
                return self._compared(found, context.output, references)
            found = Failure("bad-answer", problem)
        code = f"embedder-{found.code.removeprefix('embedder-')}"
        message = f"the embedding failed: {found.message}"
        return Grade(0.0, False, reason=message, error=Failure(code, message, found.retryable))

    def _compared(self, found: Embeddings, output: str, references: Sequence[str]) -> Grade:
        answer, *others = found.vectors
        measures = [_MEASURES[self.measure](answer, other) for other in others]
        is_distance = self.measure == "euclidean"
        closest = min(measures) if is_distance else max(measures)
        passed = closest <= self.threshold + TOLERANCE if is_distance else closest >= self.threshold - TOLERANCE
        score = 1 / (1 + closest) if is_distance else min(max(closest, 0.0), 1.0)
        text = f"is similar in meaning to {listed((references[measures.index(closest)],))}"
        what = "distance" if is_distance else self.measure
        evidence = f"{what} {closest:.4g}, threshold {self.threshold:g}: {excerpt(output, 120)}"
        return Grade(
            round(score, PLACES),
            passed,
            (Check(text, passed, evidence),),
            has_own_threshold=True,
            cost_usd=found.cost_usd,
            token_usage=found.token_usage,
            needs=None if is_distance else self.threshold,
        )


def _unusable(found: Embeddings, texts: int) -> str | None:
    """Return why the embeddings cannot be compared, or None if they can."""
    vectors = found.vectors
    if len(vectors) != texts:
        return f"requested embeddings of {texts} texts, received {len(vectors)}"
    if not vectors[0] or len({len(vector) for vector in vectors}) > 1:
        return "the embeddings received are empty or differ in length"
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        return "an embedding contains a value that is not a finite number"
    return None
