"""The text family: the words of the final answer (SPEC section 7.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import eq
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias

from msgspec import Struct

from agentv.assertions.evidence import LIMIT, NO_OUTPUT, around, excerpt, listed, quoted
from agentv.matching.patterns import TIMEOUT_S
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.values.values import Json, JsonObject, lazy_pattern
from agentv.registry.fields import Count, Declared, DeclaredAssertion, Doc, FileText, FileTexts, FromFile, Issue, Text

if TYPE_CHECKING:
    from regex import Pattern

_LOOKALIKES = 20
"""Maximum number of texts of a list that are compared again without invisible and similar characters."""

DEFAULT_EDITS = 5
"""Default number of edits for `levenshtein`, as in promptfoo."""

MOST_SEARCHED = 2_000_000_000
"""Maximum number of texts of one assertion times the length of the answer, in characters."""

TOO_LONG = Grade.errored("too-long", "the answer is too long to search for this many texts")


class _OneText(DeclaredAssertion, Struct, frozen=True):
    """Base class of the types that look for one text."""

    value: Annotated[FileText, Doc("the text to find")]

    of_text_alone: ClassVar[bool] = True

    def label(self) -> str:
        """The text, in quotes."""
        return quoted(self.value)


class _SomeTexts(DeclaredAssertion, Struct, frozen=True):
    """Base class of the types that look for several texts."""

    value: Annotated[FileTexts, Doc("the texts to find")]

    of_text_alone: ClassVar[bool] = True
    folds: ClassVar[bool] = False

    def label(self) -> str:
        """The first few texts, in quotes."""
        return listed(self.value)

    def too_long(self, output: str) -> bool:
        """Return whether it would take seconds to search this answer for all texts."""
        return len(self.value) * len(output) > MOST_SEARCHED


class Contains(_OneText, frozen=True):
    """The answer contains a text."""

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the text, case-sensitively."""
        output = context.output
        if output is None:
            return NO_OUTPUT
        return _search_grade(f"contains {quoted(self.value)}", output, output.find(self.value), self.value)


class IContains(_OneText, frozen=True):
    """The answer contains a text; case is ignored."""

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the text in the answer, both case-folded."""
        if context.output is None:
            return NO_OUTPUT
        folded, value = context.output.casefold(), self.value.casefold()
        text = f"contains {quoted(self.value)} in any case"
        return _search_grade(text, _quotable(context.output, folded), folded.find(value), value)


class ContainsAny(_SomeTexts, frozen=True):
    """The answer contains at least one of several texts."""

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the texts in order, and stop at the first match."""
        from agentv.assertions.comparing import only_difference

        output = context.output
        if output is None or self.too_long(output):
            return NO_OUTPUT if output is None else TOO_LONG
        text, shown, values = f"contains one of {listed(self.value)}", output, iter(self.value)
        if self.folds:
            text, output, values = f"{text} in any case", output.casefold(), map(str.casefold, values)
            shown = _quotable(shown, output)
        tried = []
        for value in values:
            at = output.find(value)
            if at >= 0:
                return _search_grade(text, shown, at, value)
            tried.append(value)
        near = (one for one in tried[:_LOOKALIKES] if only_difference(one, shown, _within))
        return _search_grade(text, shown, -1, next(near, tried[0]))


class IContainsAny(ContainsAny, frozen=True):
    """The answer contains at least one of several texts; case is ignored."""

    folds: ClassVar[bool] = True


class ContainsAll(_SomeTexts, frozen=True):
    """The answer contains every one of several texts."""

    def grade(self, context: AssertionContext) -> Grade:
        """Look for every text, with one check per text."""
        output = context.output
        if output is None or self.too_long(output):
            return NO_OUTPUT if output is None else TOO_LONG
        shown, suffix, values = output, "", self.value
        if self.folds:
            output, suffix, values = output.casefold(), " in any case", tuple(map(str.casefold, values))
            shown = _quotable(shown, output)
        checks, missing = [], 0
        for one, value in zip(self.value, values, strict=True):
            at, text = output.find(value), f"contains {quoted(one)}{suffix}"
            missing += at < 0
            compared = at >= 0 or missing <= _LOOKALIKES
            checks.append(
                _search_check(text, shown, at, value) if compared else Check(text, False, excerpt(shown, LIMIT))
            )
        return Grade(0.0 if missing else 1.0, not missing, tuple(checks))


