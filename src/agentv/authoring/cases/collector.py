"""Collect the cases of one suite from all sources, and check the links between them.

Links come from `depends_on` and `conversation_id` (SPEC section 4).
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.cases.context import CaseNotes
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, Node, Scalar, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, LoadError
from agentv.model.suite.conversation import Dependency, Link
from agentv.model.suite.suite import Case, Cases
from agentv.model.values.formatting import shorten
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.model.values.values import Span
from agentv.templating import has_placeholder


class ManyCases:
    """The cases of several sources, in order."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


LONGEST_CYCLE = 200
"""Maximum number of characters of a dependency cycle in a message."""

COMPARED = 20_000
"""Number of ids that are compared with an unknown id to suggest a similar one."""


def read_dependencies(node: Node, reading: Reading) -> tuple[Dependency, ...]:
    """Read the ids of `depends_on`, which is one id or a list. Invalid items are reported and left out."""
    if is_empty(node) and not isinstance(node, Scalar):
        return ()
    found: dict[str, Dependency] = {}
    for item in node.items if isinstance(node, ListNode) else [node]:
        if isinstance(item, Scalar) and item.value is not None and item.text.strip():
            found.setdefault(item.text, Dependency(item.text, span_of(item.at)))
        else:
            reading.report.unfit(item, "'depends_on' must be the id of a case, or a list of ids")
    return tuple(found.values())


class Links(Struct):
    """The links between the cases of a suite. Cases without links are not stored.

    Attributes:
        unread: ids of invalid cases, which are not reported as unknown.
        lost: the id of an invalid case could not be read, so no id is reported as unknown.
    """

    unread: Collection[str] = ()
    lost: bool = False
    depends_on: dict[str, tuple[Dependency, ...]] = field(default_factory=dict)
    _follows: dict[str, tuple[str, str]] = field(default_factory=dict)
    last: dict[str, _Member] = field(default_factory=dict)

    def note(self, case: Case, report: Report) -> None:
        """Record the links of a case. Cases must be passed in file order."""
        if case.depends_on:
            self.depends_on[case.id] = case.depends_on
        if case.conversation_id is None:
            return
        before = self.last.get(case.conversation_id)
        history = before.digest if before is not None else ""
        digest = sha256(f"{history}{case.sha256}".encode()).hexdigest()
        member = _Member(case.id, case.target.name if case.target else None, case.repeat, digest)
        if before is not None:
            self._follows[case.id] = (before.id, before.digest)
            for key, own, other in (("target", member.target, before.target), ("repeat", member.repeat, before.repeat)):
                if own != other:
                    found = " and ".join("the suite's value" if one is None else str(one) for one in (other, own))
                    message = (
                        f"'{before.id}' and '{member.id}' belong to one conversation, '{case.conversation_id}', "
                        f"but their '{key}' differs: {found}"
                    )
                    report.error(
                        "torn-conversation",
                        case.span,
                        message,
                        hint=f"use the same '{key}' in all cases of a conversation",
                    )
        self.last[case.conversation_id] = member

    def checked(
        self, known: Callable[[str], bool], ids: Callable[[], Iterable[str]], report: Report
    ) -> dict[str, Link]:
        """Return case id → links, for cases that depend on another or follow one in their conversation.

        Args:
            known: says whether a case of the suite has an id.
            ids: returns all ids, among which one similar to an unknown id is looked for.
            report: receives unknown ids, and each cycle once.
        """
        named = chain.from_iterable(() if self.lost else self.depends_on.values())
        unknown = [one for one in named if not known(one.id) and one.id not in self.unread]
        near = list(islice(ids(), COMPARED)) if unknown else []
        for dependency in unknown[:SHOWN]:
            message = f"no case of this suite has the id '{dependency.id}'"
            report.error("unknown-case", dependency.span, message, hint=did_you_mean(dependency.id, near))
        if len(unknown) > SHOWN:
            message = f"'depends_on' lists {len(unknown):,} ids that do not exist; showing the first {SHOWN}"
            report.error("unknown-case", unknown[0].span, message)
        links = {
            case: Link(tuple(one.id for one in self.depends_on.get(case, ())), *self._follows.get(case, (None, "")))
            for case in {**self._follows, **self.depends_on}
        }
        for cycle in islice(cycles(links), SHOWN):
            steps = [*zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
            begin = next(at for at, (case, needed) in enumerate(steps) if self._place_of_dependency(case, needed))
            place = self._place_of_dependency(*steps[begin])
            walk = "".join(
                f" → {'' if self._place_of_dependency(case, needed) else '(before it in its conversation) '}{needed}"
                for case, needed in [*steps[begin:], *steps[:begin]]
            )
            message = f"'{cycle[begin]}' depends on itself: {cycle[begin]}{shorten(walk, LONGEST_CYCLE)}"
            report.error("dependency-cycle", place.span if place is not None else None, message)
        return links

    def _place_of_dependency(self, case: str, needed: str) -> Dependency | None:
        """The item of `depends_on` by which a case needs another; None if only their conversation links them."""
        return next((one for one in self.depends_on.get(case, ()) if one.id == needed), None)


class _Member(Struct, frozen=True):
    """A case of a conversation: settings that all its cases must share, and the hash of the cases up to this one."""

    id: str
    target: str | None
    repeat: int | None
    digest: str


def cycles(links: Mapping[str, Link]) -> Iterator[list[str]]:
    """Yield the dependency cycles, each in order. Of cycles that share a link, at least one is found."""
    from graphlib import CycleError, TopologicalSorter  # few suites have links

    graph = {case: [*link.needs] for case, link in links.items()}
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1][:0:-1]
            graph[cycle[0]].remove(cycle[1 % len(cycle)])
            yield cycle
        else:
            return


