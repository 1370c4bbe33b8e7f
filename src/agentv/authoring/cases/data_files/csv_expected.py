"""The text of an `__expected` cell as an entry of `assert:`: promptfoo's short form of an assertion.

    TYPE:VALUE   not-TYPE:VALUE   TYPE(0.8):VALUE   TYPE   any other text, which the answer must equal

Source: promptfoo's documentation of CSV test cases. The types are agentv's, a project's own among them.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from functools import cached_property

from agentv.authoring.assertions.type_names import AssertionTypes
from agentv.authoring.source.json_text import parse_json
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.source.scalars import resolve
from agentv.model.values.span import Span

_PREFIXES = {"javascript": "javascript", "fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}
"""What promptfoo also takes for a type in front of a colon; a project's own file of such a name does not change it."""

LIST_TYPES = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
"""Types whose value is a list, written with commas."""

DOCUMENTS = frozenset({"is-json", "contains-json", "json-schema", "json-match"})
"""Types whose value may be JSON."""

_ELSEWHERE = (
    "classifier",
    "moderation",
    "perplexity",
    "perplexity-score",
    "ruby",
    "guardrails",
    "is-valid-function-call",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "model-graded-closedqa",
    "model-graded-factuality",
    "conversation-relevance",
    "search-rubric",
)
"""Types of promptfoo's that agentv has not: said to be unknown, instead of compared as text."""

_FILE = re.compile(r"file://.*\.(?:(?P<python>py)|[cm]?[jt]s)(?::\w[\w.]*)?")
_BEGIN = re.compile(r"(?P<word>[A-Za-z][\w-]*)(?:\(\d+(?:\.\d+)?\))?:")
_NEAR = 0.75
"""Share of letters in place from which on a word is probably a misspelt type."""


class Expectations:
    """Reads the cells of one suite.

    Args:
        types: the assertion types of the suite.
    """

    def __init__(self, types: AssertionTypes) -> None:
        self._types = types
        self._names = types.names

    def entry(self, text: str, at: Span, threshold: Node | None, report: Report) -> MapNode:
        """The assertion entry of a cell; all of its nodes have the cell's position.

        Args:
            text: of the cell.
            at: position of the cell.
            threshold: from its own column, which overrides one in the text.
            report: receives errors, and warnings about probable mistakes.
        """
        text = text.strip()
        name, written, value = self._parts(text, at, report)
        if name == "equals" and value is None:
            self._doubt(text, at, report)
            value = Scalar(text, text, at)
        threshold = threshold or written
        if threshold is None:
            return MapNode({name: value or Scalar(None, "", at)}, {name: at}, at)
        items: dict[str, Node] = {"type": Scalar(name, name, at)}
        if value is not None:
            items[self._types.short(name) or "value"] = value
        # of a type that has no threshold, it is the score that the grade must reach
        items["threshold" if self._types.takes(name, "threshold") else "min_score"] = threshold
        return MapNode(items, {key: node.at for key, node in items.items()}, at)

    def _parts(self, text: str, at: Span, report: Report) -> tuple[str, Node | None, Node | None]:
        file = _FILE.fullmatch(text)
        if file is not None:
            path = text.removeprefix("file://")
            return ("python" if file["python"] else "javascript"), None, Scalar(path, path, at)
        found = self._pattern.fullmatch(text)
        if found is None:
            return "equals", None, None
        name = found["not"] + _PREFIXES.get(found["type"], found["type"])
        threshold, value = found["threshold"], found["value"]
        return (
            name,
            None if threshold is None else _number(threshold, at),
            None if value is None else _value(_bare(name), value.strip(), at, report),
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        names = sorted({*self._names, *_ELSEWHERE}, key=len, reverse=True)
        written = "|".join(re.escape(name).replace(r"\-", "[-_]") for name in names)
        prefixes = "|".join(f"{prefix}(?=:)" for prefix in _PREFIXES)
        return re.compile(
            rf"(?P<not>(?:not[-_])*)(?P<type>{prefixes}|{written})"
            r"(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?",
            re.DOTALL,
        )

    def _doubt(self, text: str, at: Span, report: Report) -> None:
        """A text that begins nearly as a type is compared as a whole, which is seldom meant."""
        begin = _BEGIN.match(text)
        if begin is None:
            return
        word = begin["word"]
        near = nearest(word.lower(), [*self._names, *_PREFIXES])
        if near is None or _likeness(word.lower(), near) < _NEAR:
            return
        message = f"no assertion type '{word}', so the answer must equal this whole text"
        hint = f"did you mean '{near}:'? If not, put 'equals:' in front"
        report.warning("nearly-an-assertion", at, message, hint=hint)


def _likeness(one: str, other: str) -> float:
    from rapidfuzz.distance import DamerauLevenshtein

    return DamerauLevenshtein.normalized_similarity(one, other)


def _bare(name: str) -> str:
    return name.replace("_", "-").rpartition("not-")[2]


def _value(name: str, text: str, at: Span, report: Report) -> Node:
    if name in LIST_TYPES and not text.startswith("file://"):
        parts = (
            next(csv.reader([" ".join(text.splitlines())], skipinitialspace=True)) if '"' in text else text.split(",")
        )
        items = (item.strip() for item in parts)
        return ListNode([Scalar(item, item, at) for item in items], at)
    if name in DOCUMENTS and text.startswith(("{", "[")):
        own = Report()
        found = parse_json(text, at, own)
        for one in own.diagnostics:
            report.add(replace(one, span=at))  # columns count inside the text, which may stand in doubled quotes
        return found or MapNode({}, {}, at)
    return _number(text, at)


def _number(text: str, at: Span) -> Scalar:
    """A number where the text is one, for options that are numbers; others read it as it is written."""
    value = resolve(text)
    return Scalar(value if isinstance(value, int | float) and not isinstance(value, bool) else text, text, at)
