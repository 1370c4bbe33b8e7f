"""Converts samples to cases, with assertions that compare answers with them."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Final

from msgspec import Struct

from agentv.authoring.convert.emit import literal
from agentv.authoring.convert.records import Findings, text
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, mapping, node_of, plain, span_of
from agentv.extensions.datasets.formats import FORMATS
from agentv.extensions.datasets.samples import DatasetSample, Entry, text_of
from agentv.model.values.hashes import NumberedHashes, text_hash

CHOICE = "choice"
_CHOICE_INSTRUCTION = "\n\nEnd your answer with a line 'ANSWER: LETTER', where LETTER is {letters}."


class DatasetCheck(Struct, frozen=True):
    """A value of `--assert`: how answers are compared with a sample.

    Attributes:
        name: value of `--assert`.
        shared: the entry for the whole suite; None if each case has its own.
        own: returns the entry of one case, or None if the sample cannot be checked this way, which is reported.
        compares: whether a reference is needed.
        retrieves: whether retrieved texts, in the variable `context`, are needed.
    """

    name: str
    shared: Entry | None = None
    own: Callable[[DatasetSample, Findings], Entry | None] | None = None
    compares: bool = True
    retrieves: bool = False

    def entry(self, sample: DatasetSample, findings: Findings) -> Entry | None:
        """The entry of one case, or None if it is shared or the sample cannot be checked, which is reported."""
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
    """A function that returns an assertion on text.

    Args:
        kind: its type for one reference.
        several: its type for several references; None for an `assert-set` of which one entry must pass.
    """

    def entry(sample: DatasetSample, findings: Findings) -> Entry:
        del findings
        if len(sample.references) == 1:
            return {"type": kind, "value": sample.references[0]}
        if several is not None:
            return {"type": several, "value": list(sample.references)}
        entries = [{"type": kind, "value": value} for value in sample.references]
        share = int(10_000 / len(entries)) / 10_000  # just below the score if one of them passes
        return {"type": "assert-set", "name": "any of the references", "threshold": share, "assert": entries}

    return entry


def _choice(sample: DatasetSample, findings: Findings) -> Entry | None:
    """An assertion that the answer has the line with the letter of the right choice."""
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
    """The input, with the choices and the required last line of the answer appended to its last message."""
    lines = "".join(f"\n{letter}) {choice}" for letter, choice in zip(ascii_uppercase, sample.choices, strict=False))
    letters = " or ".join(ascii_uppercase[: len(sample.choices)])
    assert sample.input is not None  # noqa: S101  # a simulated user has no choices
    node, end = sample.input, f"\n{lines}{_CHOICE_INSTRUCTION.format(letters=letters)}"
    if isinstance(node, Scalar):
        return node_of(f"{node.value}{end}", span_of(node.at))
    assert isinstance(node, ListNode)  # noqa: S101  # an input is text or messages
    items = list(node.items)
    place = max(place for place, one in enumerate(items) if isinstance(one, MapNode))
    message = items[place]
    assert isinstance(message, MapNode)  # noqa: S101  # `place` is the index of a mapping
    content = message.items["content"]
    if isinstance(content, ListNode):
        block = node_of({"type": "text", "value": end.strip()}, span_of(message.at))
        made: Node = ListNode([*content.items, block], content.at)
    else:
        made = node_of(f"{text_of(content) or ''}{end}", span_of(content.at))
    items[place] = MapNode({**message.items, "content": made}, message.keys, message.at)
    return ListNode(items, node.at)


def _judged(kind: str, *, compares: bool = True, retrieves: bool = False, **options: Any) -> DatasetCheck:
    """A check by the judge, shared by all cases."""
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
    _judged("llm-rubric", value="The answer says the same as the expected output."),
    _judged("answer-relevance", compares=False),
    _judged("context-recall", retrieves=True),
    _judged("context-faithfulness", compares=False, retrieves=True),
    _judged("context-relevance", compares=False, retrieves=True),
)

CHECKS: Mapping[str, DatasetCheck] = {check.name: check for check in _ALL}
"""Value of `--assert` → check."""


ANY_OF: Final = "any_of"
"""Key of an `expected_output` with several references."""

_RENDERED = frozenset({"input", "expected_output", "vars", "user", "assert"})
"""Keys of a case whose text is rendered as templates."""


def cases(
    path: str, form: str, checks: Sequence[DatasetCheck], findings: Findings, server: str = ""
) -> Iterator[MapNode]:
    """Yield the cases of a file of samples. A sample that cannot be converted is reported.

    Args:
        path: path of the file.
        form: its format.
        checks: the checks of each case.
        findings: collects diagnostics.
        server: name of the server whose tools the tasks call; empty if none exists.

    Raises:
        OSError: the file cannot be read.
    """
    reader = FORMATS[form]
    ids = _Ids(reader.noun)
    for number, record in enumerate(reader.records(path, findings), 1):
        sample = reader.read(record, findings, server)
        if sample is None:
            continue
        made = _case(sample, ids.of(sample, number, findings), checks, findings)
        if made is not None:
            yield made


class _Ids:
    """The ids of the cases of one file.

    Args:
        noun: prefix of the ids of samples without an id.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._seen = NumberedHashes()
        self._lines = array("I")

    def of(self, sample: DatasetSample, number: int, findings: Findings) -> str:
        """A unique id for a sample, or its own id, which is reported if an earlier sample has it too."""
        line = span_of(sample.at).line
        if sample.id is not None and sample.id.strip():
            name = sample.id.strip()
            first = self._first(name, line)
            if first is not None:
                message = f"two samples have the id '{name}'; the first is at line {first}"
                findings.error("duplicate-id", sample.at, message)
            return name
        wanted = sample.name.strip() if sample.name is not None else f"{self._noun}-{number}"
        others = (f"{wanted}-{count}" for count in itertools.count(2))
        return next(name for name in itertools.chain([wanted], others) if self._first(name, line) is None)

    def _first(self, name: str, line: int) -> int | None:
        """Return the line of the first sample with an id, or None after recording this line as the first."""
        place = self._seen.number(text_hash(name))
        if place < len(self._lines):
            return self._lines[place]
        self._lines.append(line)
        return None