class CaseCollector(Struct):
    """Collects the cases of one suite, and checks them against each other.

    Ids are stored as hashes with their positions: a million ids take 32 MB.

    Attributes:
        notes: record which cases are invalid.
        report: the suite's report.
        tally: (own `repeat` or None, whether it has its own target) → number of cases.
        asks_judge: a case calls the judge itself, in a number of trials that `tally` does not show.
    """

    notes: CaseNotes
    report: Report
    _parts: list[Part] = []
    _ids: NumberedHashes = field(default_factory=NumberedHashes)
    _places: array[int] = field(default_factory=lambda: array("Q"))
    _files: dict[str, int] = {}
    _count: int = 0
    _links: Links = field(default_factory=Links)
    asks_judge: bool = False
    tally: Counter[tuple[int | None, bool]] = field(default_factory=Counter)

    @property
    def cases(self) -> Cases:
        """The collected cases."""
        return self._parts[0] if len(self._parts) == 1 else ManyCases(self._parts)

    def add(self, cases: tuple[Case, ...], where: str = "") -> None:
        """Add the cases of one entry. `where` is their position in words, if their span does not show it."""
        if not cases:
            return
        self._register(cases, where)
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].extend(cases)  # type: ignore[union-attr]  # the lines above make it a list

    def add_stream(self, cases: StreamedCases[Any], report: Report) -> None:
        """Add all cases of a file, and check them now."""
        self._parts.append(cases)
        count, invalid = 0, len(self.notes.invalid)
        for found in cases.check(report):
            self._register(found)
            count += len(found)
        # a line that is not an object has no id
        self._links.lost |= count + len(self.notes.invalid) - invalid < len(cases)

    def end(self, top: Span) -> dict[str, Link]:
        """Report duplicate ids and links to unknown cases. Return case id → links.

        Args:
            top: position of the start of the eval file.
        """
        for identity, spans in self.notes.invalid.items():
            good = self._first(identity)
            written = [*spans, *(() if good is None else (good,))]
            first, *others = sorted(one for one in written if one.line > 0) or (None,)  # line 0: not in a file
            for span in others if not has_placeholder(identity) else ():
                self._report_duplicate(identity, span, first, "")
        if self._count > SHOWN:
            message = f"{self._count:,} cases share the id of another case; showing the first {SHOWN}"
            self.report.error("duplicate-id", top, message)
        if not self._links.depends_on and not self._links.last:
            self._ids, self._places = NumberedHashes(), array("Q")  # free their memory
            return {}
        self._links.unread, self._links.lost = self.notes.invalid, self._links.lost or self.notes.lost
        return self._links.checked(self._has_id, lambda: (one.id for one in self.cases), self.report)

    def _register(self, cases: tuple[Case, ...], where: str = "") -> None:
        """Count the cases of one entry and report duplicate ids. Cases for its different prompts share an id."""
        first = cases[0]
        if first.depends_on or first.conversation_id is not None:
            for case in {case.id: case for case in cases}.values():
                if not self._has_id(case.id):
                    self._links.note(case, self.report)
        is_duplicate = self._add_id(first.id.removesuffix(first.id_suffix), first, where)
        before = None if first.id_suffix else first.id
        for case in cases:
            self.tally[case.repeat, case.target is not None] += 1
            if case.id != before and not is_duplicate:
                self._add_id(case.id, case, where)
                before = case.id

    def _has_id(self, identity: str) -> bool:
        return self._ids.find(text_hash(identity)) is not None

    def _add_id(self, identity: str, case: Case, where: str) -> bool:
        """Add an id. Return True if it is a duplicate, which is reported.

        Args:
            identity: id of the case, or of the entry that expands to several cases.
            case: the case with the id.
            where: its position in words, if its span does not show it.
        """
        before = len(self._ids)
        if self._ids.number(text_hash(identity)) == before:
            at = case.span or _NOWHERE
            file = self._files.setdefault(at.file, len(self._files))
            line = min(max(at.line, 0), 0xFFFFFF)  # 0: not in a file
            self._places.append(file << 40 | line << 16 | min(at.column, 0xFFFF))
            return False
        self._count += 1
        if self._count <= SHOWN:
            self._report_duplicate(identity, case.span, self._first(identity), where)
        return True

    def _first(self, identity: str) -> Span | None:
        """Start of the first case with an id; None if no case has it."""
        number = self._ids.find(text_hash(identity))
        if number is None:
            return None
        place = self._places[number]
        line, column = place >> 16 & 0xFFFFFF, place & 0xFFFF
        return Span(list(self._files)[place >> 40], line, column, line, column + 1)

    def _report_duplicate(self, identity: str, span: Span | None, first: Span | None, where: str) -> None:
        is_other = first is not None and first.line > 0 and str(first) != str(span)
        other = f"; the first is at {shown(first.file)}:{first.line}" if first is not None and is_other else ""
        self.report.error("duplicate-id", span, f"{where}two cases have the id '{identity}'{other}")


