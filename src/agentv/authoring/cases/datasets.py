"""Sources of the cases of a suite: the eval file, other files, Python, or a mix (SPEC section 3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.cases.case import CaseReader
from agentv.authoring.cases.case_files import cases_in, in_directory, matching
from agentv.authoring.cases.dependencies import Links
from agentv.authoring.cases.ids import IdTable
from agentv.authoring.cases.jsonl import JsonLines
from agentv.authoring.cases.streamed import SHOWN, Format, StreamedCases
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE, REASON, OutsideError
from agentv.authoring.source.files import DiskReader, checkout_of, is_directory, shown
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, kind_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE
from agentv.errors import Diagnostic
from agentv.model.suite.conversation import Link
from agentv.model.suite.suite import Case, Cases
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.replacement import varied
from agentv.model.values.span import Span
from agentv.templating import has_placeholder

if TYPE_CHECKING:
    from agentv.authoring.cases.csv_header import Column

Part: TypeAlias = "list[Case] | StreamedCases[Any]"

_FUNCTION = lazy_pattern(r"(?:file://)?(?P<path>.+\.py)(?::(?P<name>[^:/]*))?", re.DOTALL)
"""A Python file, and the function in it that makes cases."""

STREAMED = (".jsonl", ".csv")
"""Suffixes of files that hold one case after the other, which are read again when they run."""


class ManyCases:
    """Cases out of several sources, in their order."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[Case]:
        return chain.from_iterable(self._parts)


