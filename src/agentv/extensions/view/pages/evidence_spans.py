"""Places in an answer that a check of a text found, from what a row stores of the check.

A row has the text that was looked for as the check quotes it: on one line, without white space around it, and cut if
it is long. So a place is given only where no other text that is quoted so could have been found elsewhere; else none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any

from agentv.model.run.grade import NOT, Check
from agentv.model.run.trial import Score
from agentv.model.values.json_path import JsonPath, Missing, parse, read

Span = tuple[int, int]

MOST_PLACES = 50
"""Places of one check."""

PATTERNS_S = 0.2
"""Seconds that the patterns of one trial may take."""

_CUT = "…"
_LEFT_OUT = " […] "
_MARGIN = 40
"""Characters around what was found that evidence has on either side."""

_LEAST_QUOTE = 8
_FLAGS = ("", "i", "m", "s", "im", "is", "ms", "ims")
_ONE_OF = re.compile(r"contains one of ('.+')( and \d+ more)?( in any case)?", re.DOTALL)
_ONE_OF_TYPES = frozenset({"contains-any", "icontains-any"})
_FIELDS = "field-accuracy"
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
        type_ = score.entry.shown_type.removeprefix("not-")
        if type_ == _FIELDS:
            return self._field(check.text.removeprefix(NOT))
        return self._one_of(check) if type_ in _ONE_OF_TYPES else self._said(type_, check)

    def _said(self, type_: str, check: Check) -> Sequence[Span]:
        """Of a check that looks for one text, or a pattern."""
        inverted = check.text.startswith(NOT)
        said = _TEXT.fullmatch(check.text.removeprefix(NOT))
        if said is None or check.passed == inverted or _CUT in said[2]:
            return ()
        what, value, any_case = said.groups()
        if type_ not in _TYPES[what]:
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

    def _one_of(self, check: Check) -> Sequence[Span]:
        """What was found of several texts: the only one of them that lies where the evidence says, or may lie."""
        said = _ONE_OF.fullmatch(check.text.removeprefix(NOT))
        window = self._window(check.evidence or "")
        if said is None or window is None or check.passed == check.text.startswith(NOT):
            return ()
        values, more, any_case = said.groups()
        text = self._folded if any_case else self._output
        if text is None:
            return ()
        begin, end = window
        if begin > 0 and end < len(text):  # cut on both sides, so what was found lies right between
            return [(begin + _MARGIN, end - _MARGIN)] if end - begin > 2 * _MARGIN else ()
        if more or _CUT in values:
            return ()
        found = set()
        for value in values[1:-1].split("', '"):
            needle = value.casefold() if any_case else value
            found |= {span for span in _occurrences(text, needle) if _around(span, len(text)) == window}
        return list(found) if len(found) == 1 else ()

    def _window(self, evidence: str) -> Span | None:
        """The part of the answer that evidence is; None: not known."""
        if _LEFT_OUT in evidence:
            return None
        if evidence == self._output:
            return 0, len(evidence)
        inside = evidence.removeprefix(_CUT).removesuffix(_CUT)
        if not inside or inside == evidence or evidence in self._output or self._output.count(inside) != 1:
            return None
        begin = self._output.index(inside)
        end = begin + len(inside)
        cut = (evidence.startswith(_CUT), evidence.endswith(_CUT))
        return (begin, end) if cut == (begin > 0, end < len(self._output)) else None

    def _field(self, text: str) -> Sequence[Span]:
        """The value of a field, where the answer is an object as JSON and the check names one path."""
        paths = [path for path in _paths(text) if path is not None]
        begun = self._clock()
        if len(paths) != 1 or self._left <= 0 or len(self._output) > self._shown:
            return ()
        try:
            span = _value_at(self._output, paths[0])
        except (ValueError, RecursionError):
            return ()
        finally:
            self._left -= self._clock() - begun
        return () if span is None else (span,)

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


def _around(span: Span, length: int) -> Span:
    return max(span[0] - _MARGIN, 0), min(span[1] + _MARGIN, length)


def _paths(text: str) -> Iterator[JsonPath | None]:
    """What may be the path of `PATH is VALUE`; a key or a value may contain ` is `."""
    for found in re.finditer(" is ", text):
        try:
            yield parse(text[: found.start()])
        except ValueError:
            yield None


def _value_at(text: str, path: JsonPath) -> Span | None:
    """Where the value of a path stands in the text of an object; None: nowhere, or that is not certain.

    Raises:
        ValueError: the text is no JSON.
    """
    decode = json.JSONDecoder().raw_decode
    whole = json.loads(text)
    wanted = read(path, whole)
    if not isinstance(whole, dict) or isinstance(wanted, Missing):
        return None
    begin = _after_space(text, 0)
    for step in path.steps:
        found = [at for key, at in _members(text, begin, decode) if str(key) == str(step)]
        if len(found) != 1:  # of a key that stands twice the last one counts, or a list is counted from its end
            return None
        begin = found[0]
    value, end = decode(text, begin)
    return (begin, end) if value == wanted else None


def _members(text: str, at: int, decode: Callable[[str, int], tuple[Any, int]]) -> Iterator[tuple[str | int, int]]:
    """The keys, or the places, of an object or a list that begins somewhere, and where each value begins."""
    is_object, number = text[at] == "{", 0
    if text[at] not in "{[":
        return
    at = _after_space(text, at + 1)
    while text[at] not in "]}":
        key: str | int = number
        if is_object:
            key, at = decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # the colon
        yield key, at
        at = _after_space(text, decode(text, at)[1])
        at = _after_space(text, at + 1) if text[at] == "," else at
        number += 1


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n\r":
        at += 1
    return at


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
