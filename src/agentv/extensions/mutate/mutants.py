"""Input and output of operators, and the words that a case names: a mutant must change one of them to count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from zlib import crc32

from msgspec import Struct

from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case
from agentv.model.values.message import Message, reference_text
from agentv.model.values.trace import Trace
from agentv.model.values.values import Json, lazy_pattern

_WORD = lazy_pattern(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’_-]\w+)*|\w+")
_PATHS = frozenset({"file", "path", "command", "embedder", "judge", "provider", "flags", "language", "exit"})
"""Options whose values are not content of an answer."""

_COMMON_TEXT = (
    "a an and any are as at be been but by can could did do does for from had has have he her his how i "
    "if in into is it its may me might must my of on or our shall she should so such than that the their "
    "them then there these they this those to us was we were what when where which who will with would "
    "you your answer answers response reply says say states mentions true false none null "
)
_COMMON = frozenset(_COMMON_TEXT.split())


@lru_cache(maxsize=2048)
def words_of(text: str) -> frozenset[str]:
    """Return the words and numbers of a text in lower case, without the most common English words."""
    return frozenset(map(str.casefold, _WORD.findall(text))) - _COMMON


class NamedWords(Struct, frozen=True):
    """Words that the criteria, the assertions and the expected output of a case name.

    Attributes:
        values: words of the assertions' options and of the expected output; numbers in the criteria.
        words: the other words of the criteria and of rubrics.
        types: the types of the assertions.
    """

    values: frozenset[str]
    words: frozenset[str]
    types: frozenset[str]

    def holds_value(self, text: str) -> bool:
        """Whether a text contains a named word. Use it for a value or phrase that a mutant replaces."""
        found = words_of(text)
        return not found.isdisjoint(self.values) or not found.isdisjoint(self.words)

    def is_stated_in(self, sentence: str) -> bool:
        """Whether a sentence contains a named value, or two of the other named words."""
        found = words_of(sentence)
        return not found.isdisjoint(self.values) or len(found & self.words) > 1

    def lost(self, before: str, after: str) -> bool:
        """Whether a named word is missing after a change."""
        return not (words_of(before) - words_of(after)).isdisjoint(self.values | self.words)


NOTHING_NAMED = NamedWords(frozenset(), frozenset(), frozenset())


def named_by(case: Case, entries: Iterable[AssertionEntry]) -> NamedWords:
    """Return what a case names, without negated assertions, which name what an answer must not contain.

    Args:
        case: the case, with its criteria and its expected output.
        entries: its assertions, including those that a judge grades.
    """
    values: set[str] = set()
    words = set(words_of(case.criteria or ""))
    values |= {word for word in words if word[0].isdigit()}
    types: set[str] = set()
    for entry in (inner for one in entries for inner in one.nested()):
        types.add(entry.shown_type)
        if entry.settings.negate:
            continue
        if getattr(entry.assertion, "reads_json", False):
            values.add("json")
        prose = bool(getattr(entry.assertion, "needs_judge", False))
        texts = () if entry.inner else texts_in(entry.assertion)
        (words if prose else values).update(word for text in texts for word in words_of(text))
        if entry.settings.transform is not None:
            values |= words_of(entry.settings.transform.expression)
    reference = reference_text(case.expected_output) if case.expected_output else ""
    values |= words_of(reference)
    if reference.lstrip().startswith(("{", "[")) and is_json(reference):
        values.add("json")
    return NamedWords(frozenset(values), frozenset(words - values), frozenset(types))


def phrases_of(case: Case, entries: Iterable[AssertionEntry]) -> tuple[str, ...]:
    """Return the texts that a case names as a whole: those of its assertions, and its expected output."""
    kept = (entry for one in entries for entry in one.nested() if not entry.settings.negate)
    texts = [text for entry in kept for text in texts_in(entry.assertion)]
    reference = reference_text(case.expected_output) if case.expected_output else ""
    return tuple(dict.fromkeys(one.strip() for one in (*texts, reference) if one.strip()))


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts and numbers in the options of an assertion."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{value:.15g}"
    else:
        for one in _parts(value):
            yield from texts_in(one)


def _parts(value: object) -> Iterator[object]:
    """Yield the parts of an option's value, without those that are not content of an answer."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from (str(key), one)
    elif isinstance(value, list | tuple):
        yield from value
    elif not isinstance(value, type | AssertionEntry):
        names = (one.name for one in fields(value)) if is_dataclass(value) else getattr(value, "__struct_fields__", ())
        shown = (name for name in names if name not in _PATHS and not name.startswith("_"))
        yield from (getattr(value, name, None) for name in shown)


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


MOST = 3
"""Maximum number of mutants that one operator makes of one answer."""

SHOWN = 60
"""Maximum number of characters of an answer that a message quotes."""

Line = Mapping[str, Json]
"""An assertion as written in an eval file, such as `{"contains": "30 days"}`."""


class Answer(Struct, frozen=True):
    """A passing answer.

    Attributes:
        case: id of its case, which seeds `drawn`.
        output: its text.
        messages: its transcript, if the target reports one.
        trace: trace of the agent, or None.
        others: answers to other cases of the suite.
        named: words that its case names.
        phrases: texts that its case names as a whole.
    """

    case: str
    output: str
    messages: tuple[Message, ...] = ()
    trace: Trace | None = None
    others: tuple[str, ...] = ()
    named: NamedWords = NOTHING_NAMED
    phrases: tuple[str, ...] = ()

    def drawn(self, what: str, count: int) -> int:
        """Return a pseudo-random number below `count` that is the same in every run."""
        return crc32(f"{self.case}\0{what}".encode(errors="surrogatepass")) % count


class Mutant(Struct, frozen=True):
    """An answer made worse in one way.

    Attributes:
        change: the change, as a clause after `no check noticed that`.
        counts: whether it changes something that the case names, so that a check should notice it.
        output: its text; None if unchanged.
        messages, trace: its transcript and trace; None if unchanged.
        lines: assertions that may fail it, best first, not yet tried.
    """

    change: str
    counts: bool
    output: str | None = None
    messages: tuple[Message, ...] | None = None
    trace: Trace | None = None
    lines: tuple[Line, ...] = ()

    def is_change_of(self, answer: Answer) -> bool:
        """Whether the mutant differs from the answer that it was made from."""
        if answer.trace is not None and self.messages is not None:
            return self.trace != answer.trace
        if self.messages is not None:
            return self.messages != answer.messages
        return self.output != answer.output


Make = Callable[[Answer], Iterable[Mutant]]


class Operator(Struct, frozen=True):
    """One way to make an answer worse.

    Attributes:
        description: what it does, for `--help` and the documentation.
        make: yields the mutants of an answer, counting ones first; none if the operator does not apply.
    """

    name: str
    description: str
    make: Make


def quoted(text: str) -> str:
    """Quote a text for a message, on one line and shortened."""
    line = " ".join(text.split())
    return f'"{line if len(line) <= SHOWN else line[: SHOWN - 1].rstrip() + "…"}"'