class IContainsAll(ContainsAll, frozen=True):
    """The answer contains every one of several texts; case is ignored."""

    folds: ClassVar[bool] = True


Trim: TypeAlias = Annotated[bool, Doc("whether white space at both ends of the answer and the text is ignored")]


class _Edge(_OneText, frozen=True):
    """Base class of the types that check the start or end of the answer."""

    trim: Trim = True

    def validate(self) -> Iterable[Issue]:
        """Report a text of white space alone, which is trimmed to an empty text that every answer matches."""
        if self.trim and not self.value.strip():
            message = "leading and trailing white space is ignored, so there is nothing left to find"
            yield Issue(("value",), message, hint="trim: false compares it as it is written")


class StartsWith(_Edge, frozen=True):
    """The answer starts with a text, ignoring surrounding white space unless `trim: false`."""

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the beginning."""
        if context.output is None:
            return NO_OUTPUT
        output, value = context.output, self.value
        if self.trim:
            output, value = output.lstrip(), value.strip()
        at = 0 if output.startswith(value) else -1
        text, trimmed = f"starts with {quoted(value)}", len(context.output) - len(output)
        return _search_grade(text, output, at, value, lambda one, other: other.startswith(one), trimmed)


class EndsWith(_Edge, frozen=True):
    """The answer ends with a text, ignoring surrounding white space unless `trim: false`."""

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the end."""
        if context.output is None:
            return NO_OUTPUT
        output, value = context.output, self.value
        if self.trim:
            output, value = output.rstrip(), value.strip()
        at = len(output) - len(value) if output.endswith(value) else -1
        return _search_grade(f"ends with {quoted(value)}", output, at, value, lambda one, other: other.endswith(one))


class Equals(DeclaredAssertion, Struct, frozen=True):
    """The answer equals a text (trimmed, unless `trim: false`), or is JSON that equals an object or list."""

    value: Annotated[
        Annotated[Text, FromFile()] | JsonObject | tuple[Json, ...],
        Doc("the text, object or list that the answer must equal"),
    ]
    trim: Trim = True

    of_text_alone: ClassVar[bool] = True

    def label(self) -> str:
        """The text in quotes, or the kind of value."""
        return quoted(self.value) if isinstance(self.value, str) else _kind(self.value)

    def grade(self, context: AssertionContext) -> Grade:
        """Compare texts with texts, and parsed JSON with objects and lists."""
        from agentv.assertions.comparing import only_difference

        output = context.output
        if output is None:
            return NO_OUTPUT
        if isinstance(self.value, str):
            equal = output.strip() == self.value.strip() if self.trim else output == self.value
            near = "" if equal else only_difference(self.value.strip(), output.strip(), eq)
            return Grade.of(equal, f"equals {quoted(self.value)}", f"{near}{excerpt(output, LIMIT - len(near))}")
        return _same_json(self.value, output)


class Regex(DeclaredAssertion, Struct, frozen=True):
    """A regular expression matches anywhere in the answer. Python's syntax by default; at most 2 s."""

    value: Annotated[FileText, Doc("the pattern")]
    flags: Annotated[Text, Doc("letters: i ignore case, m ^ and $ at lines, s dot matches newlines, x verbose")] = ""
    syntax: Annotated[
        Literal["python", "javascript"], Doc("the syntax of the pattern; `regex:` of the suite sets it")
    ] = "python"

    limit_s: ClassVar[float] = TIMEOUT_S
    of_text_alone: ClassVar[bool] = True

    def label(self) -> str:
        """The pattern, in quotes."""
        return quoted(self.value)

    @property
    def _flags(self) -> str:
        if self.syntax == "python":
            return self.flags
        from agentv.matching.patterns import JAVASCRIPT

        return self.flags + JAVASCRIPT

    def validate(self) -> Iterable[Issue]:
        """Report unknown flags, and a pattern that does not compile, matches every answer or may be slow."""
        from agentv.matching.patterns import FLAGS, PatternError, backtracks, compiled, matches_everything

        unknown = [letter for letter in self.flags if letter not in FLAGS]
        if unknown:
            message = f"unknown flag {', '.join(map(repr, unknown))}; known flags: {', '.join(FLAGS)}"
            yield Issue(("flags",), message)
            return
        try:
            compiled(self.value, self._flags)
        except PatternError as error:
            yield Issue(("value",), f"the pattern does not compile: {error}", "bad-regex")
            return
        if matches_everything(self.value, self._flags):
            message = f"the pattern {quoted(self.value)} matches every answer, even an empty one"
            yield Issue(("value",), message, "always-passes", warning=True)
        elif backtracks(self.value, self._flags):
            message = "this pattern can take exponential time: the repeated part can match the same text in two ways"
            yield Issue(("value",), message, "slow-regex", "make sure only one alternative can match it", warning=True)

    def grade(self, context: AssertionContext) -> Grade:
        """Search the answer. A search that exceeds its time limit gives an errored grade."""
        from agentv.matching.patterns import compiled, search

        output = context.output
        if output is None:
            return NO_OUTPUT
        try:
            match = search(compiled(self.value, self._flags), output, self.limit_s)
        except TimeoutError:
            message = f"the search for {quoted(self.value)} took more than {self.limit_s:g} s"
            return Grade.errored("regex-timeout", message)
        start, end = match.span() if match else (-1, -1)
        shown = around(output, start, end) if match else excerpt(output)
        spans = ((start, end),) if start < end else ()
        check = Check(f"matches {quoted(self.value)}", match is not None, shown, spans)
        return Grade(float(check.passed), check.passed, (check,))


