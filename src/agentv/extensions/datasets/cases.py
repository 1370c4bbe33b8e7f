"""Samples as cases of agentv."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from agentv.authoring.convert.emit import literal
from agentv.authoring.convert.records import Findings, text
from agentv.authoring.source.nodes import MapNode, Node, mapping, node_of, plain, span_of
from agentv.extensions.datasets.checks import CHOICE, DatasetCheck, with_choices
from agentv.extensions.datasets.formats import FORMATS
from agentv.extensions.datasets.sample import DatasetSample, Entry
from agentv.model.values.hashes import NumberedHashes, text_hash

ANY_OF: Final = "any_of"
"""Key of an expected output that has several references."""

_RENDERED = frozenset({"input", "expected_output", "vars", "user", "assert"})
"""Keys of a case whose texts are templates."""


def cases(
    path: str, form: str, checks: Sequence[DatasetCheck], findings: Findings, server: str = ""
) -> Iterator[MapNode]:
    """The cases of a file of samples, one at a time; what cannot be converted is reported.

    Args:
        path: of the file.
        form: its format.
        checks: what each case is checked with.
        findings: gets what is wrong.
        server: of the tools that tasks call; empty without one.

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
        noun: what a sample is called that has no id.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._seen = NumberedHashes()
        self._lines = array("I")

    def of(self, sample: DatasetSample, number: int, findings: Findings) -> str:
        """The id of a sample. One that the sample gives itself, and that was there before, is reported."""
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
        """The line that had an id before; None where none had, and this one has it from now on."""
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
    at = span_of(sample.at)
    pairs: dict[str, Node | None] = {
        "id": text(identity, at),
        "description": text(sample.description, at) if sample.description else None,
        "input": with_choices(sample) if chooses else sample.input,
        "expected_output": _expected(sample),
        "vars": mapping(sample.variables, at) if sample.variables else None,
        "user": sample.user,
        "solution": sample.solution,
        "assert": node_of(entries, at) if entries else None,
        "metadata": mapping(sample.metadata, at) if sample.metadata else None,
    }
    return sendable(mapping(pairs, at), findings)


def _expected(sample: DatasetSample) -> Node | None:
    if len(sample.references) < 2:
        return text(sample.references[0], sample.at) if sample.references else None
    return node_of({ANY_OF: list(sample.references)}, span_of(sample.at))


def sendable(case: MapNode, findings: Findings) -> MapNode | None:
    """The case with its texts as they are, whatever they contain; None where one is no Unicode, which is reported."""
    try:
        json.dumps(plain(case), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "this sample contains half of a character (a lone surrogate), which cannot be sent"
        findings.error("not-unicode", case, message)
        return None
    items = {key: literal(node) if key in _RENDERED else node for key, node in case.items.items()}
    return MapNode(items, case.keys, case.at)