def _case(sample: DatasetSample, identity: str, checks: Sequence[DatasetCheck], findings: Findings) -> MapNode | None:
    chooses = any(check.name == CHOICE for check in checks)
    if sample.choices and not chooses:
        message = "this sample has 'choices', which its input does not show"
        findings.error("no-equivalent", sample.at, message, f"use --assert {CHOICE}, which shows them")
        return None
    entries: list[Entry] = [*sample.checks]
    for check in checks:
        found = check.entry(sample, findings)
        if found is not None:
            entries.append(found)
        elif check.shared is None:
            return None
    if not entries and not checks:
        message = "this sample says nothing of a right answer, so it would check nothing"
        hint = "add --assert TYPE; for a task of tau-bench that changes nothing, --tools FILE"
        findings.error("checks-nothing", sample.at, message, hint)
        return None
    at, expected = span_of(sample.at), None
    if len(sample.references) > 1:
        expected = node_of({ANY_OF: list(sample.references)}, at)
    elif sample.references:
        expected = text(sample.references[0], sample.at)
    pairs: dict[str, Node | None] = {
        "id": text(identity, at),
        "description": text(sample.description, at) if sample.description else None,
        "input": with_choices(sample) if chooses else sample.input,
        "expected_output": expected,
        "vars": mapping(sample.variables, at) if sample.variables else None,
        "user": sample.user,
        "solution": sample.solution,
        "assert": node_of(entries, at) if entries else None,
        "metadata": mapping(sample.metadata, at) if sample.metadata else None,
    }
    return escaped_case(mapping(pairs, at), findings)


def escaped_case(case: MapNode, findings: Findings) -> MapNode | None:
    """The case with its texts escaped for templates, or None if some text is not valid Unicode, which is reported."""
    try:
        json.dumps(plain(case), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "this sample contains half of a character (a lone surrogate), which cannot be sent"
        findings.error("not-unicode", case, message)
        return None
    items = {key: literal(node) if key in _RENDERED else node for key, node in case.items.items()}
    return MapNode(items, case.keys, case.at)