_NOWHERE = Span("", 0, 0, 0, 0)

Part: TypeAlias = "list[Case] | StreamedCases[Any]"
"""Cases in memory, or cases that are read from one file."""


SHOWN = 100
"""Number of records whose errors are reported one by one; the rest are only counted."""

MOST_HINTED = 10_000
"""Number of records with hints, such as about older spellings; later ones get hints once these are fixed."""

MOST_INVALID = 10_000
"""Number of invalid records after which reading stops."""

MOST_IN_MEMORY = 20_000
"""Maximum number of cases of a file that are kept in memory; a longer file is read again at each pass."""

_KEYED_HASH = sha256(os.urandom(64))

ReadCase = Callable[[Node, Report, bool], tuple[Case, ...]]
"""(node, report, whether it contains placeholders) → its cases; empty if it is invalid."""

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Format(Protocol[R]):
    """Format of a file of records.

    Attributes:
        path: path of the file.
        unit: name of a record in messages.
    """

    path: str
    unit: str

    def records(self, report: Report) -> Iterator[tuple[int, R]]:
        """Yield each record with its first line, from 1. An error that ends the file early is reported."""

    def node(self, number: int, record: R, report: Report) -> Node | None:
        """The content of a record, with all positions at its first line; None if it cannot be read."""

    def exact(self, number: int, record: R, report: Report) -> Node | None:
        """The content of a record with the position of each part, which is slower; None if none exist."""

    def renders(self, record: R) -> bool:
        """Whether a record may contain placeholders."""

    def reworded(self, record: R, found: Diagnostic) -> Diagnostic:
        """The diagnostic in the terms of the format, such as rows and columns."""


