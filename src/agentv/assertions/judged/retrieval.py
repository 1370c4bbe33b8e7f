"""Types that grade retrieval: `context-faithfulness`, `context-recall`, `context-relevance` (SPEC section 7.2).

Source: the metrics of RAGAS (Es et al., "RAGAS: Automated Evaluation of Retrieval Augmented Generation", 2023), as
promptfoo names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec.structs import replace

from agentv.assertions.evidence import texts_in
from agentv.assertions.judged.questions import Proportion
from agentv.matching.spelling import nearest
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.rubric import Rubric, RubricItem, RubricMode
from agentv.model.suite.assertion import Transform
from agentv.model.values.response import Failure
from agentv.model.values.retrieved import context_texts
from agentv.model.values.values import JsonObject, lazy_pattern
from agentv.registry.fields import Alias, Doc, FileText, FileTexts, Issue, Nonempty
from agentv.templating import GLOBAL_NAMES, undeclared

_SENTENCE_END = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]*\s+(?=[^\sa-z])"  # a lower-case letter after the stop suggests an abbreviation
    r"|(?<=[。！？])[”’」』）]*\s*"  # these need no space after them
    r"|\n+"
)
_WORD = re.compile(r"\w")
_LIST_MARKER = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


def sentences_of(text: str) -> tuple[str, ...]:
    """Return the sentences, and lines of lists and tables, that contain a word, without list markers."""
    pieces, start = [], 0
    for end in _SENTENCE_END.finditer(text):  # cut after it, so that closing quotes stay with their sentence
        pieces.append(text[start : end.end()])
        start = end.end()
    bare = (_LIST_MARKER.sub("", piece).strip() for piece in (*pieces, text[start:]))
    return tuple(piece for piece in bare if _WORD.search(piece))


MOST_PIECES = 500
"""Maximum number of sentences per question; with more, a judge loses count."""

NOTHING_RETRIEVED = (
    "there is no context: the target returned no retrieved text, and the case has no variable 'context'; "
    'a target returns it as {"output": "…", "context": ["…"]}'
)

Context = Annotated[
    FileText | FileTexts | None,
    Doc("the retrieved text, or a list of texts; default: the variable `context`, else what the target returned"),
]
ContextTransform = Annotated[
    Transform | None,
    Alias(("contextTransform",)),
    Doc("retrieved text from the reply: an expression over `context`, `metadata`, `output`, `json`; $.a; a function"),
]


@dataclass(frozen=True, slots=True)
class _OfContext(Proportion):
    """Base class of the types that grade retrieved text."""

    context: Context = None
    context_transform: ContextTransform = None

    def validate(self) -> Iterator[Issue]:
        """Report two contexts, and invalid thresholds and prompts."""
        yield from Proportion.validate(self)
        if self.context is not None and self.context_transform is not None:
            message = "'context' and 'context_transform' both set the retrieved text; keep one of them"
            yield Issue(("context_transform",), message)

    def missing_inputs(self, variables: JsonObject, *, reference: bool, criteria: bool) -> Iterator[Issue]:
        """Report names in `context_transform` that neither the reply nor the case can have."""
        del reference, criteria
        if self.context_transform is not None:
            yield from transform_issues(self.context_transform, variables)

    def lacks_context(self, variables: JsonObject) -> bool:
        """Return whether only the reply gives the context."""
        return self.context is None and self.context_transform is None and not context_texts(variables.get("context"))

    async def _retrieved(self, context: AssertionContext) -> tuple[str, ...] | Grade:
        """Return the texts of the context, or an errored grade."""
        found: Sequence[str] | Failure = texts_in(self.context)
        if self.context_transform is not None:
            whole = (
                context
                if context.answered is None
                else replace(context, output=context.answered, answered=None, value=None)
            )
            value = await context.services.evaluate(self.context_transform, whole)
            found = value if isinstance(value, Failure) else context_texts(value)
        elif not found:
            found = context.retrieved
            if not found:
                return Grade.errored("no-context", NOTHING_RETRIEVED)
        if isinstance(found, Failure):
            return Grade.errored(found.code, found.message)
        return tuple(found) or Grade.errored("no-context", "there is no context: the retrieved text is empty")


@dataclass(frozen=True, slots=True)
class ContextFaithfulness(_OfContext):
    """A judge breaks the answer down into claims: the score is the share that the retrieved context supports."""

    mode: ClassVar[RubricMode] = "context-faithfulness"
    short: ClassVar[str | None] = "threshold"

    async def rubric(self, context: AssertionContext) -> Rubric | Grade:
        """Return the question with the context, or an errored grade."""
        found = await self._retrieved(context)
        return found if isinstance(found, Grade) else self.build_rubric(context=found)


@dataclass(frozen=True, slots=True)
class ContextRecall(_OfContext):
    """A judge decides for each sentence of the ground truth whether the retrieved context contains it."""

    value: Annotated[FileText | None, Nonempty(), Doc("the ground truth; default: the expected output")] = None

    mode: ClassVar[RubricMode] = "context-recall"
    needs_answer: ClassVar[bool] = False

    def missing_inputs(self, variables: JsonObject, *, reference: bool, criteria: bool) -> Iterator[Issue]:
        """Report a missing ground truth, and undefined names in `context_transform`."""
        yield from _OfContext.missing_inputs(self, variables, reference=reference, criteria=criteria)
        if self.value is None and not reference:
            message = "'context-recall' needs 'value', or 'expected_output' of the case, as the ground truth"
            yield Issue((), message, "missing-key")

    async def rubric(self, context: AssertionContext) -> Rubric | Grade:
        """Return the question with an item per sentence of the ground truth, or an errored grade."""
        reference = self.value if self.value is not None else context.reference
        items = _items("t", sentences_of(reference or ""))
        if not items:
            return Grade.errored("no-reference", "there is neither a value nor an expected output to compare with")
        found = _too_many(items) or await self._retrieved(context)
        return found if isinstance(found, Grade) else self.build_rubric(items=items, context=found)


@dataclass(frozen=True, slots=True)
class ContextRelevance(_OfContext):
    """A judge decides for each sentence of the retrieved context whether it helps to answer the question."""

    mode: ClassVar[RubricMode] = "context-relevance"
    short: ClassVar[str | None] = "threshold"
    needs_answer: ClassVar[bool] = False

    async def rubric(self, context: AssertionContext) -> Rubric | Grade:
        """Return the question with an item per sentence of a single text, or per text of a list."""
        found = await self._retrieved(context)
        if isinstance(found, Grade):
            return found
        items = _items("s", sentences_of(found[0]) if len(found) == 1 else found)
        if not items:
            return Grade.errored("no-context", "the context contains no words")
        return _too_many(items) or self.build_rubric(context=found, items=items)


def _items(letter: str, texts: Iterable[str]) -> tuple[RubricItem, ...]:
    return tuple(RubricItem(f"{letter}{place}", text) for place, text in enumerate(texts, 1))


def _too_many(items: Sequence[RubricItem]) -> Grade | None:
    if len(items) <= MOST_PIECES:
        return None
    message = f"{len(items):,} sentences to grade one by one; the maximum is {MOST_PIECES}"
    return Grade.errored("too-long", message)


TRANSFORM_NAMES = ("context", "metadata", "output", "json", "vars", "env")
"""Names that an expression over a reply can use, besides the variables of the case."""

_OPTIONAL = lazy_pattern(r"\bis\s+(?:not\s+)?(?:un)?defined\b|\|\s*(?:default|d)\b")
_KEY_OF_CONTEXT = lazy_pattern(r"(?<![\w.])context\.(?P<key>[A-Za-z_]\w*)(?P<rest>[\w.]*)(?!\s*\()")
_KEY_OF_VARS = lazy_pattern(r"(?<![\w.])vars\.(?P<key>[A-Za-z_]\w*)")
_OPTION = ("context_transform",)
_PLACE = "'context_transform'"


def transform_issues(transform: Transform, variables: JsonObject) -> Iterator[Issue]:
    """Report names in an expression that neither the reply nor the case can have.

    Args:
        transform: `context_transform` of the entry; only expressions are checked.
        variables: variables of the case.
    """
    expression = transform.expression
    if transform.kind != "jinja" or _OPTIONAL.search(expression):
        return
    known = {*TRANSFORM_NAMES, *GLOBAL_NAMES, *variables}
    for name in sorted(undeclared(f"{{{{ {expression} }}}}") - known):
        near = nearest(name, (*TRANSFORM_NAMES, *variables))
        hint = f"did you mean '{near}'?" if near is not None else _known(variables)
        yield Issue(_OPTION, f"{_PLACE}: '{name}' is not defined", "undefined-variable", hint)
    key = _KEY_OF_VARS.search(expression)
    if key is not None and key["key"] not in variables and "vars" not in variables:
        message = f"{_PLACE}: the case has no variable '{key['key']}'"
        yield Issue(_OPTION, message, "undefined-variable", _known(variables))
    found = _KEY_OF_CONTEXT.search(expression)
    if found is not None and "context" not in variables:  # in promptfoo, it is an object
        name = found["key"]
        message = f"{_PLACE}: 'context' is the list of retrieved texts, which has no '{name}'"
        hint = f"write context[0].{name}, or metadata.{name}"
        if name in ("metadata", "vars"):
            hint = f"write {name}{found['rest']}, without 'context.'"
        yield Issue(_OPTION, message, "undefined-variable", hint)


def _known(variables: JsonObject) -> str:
    names = [*TRANSFORM_NAMES[:4], *list(variables)[:8]]
    return f"available: {', '.join(names)}"
