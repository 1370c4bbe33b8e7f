"""Sources of the cases of a suite: the eval file, other files, a directory, code, or a mix (SPEC section 3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.cases.case import CaseReader
from agentv.authoring.cases.collector import CaseCollector, Format, StreamedCases
from agentv.authoring.fields.kinds import selected
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.spellings import CASE
from agentv.authoring.source.boundary import GIT_URL
from agentv.authoring.source.files import EXCEL, TABLES, DiskReader, checkout_of, is_directory, shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import (
    NOWHERE,
    ListNode,
    MapNode,
    Node,
    Scalar,
    file_of,
    holds_placeholder,
    is_empty,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.suite.suite import Case
from agentv.model.values.values import Span, lazy_pattern

if TYPE_CHECKING:
    from agentv.authoring.cases.data_files.rows import Table
    from agentv.authoring.cases.data_files.table_cases import Column


_FUNCTION = lazy_pattern(r"(?:file://)?(?P<path>.+\.(?:py|[mc]?[jt]s))(?::(?P<name>[^:/]*))?", re.DOTALL)
"""A Python, JavaScript or TypeScript file, and the function in it that generates cases."""

_INCLUDE_KEYS = ("include", "type", "select", "run")
_NOT_YET = frozenset({"select", "run"})
"""Keys of an `include` entry of `tests:`, and those of them that are not supported yet."""

STREAMED = (".jsonl", ".csv", *TABLES)
"""Suffixes of files that are read case by case, and read again when the suite runs."""


class CaseSources(Struct):
    """Reads the cases of one suite from the sources that `tests:` names.

    Attributes:
        path: path of the eval file.
        reader: turns nodes into cases.
        collector: receives the cases.
        reading: the suite's `Reading`.
        disk: remembers the files that were read.
        for_run: call functions that generate cases; otherwise only look for them.
        trusted: rows of included files may name code and read the environment.
        samples: returns the cases of a file of samples of another tool; None for any other file.
        called: functions that were called to generate cases, as `file.py:name`.
    """

    path: str
    reader: CaseReader
    collector: CaseCollector
    reading: Reading
    disk: DiskReader
    for_run: bool
    trusted: bool
    samples: Callable[[str, Report], Sequence[MapNode] | None]
    called: list[str] = field(default_factory=list)
    _tables: int = 0

    def take(self, node: Node) -> None:
        """Read the value of `tests:`."""
        if isinstance(node, ListNode):
            for item in node.items:
                self.add(item)
        elif isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._add_source(node)
        else:
            hint = "start each case with '- '" if isinstance(node, MapNode) else None
            self.reading.report.unfit(
                node, "'tests' must be a list of cases or the path of a file with cases", hint=hint
            )

    def add(self, node: Node) -> None:
        """Add an item of the list: a case, or a source of more cases."""
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            self._add_source(node)
        elif isinstance(node, MapNode) and "include" in node.items:
            report = self.reading.report  # AgentV's `{include: PATH, type: tests}`: the cases of another file
            self.reader.notes.seen = True
            for key in node.items:
                if key not in _INCLUDE_KEYS and not key.startswith("x-"):
                    self.reading.unknown_key(key, node, _INCLUDE_KEYS, "an 'include' of cases")
            for key in _NOT_YET & node.items.keys():
                report.error("not-yet", node.keys[key], f"'{key}' of an 'include' is recognized but not supported yet")
            path, kind = node.items["include"], node.items.get("type")
            if kind is not None and not (isinstance(kind, Scalar) and kind.value == "tests"):
                if isinstance(kind, Scalar) and kind.value == "suite":
                    report.error("not-yet", kind, "'type: suite' of an 'include' is recognized but not supported yet")
                else:
                    report.unfit(kind, "'type' of an 'include' must be tests")
            elif not isinstance(path, Scalar) or not isinstance(path.value, str) or not path.value.strip():
                report.unfit(path, "'include' must be the path of a file with cases")
            else:
                self._add_source(path, replace(self.reading, places=self.reading.places.without_climbing()))
        else:
            origin = file_of(node.at)  # a translation may add the rows of other files
            is_row = origin != self.path and origin.endswith(STREAMED)
            self.collector.add(self.reader.read(node, self._data_reading(origin) if is_row else self.reading))

    def stream(self, path: str, *, is_data: bool = True, at: Node | None = None, sheet: str | None = None) -> None:
        """Add all cases of a file of lines or rows. It is read once now, and again when the cases run.

        Args:
            path: path of the file.
            is_data: False for a JSONL file that is itself the eval file.
            at: where the file is named; None if it is the eval file.
            sheet: sheet of a workbook; None for the first.
        """
        from agentv.authoring.cases.data_files.rows import missing_library

        reading = self._data_reading(path) if is_data else self.reading
        missing = missing_library(path) if path.endswith(TABLES) else None
        if missing is not None:
            self.reader.notes.seen = True  # the file may hold cases
            add = reading.report.error if reading.strict_env else reading.report.warning
            add(missing.code, at or Span.start_of(path), missing.message, hint=missing.hint)
            return
        if not self._remember(path, reading):
            return
        self._streamed(self._format(path, is_data=is_data, sheet=sheet), reading)

    def _streamed(self, source: Format[Any], reading: Reading) -> None:
        alone = source.unit != "row"

        def read_case(node: Node, report: Report, renders: bool) -> tuple[Case, ...]:
            own = replace(reading, report=report, renders=renders or reading.renders)
            return self.reader.read(node, own, alone=alone)

        from agentv.authoring.cases.data_files.alike_lines import AlikeLines
        from agentv.authoring.cases.data_files.jsonl import JsonLines

        # the fast path is for lines that are not rendered and whose reading has no side effects
        context, builder = self.reader.context, self.reader.builder
        renders = reading.renders or builder.fills_in
        compares = isinstance(source, JsonLines) and not (renders or context.request.on_case or context.clusters)
        cases = StreamedCases(source, read_case, AlikeLines(source.path, reading, builder) if compares else None)
        own = reading.report.section()
        self.collector.add_stream(cases, own)
        if not len(cases) and not own.failed:
            own.error("no-tests", Span.start_of(source.path), "this file contains no cases")

    def _remember(self, path: str, reading: Reading) -> bool:
        """Keep the digest of a file. Return False if the file cannot be read, which is reported."""
        try:
            self.disk.remember(path)
        except OSError as error:
            reading.report.unreadable(path, error)
            return False
        return True

    def _format(self, path: str, *, is_data: bool, sheet: str | None) -> Format[Any]:
        from agentv.authoring.cases.data_files.jsonl import JsonLines, Transcripts, holds_transcripts
        from agentv.authoring.cases.data_files.rows import RowKeys

        types = self.reader.context.assertions.types
        if is_data and path.endswith(".jsonl") and holds_transcripts(path):
            return Transcripts(path)
        if path.endswith(".jsonl"):
            return JsonLines(path, self.disk.open, RowKeys(types.knows) if is_data else None)
        return self._table([_table_of(path, sheet)], f"{Path(path).stem}-{sheet}" if sheet else Path(path).stem)

    def _table(self, tables: Sequence[Table], stem: str, name: str = "") -> Format[Any]:
        from agentv.authoring.cases.data_files.csv_table import Expectations
        from agentv.authoring.cases.data_files.table_cases import TableCases

        expectations = Expectations(self.reader.context.assertions.types)
        self._tables += 1
        prefix = f"{stem}-" if self._tables > 1 else ""  # distinguishes the rows of a second table
        return TableCases(tables[0].path, tables, expectations, prefix, self._column_problem, name)

    def _column_problem(self, columns: Sequence[Column], at: Span) -> Diagnostic | None:
        """The problem of a table whose variables no input uses or whose rows check nothing; None if it has none."""
        plain = [column for column in columns if column.kind == "vars"]
        suite = Path(self.path)
        where = suite.with_suffix(".yaml").name if suite.suffix in (".csv", *TABLES) else suite.name
        if not self.reader.prompted:
            name = plain[0].name if plain else "NAME"
            message = "the rows set variables, but no input uses them"
            return Diagnostic("missing-input", message, at, hint=f"write \"input: '{{{{ {name} }}}}'\" into {where}")
        context = self.reader.context
        graded = context.authored.show_only or not all(map(is_empty, context.defaults.asserts))
        if not graded and not any(column.kind == "expected" for column in columns):
            message = "these rows check nothing: they have no column '__expected', and there is no common 'assert'"
            return Diagnostic("checks-nothing", message, at, hint=f"add the column, or 'assert' to {where}")
        return None

    def from_command_line(self, written: str) -> None:
        """Add the cases that `--tests-from` names, instead of those of the file."""
        from agentv.authoring.cases.data_files.rows import HUB, split_sheet

        reading = self.reading
        places = replace(reading.places, suite=str(Path.cwd()), alone=True, typed=True, _found={})
        if not written.startswith(HUB):
            path, sheet = split_sheet(written)
            written = str(Path(path).absolute()) + (f"#{sheet}" if sheet is not None else "")
        self._add_source(Scalar(written, written, NOWHERE), replace(reading, places=places))

    def _add_source(self, node: Scalar, reading: Reading | None = None) -> None:
        """Add cases of other files or of a function. `reading` resolves the path; the suite's by default."""
        from agentv.authoring.cases.data_files.rows import HUB, split_sheet

        reading = reading or self.reading
        text = node.text.strip()
        if text.startswith(HUB):
            self._from_hub(text, node)
            return
        text, sheet = split_sheet(text)
        if sheet is not None:
            for path in matching(Scalar(text, text, node.at), reading, self.path):
                self.stream(path, at=node, sheet=sheet)
            return
        function = _FUNCTION.fullmatch(text)
        if function is not None:
            self._from_function(function["path"], function["name"], node)
            return
        for path in matching(node, reading, self.path):
            if is_directory(path):
                from agentv.authoring.cases.data_files.jsonl import transcripts_in

                recorded, boundary = transcripts_in(path), reading.places.boundary
                if reading.places.typed and boundary is not None:
                    boundary.typed.update(recorded)
                for file in recorded or in_directory(path, node, self.reading):
                    self._file(file, node)
            else:
                self._file(path, node)

    def _from_hub(self, written: str, node: Scalar) -> None:
        """Add the cases of a split of a Hugging Face dataset."""
        from agentv.authoring.cases.data_files.hub_files import tables_of_split

        self.reader.notes.seen = True  # it may hold cases
        found, reading = tables_of_split(written, node, self.reading), self._data_reading(written)
        if found is not None and all(self._remember(table.path, reading) for table in found):
            self._streamed(self._table(found, written.partition("://")[2], written), reading)

    def _file(self, path: str, node: Scalar) -> None:
        reading = self._data_reading(path)
        columns = path.endswith(".csv") and self.reader.prompted  # its columns are variables
        samples = self.samples(path, reading.report) if not columns else None
        if samples is not None and self._remember(path, reading):
            for case in samples:
                self.collector.add(self.reader.read(case, reading.rendering(True)))
            return
        if path.endswith(STREAMED):
            self.stream(path, at=node)
            return
        for item, reading in cases_in(path, node, self._data_reading(path)):
            self.collector.add(self.reader.read(item, reading))

    def _data_reading(self, path: str) -> Reading:
        """The `Reading` for rows of a file: untrusted data, which cannot attach local files if from a git host."""
        reading = self.reading
        if checkout_of(path) is not None:
            places = replace(reading.places, confined=True, _found={})
            reading = replace(reading, places=places)
        return reading if self.trusted else replace(reading, data=True, vars_are_data=True)

    def _from_function(self, path: str, name: str | None, node: Scalar) -> None:
        """Add the cases that a function of a file returns."""
        from agentv.authoring.cases.generators import checked_function, found_module, made_cases

        check = checked_function if path.endswith(".py") else found_module
        function = check(path, name, node, self.reading)
        if function is None:
            return
        if not self.for_run:
            self.reader.notes.seen = True  # whether there are cases is known only when it runs
            message = f"'{name or function.called}' is not called here: its cases are checked when they run"
            self.reading.report.remark("unchecked-cases", node, message)
            return
        self.called.append(function.called)
        for number, cases in made_cases(function, self.reader, self._data_reading(function.path)):
            self.collector.add(cases, f"case {number}: ")