class Levenshtein(_OneText, frozen=True):
    """The answer is at most this many edits (inserted, deleted or replaced characters) away from a text."""

    threshold: Annotated[Count, Doc("maximum number of edits")] = DEFAULT_EDITS

    def validate(self) -> Iterable[Issue]:
        """Report a threshold that even an empty answer meets."""
        if self.threshold >= len(self.value):
            message = f"{self.threshold} edits turn {quoted(self.value)} into an empty text, so any short answer passes"
            yield Issue(("threshold",), message, hint=f"less than {len(self.value)}", warning=True)

    def grade(self, context: AssertionContext) -> Grade:
        """Count the edits, up to the threshold."""
        from agentv.assertions.comparing import TooManyEditsError, edits_between

        if context.output is None:
            return NO_OUTPUT
        try:
            edits = edits_between(context.output, self.value, self.threshold)
        except TooManyEditsError as error:
            return Grade.errored("too-long", f"could not count the edits in time: {error}")
        text = f"at most {self.threshold} edits from {quoted(self.value)}"
        if edits is None:
            return Grade.of(False, text, f"more than {self.threshold} edits: {excerpt(context.output, 150)}")
        return Grade.of(True, text, f"{edits} edits")


class WordBounds(Declared, Struct, frozen=True):
    """The bounds of `word-count`, as promptfoo nests them."""

    min: Annotated[Count | None, Doc("minimum number of words")] = None
    max: Annotated[Count | None, Doc("maximum number of words")] = None


class WordCount(DeclaredAssertion, Struct, frozen=True):
    """The answer has exactly this many words, or a number in an inclusive range; a Chinese character is a word."""

    value: Annotated[Count | WordBounds | None, Doc("exact number of words; or a mapping of min and max")] = None
    min: Annotated[Count | None, Doc("minimum number of words")] = None
    max: Annotated[Count | None, Doc("maximum number of words")] = None

    of_text_alone: ClassVar[bool] = True

    def words(self) -> tuple[int, int | None]:
        """Return the minimum and the maximum number of words; None means no maximum."""
        if isinstance(self.value, int):
            return self.value, self.value
        given = self.value or self
        return given.min or 0, given.max

    def label(self) -> str:
        """The bounds."""
        return _bounds_text(*self.words())

    def validate(self) -> Iterable[Issue]:
        """Report missing or duplicate limits, and limits that no answer or every answer meets."""
        if self.value is not None and (self.min is not None or self.max is not None):
            yield Issue(("value",), "'value' conflicts with 'min' and 'max'; keep one of them")
            return
        low, high = self.words()
        if high is None and low == 0:
            yield Issue((), "word-count needs a number of words: 'value', 'min' or 'max'", "missing-value")
        if high is not None and low > high:
            yield Issue(("min",) if self.value is None else ("value", "min"), f"min ({low}) is above max ({high})")

    def grade(self, context: AssertionContext) -> Grade:
        """Count the words by Unicode's word boundaries."""
        return _count_grade(context.output, *self.words(), count=words_in)