class AlikeRecords(Protocol[R_contra]):
    """Derives the cases of records from similar records that were read before."""

    def read(self, number: int, record: R_contra) -> Case | None:
        """The case of a valid record; None if the record must be read in full."""

    def learn(self, record: R_contra, case: Case) -> None:
        """Remember a record without placeholders that was read without diagnostics."""


class StreamedCases(Generic[R]):
    """The cases of one file. A long file is read again at each pass."""

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
            LoadError: a record differs from the one that was checked. Otherwise a target could rewrite its grading.
        """
        if self._held is not None:
            yield from self._held
            return
        whole = Report()
        number = 1  # of the last record read, for the error at the end
        place = -1
        for place, (number, record) in enumerate(self._source.records(whole)):
            if place >= len(self._digests) or self._digests[place] != _digest(record):
                raise self._changed_error(number)  # a case is graded only as it was checked
            report = Report()  # one per record, so that remarks do not pile up
            cases = self._read(number, record, report)
            if not cases or report.failed:
                raise self._changed_error(number)
            yield from cases
        if whole.failed or place + 1 < len(self._digests):
            raise self._changed_error(number)

    def check(self, report: Report) -> Iterable[tuple[Case, ...]]:
        """Read all records once: report diagnostics, and yield the cases of each valid record."""
        noted = bad = hinted = 0
        self._digests = array("Q")
        for number, record in self._source.records(report):
            self._digests.append(_digest(record))
            found = Report(hints=report.hints and hinted < MOST_HINTED)
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
            if bad > MOST_INVALID:
                break
            if noted <= SHOWN:
                found = self._located(number, record, found)
            if noted <= SHOWN or (found.failed and bad <= SHOWN):
                self._add(record, found, report)
        unit, top = self._source.unit, Span.start_of(self.path)
        if bad > SHOWN:
            count = f"{bad:,}" if bad <= MOST_INVALID else f"more than {MOST_INVALID:,}"
            message = f"{count} {unit}s are invalid; showing the errors of the first {SHOWN}"
            report.error("more-bad-lines", top, message)
        elif noted > SHOWN:
            message = f"{noted:,} {unit}s have warnings; showing those of the first {SHOWN}"
            report.warning("more-bad-lines", top, message)

    def _add(self, record: R, found: Report, report: Report) -> None:
        for one in found.diagnostics:
            report.add(self._source.reworded(record, one))

    def _changed_error(self, number: int) -> LoadError:
        message = f"this {self._source.unit} was changed during the run and is not run"
        return LoadError([Diagnostic("file-changed", message, Span(self.path, number, 1, number, 2))])

    def _hold(self, cases: tuple[Case, ...]) -> None:
        if self._held is None:
            return
        self._held += cases
        if len(self._held) > MOST_IN_MEMORY:
            self._held = None

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
        """The same diagnostics with columns, if the format has them. The record is read again, part by part."""
        exact = Report(hints=found.hints)
        node = self._source.exact(number, record, exact)
        if node is None:
            return found
        self._read_case(node, exact, self._source.renders(record))
        return exact if exact.agrees_with(found) else found


def _digest(record: object) -> int:
    """A keyed 64-bit digest of a record, which a person who edits the file cannot forge."""
    keyed = _KEYED_HASH.copy()
    keyed.update(record if isinstance(record, bytes) else repr(record).encode(errors="surrogatepass"))
    return int.from_bytes(keyed.digest()[:8])


def at_line(found: Diagnostic, lines: int) -> Diagnostic:
    """The diagnostic, moved down by a number of lines."""
    return replace(found, span=found.span and down(found.span, lines))


def down(span: Span, lines: int) -> Span:
    """The span, moved down by a number of lines."""
    return replace(span, line=span.line + lines, end_line=span.end_line + lines)