def _table_of(path: str, sheet: str | None) -> Table:
    if path.endswith(".csv"):
        from agentv.authoring.cases.data_files.csv_table import CsvTable

        return CsvTable(path)
    if path.endswith(EXCEL):
        from agentv.authoring.cases.data_files.binary_tables import SheetTable

        return SheetTable(path, sheet)
    from agentv.authoring.cases.data_files.binary_tables import ArrowTable

    return ArrowTable(path)


CASE_FILES = ("case.yaml", "case.yml")
"""Names of files that contain one case. Without an id, the case takes the name of its directory."""

_WORKSPACE = "workspace"
"""Name of the directory beside such a file that is the template of its workspace."""

_WORKSPACES = frozenset({"workspace", "environment"})
"""Keys of a case that define its workspace."""

_SELECTED = (".yaml", ".yml", ".jsonl", ".csv", *TABLES)
"""Suffixes of the files that a pattern selects.

JSON files are selected only by a pattern that ends in `.json`, since most of them contain no cases.
"""

_YAML = (".yaml", ".yml")
_NAMED = (*_YAML, ".json", ".jsonl", ".csv", *TABLES)
"""Suffixes of files with cases that may be named without a pattern."""

_ALLOWED = f"files with cases end in {', '.join(_NAMED[:-1])} or {_NAMED[-1]}"


