"""Cases of a file that contains one after the other: checked in one pass, and read again when the run needs them.

So memory use stays flat, however long the file is. A `Format` defines a record (a line of JSON, a row of CSV);
processing records, and reporting and counting their mistakes, is the same for all formats.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

from msgspec.structs import replace

from agentv.authoring.source.nodes import Node
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, LoadError
from agentv.model.suite.suite import Case
from agentv.model.values.values import Span

SHOWN = 100
"""Records whose mistakes are reported one by one; the rest are counted."""

HINTED = 10_000
"""Records whose older spellings are hinted at; what lies beyond is found once these are mended."""

WRONG = 10_000
"""Records that are wrong, after which the rest is not read."""

HELD = 20_000
"""Cases of one file that are held in memory; a longer file is read again instead."""

_KEYED = sha256(os.urandom(64))

ReadCase = Callable[[Node, Report, bool], tuple[Case, ...]]
"""(node, where mistakes go, whether it holds placeholders) → the cases that it stands for; none if it is wrong."""

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Format(Protocol[R]):
    """Format of a file of records.

    Attributes:
        path: of the file.
        unit: name of a record in messages.
    """

    path: str
    unit: str

    def records(self, report: Report) -> Iterator[tuple[int, R]]:
        """A fresh pass: each record with its first line, counted from 1. What ends the file early is reported."""
        ...

    def node(self, number: int, record: R, report: Report) -> Node | None:
        """Content of a record, with all positions at its first line; None if it cannot be read."""
        ...

    def exact(self, number: int, record: R, report: Report) -> Node | None:
        """The same with the position of every part, which takes longer; None if that is impossible."""
        ...

    def renders(self, record: R) -> bool:
        """Whether records may contain placeholders."""
        ...

    def identity(self, record: R) -> str | None:
        """The id of the case, if there is one, with no word about mistakes."""
        ...

    def reworded(self, record: R, found: Diagnostic) -> Diagnostic:
        """A diagnostic in the terms of the format."""
        ...


class AlikeRecords(Protocol[R_contra]):
    """Records that are known from others, which they resemble."""

    def read(self, number: int, record: R_contra) -> Case | None:
        """The case of a record that is right; None: it must be read in full."""
        ...

    def learn(self, record: R_contra, case: Case) -> None:
        """Remember a record without placeholders that was read, and about which there is nothing to report."""
        ...


class StreamedCases(Generic[R]):
    """The cases of one file. A long one is read again at each pass."""

    def __init__(self, source: Format[R], read_case: ReadCase, alike: AlikeRecords[R] | None = None) -> None:
        self.path = source.path
        self._source = source
        self._read_case = read_case
        self._alike = alike
        self._count = 0
        self._held: list[Case] | None = []
        self._digests = array("Q")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Case]:
        """The cases, in the order of the file.

        Raises:
            LoadError: a record is not the one that was checked: a target could else rewrite how it is graded.
        """
        if self._held is not None:
            yield from self._held
            return
        whole = Report()
        number = 1  # where the file went wrong, in the end
        place = -1
        for place, (number, record) in enumerate(self._source.records(whole)):
            if place >= len(self._digests) or self._digests[place] != _digest(record):
                raise self._changed(number)  # what grades a case is what was checked, whoever may have edited it
            report = Report()  # of its own, so that remarks do not pile up
            cases = self._read(number, record, report)
            if not cases or report.failed:
                raise self._changed(number)
            yield from cases
        if whole.failed or place + 1 < len(self._digests):
            raise self._changed(number)

    def check(self, report: Report) -> Iterable[tuple[Case, ...]]:
        """One pass over all records: reports what is wrong, yields the cases of each record that is right."""
        noted = bad = hinted = 0
        self._digests = array("Q")
        for number, record in self._source.records(report):
            self._digests.append(_digest(record))
            found = Report(hints=report.hints and hinted < HINTED)
            cases = self._read(number, record, found)
            self._count += max(len(cases), 1)
            if cases:
                self._hold(cases)
                yield cases
            if not found.count:
                continue
            if all(one.severity == "hint" for one in found.diagnostics):
                hinted += 1
                self._add(record, self._located(number, record, found), report)
                continue
            noted += 1
            bad += found.failed
            if bad > WRONG:
                break
            if noted <= SHOWN:
                found = self._located(number, record, found)
            if noted <= SHOWN or (found.failed and bad <= SHOWN):
                self._add(record, found, report)
        self._report_count(noted, bad, report)

    def _add(self, record: R, found: Report, report: Report) -> None:
        for one in found.diagnostics:
            report.add(self._source.reworded(record, one))

    def places(self) -> Iterator[tuple[str | None, Span]]:
        """The id of each record, and where the record begins."""
        for number, record in self._source.records(Report()):
            yield self._source.identity(record), Span(self.path, number, 1, number, 2)

    def _report_count(self, noted: int, bad: int, report: Report) -> None:
        unit, top = self._source.unit, Span(self.path, 1, 1, 1, 2)
        if bad > SHOWN:
            count = f"{bad:,}" if bad <= WRONG else f"more than {WRONG:,}"
            message = f"{count} {unit}s are invalid; showing the errors of the first {SHOWN}"
            report.error("more-bad-lines", top, message)
        elif noted > SHOWN:
            message = f"{noted:,} {unit}s have warnings; showing those of the first {SHOWN}"
            report.warning("more-bad-lines", top, message)

    def _changed(self, number: int) -> LoadError:
        message = f"this {self._source.unit} was changed during the run and is not run"
        return LoadError([Diagnostic("file-changed", message, Span(self.path, number, 1, number, 2))])

    def _hold(self, cases: tuple[Case, ...]) -> None:
        if self._held is None:
            return
        self._held += cases
        if len(self._held) > HELD:
            from agentv.user_code.memory import map_large_blocks  # few files are that long

            self._held = None
            map_large_blocks()

    def _read(self, number: int, record: R, found: Report) -> tuple[Case, ...]:
        renders = self._source.renders(record)
        alike = None if renders else self._alike
        known = alike.read(number, record) if alike is not None else None
        if known is not None:
            return (known,)
        node = self._source.node(number, record, found)
        cases = () if node is None else self._read_case(node, found, renders)
        if alike is not None and len(cases) == 1 and not found.count:
            alike.learn(record, cases[0])
        return cases

    def _located(self, number: int, record: R, found: Report) -> Report:
        """The same mistakes with their columns, where they can be had: read once more, part by part."""
        exact = Report(hints=found.hints)
        node = self._source.exact(number, record, exact)
        if node is None:
            return found
        self._read_case(node, exact, self._source.renders(record))
        return exact if exact.agrees_with(found) else found


def _digest(record: object) -> int:
    """What tells a record from another one: 64 bits that whoever edits the file meanwhile cannot aim at."""
    keyed = _KEYED.copy()
    keyed.update(record if isinstance(record, bytes) else repr(record).encode(errors="surrogatepass"))
    return int.from_bytes(keyed.digest()[:8])


def at_line(found: Diagnostic, lines: int) -> Diagnostic:
    """The diagnostic so many lines further down."""
    return replace(found, span=found.span and down(found.span, lines))


def down(span: Span, lines: int) -> Span:
    """The span so many lines further down."""
    return replace(span, line=span.line + lines, end_line=span.end_line + lines)
