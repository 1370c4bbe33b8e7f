"""One sentence of the answer dropped, or turned into its opposite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentv.extensions.mutate.operators.mutant import MOST, Answer, Line, Mutant, quoted
from agentv.extensions.mutate.operators.named import words_of
from agentv.model.values.values import lazy_pattern

_SENTENCE = lazy_pattern(r"[^\s.!?][^.!?\n]*(?:[.!?](?=\w)[^.!?\n]*)*(?:[.!?]+[\"')\]]*)?")
_NEGATED = lazy_pattern(
    r"\b(?P<will>wo)n['’]t\b|\b(?P<can>can)(?:['’]t|not| not)\b"
    r"|\b(?P<verb>is|are|was|were|do|does|did|has|have|had|would|could|should|must|will|may)(?:n['’]t| not)\b"
    r"|\bnot ",
    re.IGNORECASE,
)
_VERB = lazy_pattern(
    r"\b(?:can|is|are|was|were|will|would|could|should|must|may|has|have)\b(?!['’]| not\b)", re.IGNORECASE
)
_AROUND = lazy_pattern(r"(?:\S+ ){0,2}$")
_CLAUSE_ENDS = (", ", "; ", ": ")
_FOLLOWING = lazy_pattern(r"(?: \S+){0,2}")


def drop_sentences(answer: Answer) -> Iterator[Mutant]:
    """A sentence is gone that holds a named value; the rest stays."""
    spans = _sentences(answer.output)
    if len(spans) < 2:
        return
    for start, end, counts in _ranked(answer, spans):
        output = f"{answer.output[:start]}{answer.output[end:].lstrip(' ')}".strip()
        sentence = answer.output[start:end]
        counts_still = counts and answer.named.lost(answer.output, output)
        yield Mutant(
            f"{quoted(sentence)} was dropped", counts_still, output, lines=lost_lines(answer, sentence, output)
        )


def negate_sentences(answer: Answer) -> Iterator[Mutant]:
    """A sentence says the opposite: `not` is added after its verb, or taken away. Questions stay as they are."""
    for start, end, _ in _ranked(answer, _sentences(answer.output)):
        sentence = answer.output[start:end]
        found = None if "?" in sentence else _opposite(sentence)
        if found is not None:
            change = f"{quoted(found.before)} became {quoted(found.after)}"
            output = answer.output[:start] + found.sentence + answer.output[end:]
            lines: tuple[Line, ...] = ({"contains": found.before}, {"not-contains": found.after})
            yield Mutant(change, answer.named.is_stated_in(found.clause), output, lines=lines)


def _sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text start and end; code and JSON have none."""
    if text.lstrip().startswith(("{", "[", "```")):
        return []
    return [found.span() for found in _SENTENCE.finditer(text) if " " in found[0].strip()]


def _ranked(answer: Answer, spans: list[tuple[int, int]]) -> list[tuple[int, int, bool]]:
    """Those that state what is named first."""
    found = [(start, end, answer.named.is_stated_in(answer.output[start:end])) for start, end in spans]
    return sorted(found, key=lambda one: not one[2])[:MOST]


@dataclass(frozen=True, slots=True)
class _Opposite:
    """A sentence turned into its opposite.

    Attributes:
        clause: the part of the original between commas whose meaning changes.
        before, after: the words around the change.
    """

    sentence: str
    clause: str
    before: str
    after: str


def _opposite(sentence: str) -> _Opposite | None:
    """The opposite of a sentence; None if no verb is known in it."""
    found = _NEGATED.search(sentence)
    if found is not None:
        new = found["verb"] or found["can"] or ("will" if found["will"] else "")
        return _replaced(sentence, found, new)
    verb = _VERB.search(sentence)
    return None if verb is None else _replaced(sentence, verb, f"{verb[0]} not")


def _replaced(sentence: str, found: re.Match[str], new: str) -> _Opposite:
    start, end = found.span()
    before, following = _AROUND.search(sentence, 0, start), _FOLLOWING.match(sentence, end)
    first, last = before.start() if before else start, following.end() if following else end
    if sentence[last - 1] in ".!?,;:":
        last -= 1
    clause_start = max(sentence.rfind(mark, 0, start) for mark in _CLAUSE_ENDS) + 1
    ends = (sentence.find(mark, end) for mark in _CLAUSE_ENDS)
    clause = sentence[clause_start : min((one for one in ends if one >= 0), default=len(sentence))]
    changed = sentence[first:start] + new + sentence[end:last]
    return _Opposite(sentence[:start] + new + sentence[end:], clause, sentence[first:last], changed)


def lost_lines(answer: Answer, gone: str, output: str) -> tuple[Line, ...]:
    """The named texts of what is gone, else its longest word that the rest lacks."""
    whole = tuple({"contains": one} for one in answer.phrases if one in gone and one not in output)
    words = [one for one in re.findall(r"[\w][\w.,:/-]*\w|\w", gone) if one not in output]
    named = [one for one in words if answer.named.holds_value(one)]
    best = sorted(named, key=lambda one: (not one[0].isdigit(), -len(one))) or sorted(words, key=len, reverse=True)
    usable = (one for one in best if words_of(one))
    return (*whole, *({"contains": one} for one, _ in zip(usable, range(2), strict=False)))
