"""Places in an answer that a check of a text found, from what a row stores of the check.

A row has the text that was looked for as the check quotes it: on one line, without white space around it, and cut if
it is long. So a place is given only where no other text that is quoted so could have been found elsewhere; else none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from time import monotonic

from agentv.model.run.grade import NOT, Check
from agentv.model.run.trial import Score

Span = tuple[int, int]

MOST_PLACES = 50
"""Places of one check."""

PATTERNS_S = 0.2
"""Seconds that the patterns of one trial may take."""

_CUT = "…"
_LEAST_QUOTE = 8
_FLAGS = ("", "i", "m", "s", "im", "is", "ms", "ims")
_TEXT = re.compile(r"(contains|starts with|ends with|matches) '(.+)'( in any case)?", re.DOTALL)
_TYPES = {
    "contains": frozenset({"contains", "icontains", "contains-all", "icontains-all"}),
    "starts with": frozenset({"starts-with"}),
    "ends with": frozenset({"ends-with"}),
    "matches": frozenset({"regex"}),
}


class EvidenceSpans:
    """Finds what the checks of one trial found in its answer.

    Args:
        output: the answer.
        shown: characters of it that a page holds; what lies behind them has no place.
        clock: seconds.
    """

    def __init__(self, output: str, shown: int, clock: Callable[[], float] = monotonic) -> None:
        self._output = output
        self._shown = shown
        self._clock = clock
        self._left = PATTERNS_S
        folded = output.casefold()
        self._folded = folded if len(folded) == len(output) else None  # else places would move

    def of(self, score: Score, check: Check) -> list[Span]:
        """Places of a check, in UTF-16 code units, which is how a browser counts; empty: none, or not known."""
        found = [span for span in self._places(score, check) if span[1] <= self._shown]
        return list(self._units(found))

    def _places(self, score: Score, check: Check) -> Sequence[Span]:
        if score.grade.asked_judge is not None:
            return self._quotation(check.evidence or "")
        inverted = check.text.startswith(NOT)
        said = _TEXT.fullmatch(check.text.removeprefix(NOT))
        if said is None or check.passed == inverted or _CUT in said[2]:
            return ()
        what, value, any_case = said.groups()
        if score.entry.shown_type.removeprefix("not-") not in _TYPES[what]:
            return ()
        if what == "matches":
            return self._matched(value)
        text = self._folded if any_case else self._output
        if text is None:
            return ()
        needle = value.casefold() if any_case else value
        return self._contained(text, needle, check.evidence or "") if what == "contains" else self._edge(what, needle)

    def _contained(self, text: str, needle: str, evidence: str) -> Sequence[Span]:
        found = _occurrences(text, needle)
        if len(found) < 2:
            return found
        around = evidence.strip(_CUT)
        if around != evidence and self._output.count(around) == 1:
            at = self._output.index(around)
            near = [span for span in found if at <= span[0] and span[1] <= at + len(around)]
            if len(near) == 1:
                return near
        same = all(text[begin:end] == needle for begin, end in found)
        alike = len({_sides(text, span) for span in found}) == 1
        return found if same and alike else ()

    def _edge(self, what: str, needle: str) -> Sequence[Span]:
        stripped = self._output.strip()
        begin = self._output.find(stripped)
        if what == "starts with":
            return [(begin, begin + len(needle))] if stripped.startswith(needle) else ()
        end = begin + len(stripped)
        return [(end - len(needle), end)] if stripped.endswith(needle) else ()

    def _matched(self, pattern: str) -> Sequence[Span]:
        """The first match, if it is the same with whichever flags the pattern may have had."""
        import regex

        patterns = {pattern, pattern.replace(" ", r"\s+")}
        spans = set()
        for flags in _FLAGS:
            for one in patterns:
                begun = self._clock()
                if self._left <= 0:
                    return ()
                try:
                    bits = sum(int(getattr(regex, letter.upper())) for letter in flags)
                    match = regex.compile(one, bits).search(self._output, timeout=self._left)
                except (regex.error, TimeoutError, RecursionError, OverflowError, ValueError):
                    return ()
                self._left -= self._clock() - begun
                if match is not None:
                    spans.add(match.span())
        return [span for span in spans if span[0] < span[1]] if len(spans) == 1 else ()

    def _quotation(self, evidence: str) -> Sequence[Span]:
        """What a judge quotes word for word, and only from one place."""
        quoted = evidence.strip().strip("\"'“”‘’").strip()
        if len(quoted) < _LEAST_QUOTE or self._output.count(quoted) != 1:
            return ()
        begin = self._output.index(quoted)
        return [(begin, begin + len(quoted))]

    def _units(self, spans: Sequence[Span]) -> Iterator[Span]:
        for begin, end in sorted(spans):
            before = begin + _pairs(self._output[:begin])
            yield before, before + end - begin + _pairs(self._output[begin:end])


def _pairs(text: str) -> int:
    """Characters that are two units in UTF-16."""
    return 0 if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)


def _occurrences(text: str, needle: str) -> list[Span]:
    """Where the text occurs, whatever white space is between its words; none where it does too often."""
    if any(letter.isspace() and letter != " " for letter in needle) or not needle.strip():
        return []
    pattern = re.compile(r"\s+".join(map(re.escape, needle.split(" "))))
    found: list[Span] = []
    match = pattern.search(text)
    while match is not None:
        if len(found) == MOST_PLACES:
            return []
        found.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return found


def _sides(text: str, span: Span) -> tuple[bool, bool]:
    """Whether there is white space before and after."""
    begin, end = span
    return text[max(0, begin - 1) : begin].isspace(), text[end : end + 1].isspace()