class MinTokens(DeclaredAssertion, Struct, frozen=True):
    """The answer has at least this many words, separated by white space."""

    value: Annotated[Count, Doc("minimum number of words")]

    of_text_alone: ClassVar[bool] = True

    def label(self) -> str:
        """The bound."""
        return str(self.value)

    def validate(self) -> Iterable[Issue]:
        """Report a minimum that every answer meets."""
        if self.value == 0:
            yield Issue(("value",), "every answer has at least 0 words, so this checks nothing")

    def grade(self, context: AssertionContext) -> Grade:
        """Count the words."""
        return _count_grade(context.output, self.value, None, count=_count_tokens)


class MaxTokens(DeclaredAssertion, Struct, frozen=True):
    """The answer has at most this many words, separated by white space."""

    value: Annotated[Count, Doc("maximum number of words")]

    of_text_alone: ClassVar[bool] = True

    def label(self) -> str:
        """The bound."""
        return str(self.value)

    def grade(self, context: AssertionContext) -> Grade:
        """Count the words."""
        return _count_grade(context.output, 0, self.value, count=_count_tokens)


Matches: TypeAlias = Callable[[str, str], bool]


def _within(value: str, output: str) -> bool:
    return value in output or value in output.casefold()


def _search_check(text: str, output: str, at: int, value: str, matches: Matches = _within, trimmed: int = 0) -> Check:
    """Return the check of a search that found `value` at position `at`, which is negative if it was not found.

    `trimmed` is the number of characters that were removed from the beginning of the answer to get `output`.
    """
    if at < 0:
        from agentv.assertions.comparing import only_difference

        near = only_difference(value, output, matches)
        return Check(text, False, f"{near}{excerpt(output, LIMIT - len(near))}")
    spans = ((trimmed + at, trimmed + at + len(value)),) if value and not isinstance(output, _Folded) else ()
    return Check(text, True, around(output, at, at + len(value)), spans)


def _search_grade(text: str, output: str, at: int, value: str, matches: Matches = _within, trimmed: int = 0) -> Grade:
    """Return the grade of a search, given the arguments of `_search_check`."""
    return Grade(0.0 if at < 0 else 1.0, at >= 0, (_search_check(text, output, at, value, matches, trimmed),))


def _quotable(output: str, folded: str) -> str:
    """Return the text to quote as evidence: if case folding changed the length, positions only fit the folded text."""
    return output if len(output) == len(folded) else _Folded(folded)


class _Folded(str):
    """A case-folded text whose positions differ from those in the answer."""

    __slots__ = ()


def _same_json(value: Json, output: str) -> Grade:
    from agentv.assertions.comparing import differences
    from agentv.matching.json_text import NotJson, UnsearchableError, json_in

    text = f"equals {_kind(value)}, as JSON"
    try:
        found = json_in(output, like=value)
    except UnsearchableError as error:
        return Grade.errored("too-long", f"cannot tell whether the answer {text}: it contains {error}")
    if isinstance(found, NotJson):
        return Grade.of(False, text, f"{found.reason}: {excerpt(output, 120)}")
    first = next(differences(value, found), None)
    return Grade.of(first is None, text, first)


def _kind(value: Json) -> str:
    return "the object" if isinstance(value, Mapping) else "the list"


_WORD = lazy_pattern(r"\S+")
_LONG = 1_000_000


def _count_tokens(text: str) -> int:
    """Return the number of words separated by white space. In a long text, they are counted without being copied."""
    return len(text.split()) if len(text) < _LONG else sum(1 for _ in _WORD.finditer(text))


def words_in(text: str) -> int:
    """Return the number of words by Unicode's default word boundaries (UAX #29): segments with a letter or a digit.

    In scripts that are written without spaces, such as Chinese, Japanese and Thai, every character is a word.
    """
    return sum(1 for _ in _unicode_word().finditer(text))


@lru_cache(maxsize=1)
def _unicode_word() -> Pattern[str]:
    import regex

    return regex.compile(r"\b(?=_*+[\p{L}\p{N}])", regex.WORD | regex.V1)


def _count_grade(output: str | None, low: int, high: int | None, *, count: Callable[[str], int]) -> Grade:
    if output is None:
        return NO_OUTPUT
    words = count(output)
    passed = low <= words and (high is None or words <= high)
    return Grade.of(passed, f"has {_bounds_text(low, high)} words", f"{words} words")


def _bounds_text(low: int, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    if low == high:
        return f"exactly {low}"
    return f"{low} to {high}" if low else f"at most {high}"
