"""Writes samples and tasks of other tools as suites, for `agentv convert`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Literal, TextIO

from msgspec import Struct

from agentv.app.registries import registries
from agentv.authoring.convert.emit import jsonl_text, yaml_text
from agentv.authoring.convert.records import Findings
from agentv.authoring.loading.load import LoadRequest, load
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Scalar, node_of
from agentv.errors import Diagnostic, LoadError, UsageError
from agentv.extensions.datasets.cases import CHECKS, DatasetCheck, cases
from agentv.extensions.datasets.formats import FORMATS
from agentv.extensions.datasets.samples import TITLES
from agentv.model.values.formatting import plural

SampleFormat = Literal["yaml", "jsonl"]

_BATCH_SIZE = 200
"""Number of cases that are written at a time."""

_LINES = ".jsonl"
_ID = re.compile(r"""(?:- |\{")id"?: ?["']?([^"',]*)""")


class ConvertedDataset(Struct, frozen=True):
    """Result of converting a file of samples.

    Attributes:
        paths: the files that were written.
        count: number of cases.
        checks: how cases are checked, for messages.
        omitted: diagnostics of what was omitted.
    """

    paths: tuple[Path, ...]
    count: int
    checks: str
    omitted: tuple[Diagnostic, ...]


class DatasetRequest(Struct, frozen=True):
    """What to convert, and the output.

    Attributes:
        source: the file of samples, or the directory of tasks.
        form: its format.
        checks: values of `--assert`.
        to: the format of the cases.
        out: the file to write; by default beside the source.
        tools: the module with the tools that tasks call.
        command: command that runs the tests of a row of SWE-bench and writes a JUnit report; pytest by default.
    """

    source: Path
    form: str
    checks: Sequence[str]
    to: SampleFormat
    out: Path | None
    tools: Path | None = None
    command: str | None = None


class SuiteContent(Struct, frozen=True):
    """A suite to write.

    Attributes:
        head: its keys besides `name` and the cases.
        cases: its cases, which are created while they are written.
        checks: how cases are checked, for messages.
        findings: diagnostics, which grow as cases are created.
    """

    head: Mapping[str, Node]
    cases: Iterator[MapNode]
    checks: str
    findings: Findings


def from_dataset(request: DatasetRequest, process_env: Mapping[str, str]) -> ConvertedDataset:
    """Write samples as a suite. Overwrites nothing; removes incomplete output after an error.

    Raises:
        LoadError: a sample is invalid, or cannot be checked in the requested way.
        UsageError: no check is given, or an output file exists.
        OSError: a file cannot be read or written.
    """
    checks, names = _checks(request)
    findings = Findings()
    shared = [check.shared for check in checks if check.shared is not None]
    head: dict[str, Node] = {"assert": node_of(shared, NOWHERE)} if shared else {}
    if len(checks) > 1:
        head["threshold"] = node_of(1, NOWHERE)  # each check must pass
    head |= FORMATS[request.form].head(request.source, request.tools, _output_paths(request)[0])
    server = request.tools.stem if request.tools is not None else ""
    with ExitStack() as undo:
        made = cases(str(request.source), request.form, checks, findings, server)
        return write_suite(request, SuiteContent(head, made, names, findings), undo, process_env)


def write_suite(
    request: DatasetRequest, content: SuiteContent, undo: ExitStack, process_env: Mapping[str, str]
) -> ConvertedDataset:
    """Write a suite and load it to check it. Its files are removed if it is invalid.

    Args:
        request: what to convert.
        content: the suite.
        undo: removes the written files; emptied on success.
        process_env: the environment in which the suite is loaded.

    Raises:
        LoadError, UsageError, OSError: as in `from_dataset`.
    """
    path, lines = _output_paths(request)
    name = path.name.removesuffix(path.suffix).removesuffix(".eval").removesuffix(".cases")
    head, findings = {"name": Scalar(name, name, NOWHERE), **content.head}, content.findings
    count = 0
    out = _opened(path, undo)
    out.write(yaml_text(head) if lines is not None else f"{yaml_text(head)}tests:\n")
    into = _opened(lines, undo) if lines is not None else out
    while some := list(islice(content.cases, _BATCH_SIZE)):  # so that memory does not grow with their number
        count += len(some)
        if lines is not None:
            into.write(jsonl_text(some))
        else:
            into.write(yaml_text({"tests": ListNode(list(some), NOWHERE)}).removeprefix("tests:\n"))
    out.close()
    into.close()
    if not findings.failed and not count:
        raise UsageError(f"{request.source} contains no {'tasks' if request.source.is_dir() else 'samples'}")
    if findings.failed:
        raise LoadError(findings.diagnostics)
    try:
        load(LoadRequest((str(lines or path),), process_env=process_env, for_run=False), registries())
    except LoadError as error:
        first = next(one for one in error.diagnostics if one.severity == "error")
        more = sum(one.severity == "error" for one in error.diagnostics) - 1
        others = f", and {plural(more, 'further error')}" if more else ""
        where = "" if first.span is None else _case_at(Path(first.span.file), first.span.line)
        message = f"the suite would be invalid, so it is not written: {where}{first.message}{others}"
        raise UsageError(message, first.hint) from None
    undo.pop_all()
    return ConvertedDataset((path, *([lines] if lines else [])), count, content.checks, findings.diagnostics)


def _checks(request: DatasetRequest) -> tuple[tuple[DatasetCheck, ...], str]:
    """The checks, and their description for messages.

    Raises:
        UsageError: no check is given, and samples do not say how they are graded.
    """
    if request.checks:
        checks = tuple(CHECKS[name] for name in dict.fromkeys(request.checks))
        return checks, " and ".join(check.name for check in checks)
    reader = FORMATS[request.form]
    first = next(reader.records(str(request.source), Findings()), None)
    if first is None or reader.is_self_graded(first):
        return (), "what each says of a right answer"
    message = f"{request.source} contains {TITLES[request.form]}, which do not say how answers are checked"
    raise UsageError(message, f"add --assert TYPE (repeatable): {', '.join(CHECKS)}")


def _output_paths(request: DatasetRequest) -> tuple[Path, Path | None]:
    """The path of the suite, and that of its cases if they are in another file.

    Raises:
        UsageError: a file exists, or has the wrong suffix.
    """
    source = request.source
    stem = source.name.removesuffix(source.suffix).removesuffix(".eval")
    if request.to == "yaml":
        path, lines = request.out or source.with_name(f"{stem}.eval.yaml"), None
        if path.suffix not in (".yaml", ".yml"):
            raise UsageError(f"{path} must end in .yaml", f"for {_LINES}, add --to jsonl")
    else:
        lines = request.out or source.with_name(f"{stem}.cases{_LINES}")
        if lines.suffix != _LINES:
            raise UsageError(f"{lines} must end in {_LINES}")
        path = lines.with_suffix(".yaml")
    existing = [str(one) for one in (path, lines) if one is not None and (one.exists() or one.is_symlink())]
    if existing:
        hint = "choose another file with --out, or move the existing one"
        raise UsageError(f"{' and '.join(existing)} would be overwritten", hint)
    return path, lines


def _opened(path: Path, undo: ExitStack) -> TextIO:
    file = path.open("x", encoding="utf-8", newline="\n")
    undo.callback(path.unlink, missing_ok=True)
    undo.callback(file.close)
    return file


def _case_at(path: Path, line: int) -> str:
    """The prefix `case 'task-7': ` of a message for a line of the written suite; empty before the first case."""
    written = path.read_text(encoding="utf-8").splitlines()[:line]
    ids = (_ID.match(one) for one in reversed(written))
    return next((f"case '{found[1]}': " for found in ids if found), "")