class CaseSources:
    """Collects the cases of one suite, wherever `tests:` says they are.

    Args:
        path: of the eval file.
        reader: turns nodes into cases.
        assertions: knows the names of assertion types.
        reading: of the suite.
        disk: remembers what was read.
        for_run: functions that make cases are called; otherwise only looked for.

    Attributes:
        trusted: rows that are pulled in may name code and read the environment.
        tally: how many cases have which `repeat` of their own, and whether they have a target of their own.
        asks_judge: some case asks the judge, whose number of trials the tally does not know.
    """

    def __init__(
        self,
        path: str,
        reader: CaseReader,
        assertions: AssertionReader,
        reading: Reading,
        disk: DiskReader,
        *,
        for_run: bool,
    ) -> None:
        self._path = path
        self._reader = reader
        self._assertions = assertions
        self._reading = reading
        self._disk = disk
        self._for_run = for_run
        self.trusted = False
        self._parts: list[Part] = []
        self._ids = IdTable()
        self._doubled = 0
        self._doubles: list[tuple[str, Span | None, str]] = []
        self._tables = 0
        self._links = Links()
        self.links: dict[str, Link] = {}
        self.generators: list[str] = []
        self.asks_judge = False
        self.tally: Counter[tuple[int | None, bool]] = Counter()

    @property
    def cases(self) -> Cases:
        """What was found."""
        return self._parts[0] if len(self._parts) == 1 else ManyCases(self._parts)

    def take(self, node: Node) -> None:
        """What `tests:` says."""
        if isinstance(node, ListNode):
            for item in node.items:
                self.add(item)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._elsewhere(node)
        else:
            message = f"'tests' must be a list of cases or the path of a file with cases, found {kind_of(node)}"
            hint = "start each case with '- '" if isinstance(node, MapNode) else None
            self._reading.report.error("bad-value", node, message, hint=hint)

    def add(self, node: Node) -> None:
        """One item of the list: a case, or where more are."""
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._elsewhere(node)
        else:
            self.keep(self._reader.read(node, self._reading))

    def ask(self, cases: Sequence[Case]) -> None:
        """Cases that ask the judge in force, before those of `tests:`."""
        for case in cases:
            self.asks_judge = True
            self.keep((case,))

    def stream(self, path: str, *, is_data: bool = True) -> None:
        """All cases of a JSONL or CSV file, which is read in one pass now and again when they run.

        `is_data`: not for a JSONL file that is an eval file itself.
        """
        reading = self._of_data(path) if is_data else self._reading
        alone = not path.endswith(".csv")

        def read_case(node: Node, report: Report, renders: bool) -> tuple[Case, ...]:
            own = varied(reading, report=report, renders=renders or reading.renders)
            return self._reader.read(node, own, alone=alone)

        try:
            self._disk.remember(path)
        except OutsideError:
            reading.report.error(OUTSIDE, _top(path), f"cannot read {shown(path)}: {REASON}", hint=ALLOW)
            return
        except OSError as error:
            reading.report.error("missing-file", _top(path), f"cannot read {shown(path)}: {error.strerror}")
            return
        cases = StreamedCases(self._format(path), read_case)
        self._parts.append(cases)
        errors = reading.report.errors
        kept, unread = 0, len(self._reader.unread)
        for found in cases.check(reading.report):
            self._register(found)
            kept += len(found)
        self._links.lost |= kept + len(self._reader.unread) - unread < len(cases)  # a line that is no object
        if not len(cases) and reading.report.errors == errors:
            reading.report.error("no-tests", _top(path), "this file contains no cases")

    def end(self) -> None:
        """All was read: tell the ids that stand in streamed files already, how many were left out, and loose links."""
        places = self._in_streams({identity for identity, _, _ in self._doubles}) if self._doubles else {}
        for identity, span, where in self._doubles:
            first = next((one for one in places.get(identity, ()) if span is None or one[:2] != span[:2]), None)
            if first is not None:  # otherwise it is another id with the same hash
                self._tell_double(identity, span, first, where)
        self._tell_wrong_doubles()
        if self._doubled > SHOWN:
            message = f"{self._doubled:,} cases share the id of another case; showing the first {SHOWN}"
            self._reading.report.error("duplicate-id", _top(self._path), message)
        if not self._links.empty:
            self._links.unread, self._links.lost = self._reader.unread, self._links.lost or self._reader.lost
            ids = self._ids.__contains__
            self.links = self._links.checked(ids, lambda: (one.id for one in self.cases), self._reading.report)

    def _format(self, path: str) -> Format[Any]:
        if path.endswith(".jsonl"):
            return JsonLines(path, CASE.spelled("id"), self._disk.open)
        from agentv.authoring.cases.csv_cases import CsvCases  # most suites have none
        from agentv.authoring.cases.csv_expected import Expectations

        self._tables += 1
        # the rows of a second file are distinguished from those of the first by the file's name
        prefix = f"{Path(path).stem}-" if self._tables > 1 else ""
        return CsvCases(path, Expectations(self._assertions), prefix, self._unfit)

    def _unfit(self, columns: Sequence[Column]) -> Diagnostic | None:
        """Rows are variables: the suite must say what is asked with them, and somebody what is expected."""
        plain = [column for column in columns if column.kind == "vars"]
        suite = Path(self._path)
        where = suite.with_suffix(".yaml").name if suite.suffix == ".csv" else suite.name
        top = columns[0].at._replace(end_column=columns[0].at.column + 1)
        if not self._reader.prompted:
            name = plain[0].name if plain else "NAME"
            message = "the rows set variables, but no input uses them"
            return Diagnostic("missing-input", message, top, hint=f"write \"input: '{{{{ {name} }}}}'\" into {where}")
        if not self._reader.graded and not any(column.kind == "expected" for column in columns):
            message = "these rows check nothing: they have no column '__expected', and there is no common 'assert'"
            return Diagnostic("checks-nothing", message, top, hint=f"add the column, or 'assert' to {where}")
        return None

    def keep(self, cases: tuple[Case, ...], where: str = "") -> None:
        """The cases that one entry stands for."""
        if not cases:
            return
        self._register(cases, where)
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].extend(cases)  # type: ignore[union-attr]  # a list, as the line above sees to

    def _register(self, cases: tuple[Case, ...], where: str = "") -> None:
        """Count the cases of one entry, and note an id that another entry has. Its prompts share one id.

        Args:
            cases: of the entry.
            where: what their place does not say.
        """
        first = cases[0]
        if first.depends_on or first.conversation_id is not None:
            for case in {case.id: case for case in cases}.values():
                if case.id not in self._ids:
                    self._links.note(case, self._reading.report)
        told = self._note_double(first.id.removesuffix(first.variant), first, where)
        before = None if first.variant else first.id
        for case in cases:
            self.tally[case.repeat, case.target is not None] += 1
            if case.id != before and not told:
                self._note_double(case.id, case, where)
                before = case.id

    def _note_double(self, identity: str, case: Case, where: str) -> bool:
        """Whether an id was there, most likely: told now where memory shows the first, else when all files are read."""
        if not self._ids.seen(identity):
            return False
        self._doubled += 1
        if self._doubled > SHOWN:
            return True
        lists = (part for part in self._parts if not isinstance(part, StreamedCases))
        first = next(
            (one for part in lists for one in part if identity in (one.id, one.id.removesuffix(one.variant))), None
        )
        if first is not None:
            self._tell_double(identity, case.span, first.span, where)
        else:
            self._doubles.append((identity, case.span, where))
        return True

    def _tell_wrong_doubles(self) -> None:
        """Ids of cases that are wrong, which others have too: all that is wrong is reported at once."""
        lists = [one for part in self._parts if not isinstance(part, StreamedCases) for one in part]
        for identity, spans in self._reader.unread.items():
            if has_placeholder(identity):
                continue
            good = next((one.span for one in lists if one.id == identity), None) if identity in self._ids else None
            written = [one for one in (*spans, good) if one is not None and one.line > 0]  # others stand in no file
            first, *others = sorted(written) or (None,)
            for span in others:
                self._tell_double(identity, span, first, "")

    def _tell_double(self, identity: str, span: Span | None, first: Span | None, where: str) -> None:
        other = f"; the first is at {shown(first.file)}:{first.line}" if first and first != span else ""
        self._reading.report.error("duplicate-id", span, f"{where}two cases have the id '{identity}'{other}")

    def _in_streams(self, ids: Collection[str]) -> Mapping[str, Sequence[Span]]:
        """Where each of these ids stands first, and second: one pass over the files, whatever their length."""
        entries: dict[str, list[str]] = {}
        for identity in ids:
            for entry in _entries_of(identity):
                entries.setdefault(entry, []).append(identity)
        found: dict[str, list[Span]] = {}
        for part in self._parts:
            for written, span in part.places() if isinstance(part, StreamedCases) else ():
                for identity in entries.get(written or "", ()):
                    places = found.setdefault(identity, [])
                    places += [span] if len(places) < 2 else []
        return found

    def _elsewhere(self, node: Scalar) -> None:
        """Cases in other files, or made by a function."""
        text = node.text.strip()
        function = _FUNCTION.fullmatch(text)
        if function is not None:
            self._made(function["path"], function["name"], node)
            return
        for path in matching(node, self._reading, self._path):
            if is_directory(path):
                for file in in_directory(path, node, self._reading):
                    self._file(file, node)
            else:
                self._file(path, node)

    def _file(self, path: str, node: Scalar) -> None:
        if path.endswith(STREAMED):
            self.stream(path)
            return
        for item, reading in cases_in(path, node, self._of_data(path)):
            self.keep(self._reader.read(item, reading))

    def _of_data(self, path: str) -> Reading:
        """What reads rows of a file: they are data, and those out of a git host attach nothing of this machine."""
        reading = self._reading
        if checkout_of(path) is not None:
            places = replace(reading.places, confined=True, _found={})
            reading = replace(reading, places=places)
        return reading if self.trusted else replace(reading, data=True, fed=True)

    def _made(self, path: str, name: str | None, node: Scalar) -> None:
        """Cases that a function of a Python file gives."""
        from agentv.authoring.cases.generators import checked_function, made_cases

        function = checked_function(path, name, node, self._reading)
        if function is None:
            return
        if not self._for_run:
            self._reader.seen = True  # whether there is any is known only when it runs
            message = f"'{name}' is not called here: its cases are checked when they run"
            self._reading.report.remark("unchecked-cases", node, message)
            return
        for number, cases in made_cases(function, self._reader, self._of_data(function.path)):
            self.keep(cases, f"case {number}: ")


def _entries_of(identity: str) -> Iterator[str]:
    """The ids that a case of this id can have in a file: its own, or that of an entry whose lists were expanded."""
    yield identity
    for place, letter in enumerate(identity):
        if letter == "[":
            yield identity[:place]


def _top(path: str) -> Span:
    return Span(path, 1, 1, 1, 2)
