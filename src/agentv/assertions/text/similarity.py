"""Similarity of the answer to a reference by shared words: `rouge-n`, `bleu`, `gleu` (SPEC section 7.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal
from unicodedata import normalize

from agentv.assertions.evidence import NO_OUTPUT, excerpt, listed, texts_in
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import PLACES, Grade, reaches
from agentv.registry.fields import Between, DeclaredAssertion, Doc, FileText, FileTexts, Fraction, Issue, missing_extra

if TYPE_CHECKING:
    from regex import Pattern
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # the package has no types

LONGEST = 200_000
"""Maximum length of an answer, in characters."""

GLEU_ORDER = 4
"""Length of the longest n-grams, in words, that GLEU counts."""

References = Annotated[
    FileText | FileTexts | None,
    Doc("the reference, or several of which the closest counts; default: the expected output"),
]


class _Similar(DeclaredAssertion):
    """Base class of the types that score the similarity of an answer to a reference."""

    __slots__ = ()

    value: References
    threshold: float

    def label(self) -> str:
        """The first few references."""
        return listed(texts_in(self.value))

    def validate(self) -> Iterable[Issue]:
        """Report a threshold that every answer reaches, and references without words."""
        if self.threshold == 0:
            hint = "weight: 0 reports the score without counting it"
            yield Issue(("threshold",), "every answer scores at least 0, so this checks nothing", hint=hint)
        for place, one in enumerate(texts_in(self.value)):
            if not words(one):
                path: tuple[str | int, ...] = ("value",) if isinstance(self.value, str) else ("value", place)
                yield Issue(
                    path, f"the reference {one!r} contains no words, so no answer is similar to it", "missing-value"
                )

    def grade(self, context: AssertionContext) -> Grade:
        """Score the answer, and compare the score with the threshold."""
        if context.output is None:
            return NO_OUTPUT
        references = texts_in(self.value) or texts_in(context.reference or None)
        if not any(words(one) for one in references):
            return Grade.errored("no-reference", "there is neither a value nor an expected output to compare with")
        if len(context.output) > LONGEST:
            message = f"the answer has {len(context.output):,} characters; the maximum is {LONGEST:,}"
            return Grade.errored("too-long", message)
        score = round(min(max(self.score(context.output, references), 0.0), 1.0), PLACES)
        passed = reaches(score, self.threshold)
        evidence = f"scores {score:.4g}, threshold {self.threshold:g}: {excerpt(context.output, 120)}"
        grade = Grade.of(passed, f"is like {listed(references)}", evidence)
        return Grade(score, passed, grade.checks, has_own_threshold=True, needs=self.threshold)

    def score(self, output: str, references: Sequence[str]) -> float:
        """Return the similarity from 0 to 1, the highest over several references."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class RougeN(_Similar):
    """The answer shares enough n-grams of words with a reference: ROUGE-N, the F1 of precision and recall."""

    value: References = None
    threshold: Annotated[Fraction, Doc("minimum score to pass")] = 0.75
    n: Annotated[int, Between(1, 9), Doc("n-gram length: 1 is ROUGE-1, 2 is ROUGE-2")] = 1

    def validate(self) -> Iterable[Issue]:
        """Report a missing library, else what all such types report."""
        missing = missing_extra("rouge_score", "metrics", "computing ROUGE")
        return [missing] if missing is not None else _Similar.validate(self)

    def score(self, output: str, references: Sequence[str]) -> float:
        """Return ROUGE-N (C.-Y. Lin, 2004) as Google's rouge-score computes it."""
        scorer = _rouge(self.n)
        return max(float(scorer.score(one, output)[f"rouge{self.n}"].fmeasure) for one in references)


@dataclass(frozen=True, slots=True)
class Bleu(_Similar):
    """The answer shares enough n-grams of one to four words with a reference: BLEU, case-insensitive."""

    value: References = None
    threshold: Annotated[Fraction, Doc("minimum score to pass")] = 0.5
    tokenize: Annotated[
        Literal["13a", "intl", "zh", "char", "none"],
        Doc(
            "sacrebleu tokenizer: 13a splits at spaces and punctuation, zh for Chinese, char for other "
            "languages without spaces"
        ),
    ] = "13a"

    def validate(self) -> Iterable[Issue]:
        """Report a missing library, else what all such types report."""
        missing = missing_extra("sacrebleu", "metrics", "computing BLEU")
        return [missing] if missing is not None else _Similar.validate(self)

    def score(self, output: str, references: Sequence[str]) -> float:
        """Return sentence BLEU (K. Papineni et al., 2002) as sacrebleu computes it: smoothed, with effective order."""
        from sacrebleu import sentence_bleu

        composed, given = normalize("NFC", output), [normalize("NFC", one) for one in references]
        return float(sentence_bleu(composed, given, lowercase=True, tokenize=self.tokenize).score) / 100


@dataclass(frozen=True, slots=True)
class Gleu(_Similar):
    """The answer shares enough n-grams of one to four words with a reference: GLEU, Google's sentence-level BLEU."""

    value: References = None
    threshold: Annotated[Fraction, Doc("minimum score to pass")] = 0.5

    def score(self, output: str, references: Sequence[str]) -> float:
        """Return GLEU (Y. Wu et al., 2016, section 6): the lower of precision and recall, over 1- to 4-grams."""
        # implemented here, because importing a library that has it takes a quarter of a second
        found, shares = _ngrams(words(output)), [0.0]
        for one in references:
            wanted = _ngrams(words(one))
            shares.append((found & wanted).total() / max(found.total(), wanted.total(), 1))
        return max(shares)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, normalized to NFC, without punctuation.

    In scripts that are written without spaces, such as Chinese, Japanese and Thai, every character is a word.
    """
    return [one.lower() for one in _word().findall(normalize("NFC", text))]


@lru_cache(maxsize=1)
def _word() -> Pattern[str]:
    import regex

    unspaced = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    return regex.compile(rf"[{unspaced}]\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--[{unspaced}]]+", regex.VERSION1)


def _ngrams(tokens: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter(
        tuple(tokens[at : at + length]) for length in range(1, GLEU_ORDER + 1) for at in range(len(tokens) - length + 1)
    )


class _Words:
    """Tokenizer for rouge-score, whose own one only knows the letters a to z."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text."""
        return words(text)


@lru_cache(maxsize=9)
def _rouge(n: int) -> RougeScorer:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer([f"rouge{n}"], tokenizer=_Words())
