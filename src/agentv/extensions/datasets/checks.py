"""Assertions for samples, which say what is right and not how an answer is compared with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import ascii_uppercase
from typing import Any

from msgspec import Struct

from agentv.authoring.convert.records import Findings
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, node_of, span_of
from agentv.extensions.datasets.sample import DatasetSample, Entry, text_of

CHOICE = "choice"
_SAME = "The answer says the same as the expected output."
_ASKED = "\n\nEnd your answer with a line 'ANSWER: LETTER', where LETTER is {letters}."


class DatasetCheck(Struct, frozen=True):
    """Comparison of answers with a sample.

    Attributes:
        name: value of `--assert`.
        shared: an entry for the whole suite; None: each case has its own.
        own: the entry of one case; None if it cannot be checked in this way, which is reported.
        compares: needs a reference.
        retrieves: needs retrieved texts, in the variable `context`.
    """

    name: str
    shared: Entry | None = None
    own: Callable[[DatasetSample, Findings], Entry | None] | None = None
    compares: bool = True
    retrieves: bool = False

    def entry(self, sample: DatasetSample, findings: Findings) -> Entry | None:
        """The entry of one case, if it has its own; None also where something is wrong, which is reported."""
        if self.compares and not sample.references:
            message = f"this sample has no reference answer, so '{self.name}' would check nothing"
            findings.error("checks-nothing", sample.at, message)
            return None
        if self.retrieves and "context" not in sample.variables:
            message = f"this sample has no 'retrieval_context', which '{self.name}' needs"
            findings.error("missing-value", sample.at, message)
            return None
        return self.own(sample, findings) if self.own is not None else None


def _text(kind: str, several: str | None = None) -> Callable[[DatasetSample, Findings], Entry]:
    """An assertion on text.

    Args:
        kind: its type, for one reference.
        several: the type that takes a list of them; None: an `assert-set` of which one entry has to pass.
    """

    def entry(sample: DatasetSample, findings: Findings) -> Entry:
        del findings
        if len(sample.references) == 1:
            return {"type": kind, "value": sample.references[0]}
        if several is not None:
            return {"type": several, "value": list(sample.references)}
        entries = [{"type": kind, "value": value} for value in sample.references]
        share = int(10_000 / len(entries)) / 10_000  # just under the score that one of them gives
        return {"type": "assert-set", "name": "any of the references", "threshold": share, "assert": entries}

    return entry


def _choice(sample: DatasetSample, findings: Findings) -> Entry | None:
    """The letter of the right choice, on a line as the input asks for it."""
    letters = ascii_uppercase[: len(sample.choices)]
    letter = sample.references[0].strip().upper()
    if not letters or len(sample.choices) > len(ascii_uppercase):
        findings.error("no-equivalent", sample.at, f"'{CHOICE}' needs a sample with 1 to 26 'choices'")
        return None
    if len(sample.references) > 1 or len(letter) != 1 or letter not in letters:
        findings.error("no-equivalent", sample.at, f"'{CHOICE}' needs one letter of the choices as the reference")
        return None
    return {"type": "regex", "name": "letter", "value": rf"^\W*ANSWER\s*:\W*{letter}\W*$", "flags": "im"}


def with_choices(sample: DatasetSample) -> Node:
    """The input with the choices, and with the required end of the answer, after its last user message."""
    lines = "".join(f"\n{letter}) {choice}" for letter, choice in zip(ascii_uppercase, sample.choices, strict=False))
    letters = " or ".join(ascii_uppercase[: len(sample.choices)])
    assert sample.input is not None  # noqa: S101  # a simulated user has no choices
    return _appended(sample.input, f"\n{lines}{_ASKED.format(letters=letters)}")


def _appended(node: Node, text: str) -> Node:
    if isinstance(node, Scalar):
        return node_of(f"{node.value}{text}", span_of(node.at))
    assert isinstance(node, ListNode)  # noqa: S101  # an input is text or messages
    last = max(place for place, one in enumerate(node.items) if isinstance(one, MapNode))
    items = [_with_content(one, text) if place == last else one for place, one in enumerate(node.items)]
    return ListNode(items, node.at)


def _with_content(node: Node, text: str) -> Node:
    assert isinstance(node, MapNode)  # noqa: S101  # as was seen
    content = node.items["content"]
    if isinstance(content, ListNode):
        block = node_of({"type": "text", "value": text.strip()}, span_of(node.at))
        made: Node = ListNode([*content.items, block], content.at)
    else:
        made = node_of(f"{text_of(content) or ''}{text}", span_of(content.at))
    return MapNode({**node.items, "content": made}, node.keys, node.at)


def _judged(kind: str, *, compares: bool = True, retrieves: bool = False, **options: Any) -> DatasetCheck:
    """A check by the judge, which is the same for all cases."""
    return DatasetCheck(kind, shared={"type": kind, **options}, compares=compares, retrieves=retrieves)


_ALL = (
    DatasetCheck("equals", own=_text("equals")),
    DatasetCheck("contains", own=_text("contains", "contains-any")),
    DatasetCheck("icontains", own=_text("icontains", "icontains-any")),
    DatasetCheck("starts-with", own=_text("starts-with")),
    DatasetCheck("ends-with", own=_text("ends-with")),
    DatasetCheck(CHOICE, own=_choice),
    DatasetCheck("similar", own=_text("similar", "similar")),
    DatasetCheck("rouge-n", own=_text("rouge-n", "rouge-n")),
    DatasetCheck("bleu", own=_text("bleu", "bleu")),
    _judged("factuality"),
    _judged("llm-rubric", value=_SAME),
    _judged("answer-relevance", compares=False),
    _judged("context-recall", retrieves=True),
    _judged("context-faithfulness", compares=False, retrieves=True),
    _judged("context-relevance", compares=False, retrieves=True),
)

CHECKS: Mapping[str, DatasetCheck] = {check.name: check for check in _ALL}
"""Name → check, as `--assert` takes it."""