def matching(node: Scalar, reading: Reading, own: str) -> Sequence[str]:
    """The files, or the one directory, that an item of `tests:` matches. An item without a match is reported.

    Args:
        node: a path or a pattern, with or without `file://`.
        reading: the suite's `Reading`.
        own: path of the eval file, which no pattern matches.
    """
    written = node.text.strip().removeprefix("file://")
    places = reading.places
    literal, _ = places.find(written, span_of(node.at).file)
    if literal is not None or not has_magic(written) or GIT_URL.match(written):
        found = literal or reading.find(node, "file")
        if found == own:
            message = f"'{node.text}' is this file itself; 'tests' must be another file or a list"
            reading.report.error("bad-value", node, message)
            return ()
        return [found] if found and _has_format(found, node, reading) else ()
    suffixes = (".json",) if written.endswith(".json") else _SELECTED

    def holds_cases(path: str) -> bool:  # Excel's lock files begin with ~$
        return path.endswith(suffixes) and path != own and not Path(path).name.startswith("~$")

    return selected(node, written, reading, holds_cases)


def _has_format(path: str, node: Scalar, reading: Reading) -> bool:
    """Whether the suffix of a named file is one of those with cases. Any other suffix is reported."""
    name = Path(path)
    if name.suffix in _NAMED or is_directory(path):
        return True
    found = f"the suffix '{name.suffix}'" if name.suffix else "no suffix"
    message = f"the format of '{node.text}' is unknown: it has {found}; {_ALLOWED}"
    reading.report.error("bad-value", node, message)
    return False


def in_directory(path: str, node: Scalar, reading: Reading) -> Sequence[str]:
    """The `case.yaml` files of a directory and of each directory in it. If none exists, that is reported."""
    folder = Path(path)
    try:
        folders = [folder, *sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))]
        found = [_case_file(one, node, reading, warns=one != folder) for one in folders]
    except OSError as error:
        reading.report.error("missing-file", node, f"cannot read {shown(path)}: {error.strerror}")
        return ()
    paths = [str(one) for one in found if one is not None]
    if not paths:
        message = f"'{node.text}' holds no transcripts, and no directory in it contains a 'case.yaml'"
        hint = f"for the files in it, write '{node.text.rstrip('/')}/*.yaml'" if _yaml_in(folder) else None
        reading.report.error("no-tests", node, message, hint=hint)
    return paths


def _case_file(folder: Path, node: Scalar, reading: Reading, *, warns: bool) -> Path | None:
    found = next((folder / name for name in CASE_FILES if (folder / name).is_file()), None)
    near = did_you_mean(CASE_FILES[0], _yaml_in(folder)) if found is None and warns else None
    if near is not None:
        message = f"{shown(str(folder))} contains no 'case.yaml', so it is not a case"
        reading.report.warning("missing-file", node, message, hint=near.replace("did you mean", "rename", 1))
    return found


def _yaml_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.suffix in _YAML)


def cases_in(path: str, node: Scalar, reading: Reading) -> Iterator[tuple[Node, Reading]]:
    """Yield the cases of a YAML or JSON file as nodes, with the `Reading` for them. Errors are reported."""
    from agentv.authoring.source.json_text import read_document

    text = reading.text_of(path, node)
    if text is None:
        return
    root, valid = read_document(path, text, reading.report)
    if root is None and not valid:
        return
    if root is None or is_empty(root) or isinstance(root, Scalar):
        reading.report.error("no-tests", node, f"'{shown(path)}' contains no cases")
        return
    reading = reading.rendering(reading.renders or holds_placeholder(root))
    for item in root.items if isinstance(root, ListNode) else [_with_id(root, path)]:
        yield item, reading


def _with_id(case: MapNode, path: str) -> MapNode:
    """The case of a `case.yaml`, with the directory's name as id (SPEC section 4) and `workspace/` as template."""
    file = Path(path)
    if file.name not in CASE_FILES:
        return case
    added: dict[str, Node] = {}
    if not any(key in case.items for key in CASE.spelled("id")):
        added["id"] = Scalar(file.parent.name, file.parent.name, case.at)
    workspace = case.items.get("workspace")
    own = isinstance(workspace, MapNode) and "template" not in workspace.items
    if (own or not case.items.keys() & _WORKSPACES) and (file.parent / _WORKSPACE).is_dir():
        template = Scalar(f"./{_WORKSPACE}", f"./{_WORKSPACE}", case.at)
        own_items, keys = (workspace.items, workspace.keys) if isinstance(workspace, MapNode) else ({}, {})
        merged = MapNode({"template": template, **own_items}, {"template": case.at, **keys}, case.at)
        case = MapNode({**case.items, "workspace": merged}, {"workspace": case.at, **case.keys}, case.at)
    return MapNode({**added, **case.items}, {**dict.fromkeys(added, case.at), **case.keys}, case.at) if added else case
