"""Read what code generates: cases (`tests: cases.py:function` or `cases.js`) and suites (`*.eval.py`; SPEC 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.cases.case import CaseReader
from agentv.authoring.cases.collector import SHOWN
from agentv.authoring.fields.python_source import Definitions, read_definitions
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import Node, Scalar, node_of
from agentv.authoring.source.python_values import AS_AUTHORED, BAD_SUITE, as_authored, traced
from agentv.authoring.source.python_values import SUITE as NAME
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic
from agentv.model.suite.suite import CODE_TIMEOUT_S, Case, Suite
from agentv.model.values.formatting import plural
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, Span
from agentv.ports import CodeCall
from agentv.user_code.guard import ForeignError

BAD_GENERATOR = "bad-generator"

MOST = 100_000
"""Maximum number of cases of one function, which are kept in memory. A JSON Lines file may have more."""


WAIT_S = CODE_TIMEOUT_S
"""Seconds that a function may take for one case."""


class CaseFunction(Struct, frozen=True):
    """A function that generates cases.

    Attributes:
        path: path of its file.
        name: its name; "" for the default export in JavaScript, which may be the list of cases itself.
        node: position of the reference in the eval file.
        at: position of its definition, which is also that of its cases.
    """

    path: str
    name: str
    node: Scalar
    at: Span

    @property
    def called(self) -> str:
        """Name of the function in messages."""
        return f"{Path(self.path).name}:{self.name}" if self.name else Path(self.path).name

    @property
    def is_python(self) -> bool:
        """Whether it is Python, which runs in a worker."""
        return self.path.endswith(".py")


def checked_function(path: str, name: str | None, node: Scalar, reading: Reading) -> CaseFunction | None:
    """The Python function that an item of `tests:` names; None if it is invalid, which is reported. Runs no code."""
    report = reading.report
    found = reading.find(Scalar(path, path, node.at), "file")
    if found is None:
        return None
    text = reading.text_of(found, node)
    defined = None if text is None else read_definitions(found, text, BAD_GENERATOR, report)
    if defined is None:
        return None
    functions = sorted(one for one in defined.functions if not one.startswith("_"))
    listed = f"it has {', '.join(functions)}" if functions else "it has none"
    if not name or not name.isidentifier():
        hint = f"write '{path}:{functions[0] if functions else 'function'}'"
        report.error(
            BAD_GENERATOR, node, "a Python file must provide cases through a function", hint=hint, notes=(listed,)
        )
        return None
    if name not in defined.names and not defined.open:
        near = did_you_mean(name, functions)
        notes = () if near else (listed,)
        report.error(BAD_GENERATOR, node, f"'{path}' has no function '{name}'", hint=near, notes=notes)
        return None
    at = _callable_at(defined, name, Span.start_of(found), BAD_GENERATOR, report)
    return None if at is None else CaseFunction(found, name, node, at)


def _callable_at(defined: Definitions, name: str, top: Span, code: str, report: Report) -> Span | None:
    """Position where a name is defined; None if it is a function that needs arguments, which is reported."""
    at, required = defined.names.get(name, top), defined.functions.get(name, ())
    if not required:
        return at
    message = f"'{name}' is called without arguments, but requires {', '.join(required)}"
    report.error(code, at, message, hint="give its parameters defaults")
    return None


def found_module(path: str, name: str | None, node: Scalar, reading: Reading) -> CaseFunction | None:
    """The JavaScript or TypeScript file that an item of `tests:` names. Its exports are checked when it runs."""
    found = reading.find(Scalar(path, path, node.at), "file")
    if found is None or reading.text_of(found, node) is None:
        return None
    return CaseFunction(found, name or "", node, Span.start_of(found))


def made_cases(function: CaseFunction, reader: CaseReader, reading: Reading) -> Iterator[tuple[int, tuple[Case, ...]]]:
    """Call a function and yield its cases, numbered from 1. Invalid cases and exceptions are reported.

    Args:
        function: the function, which was checked.
        reader: reads the suite's cases.
        reading: the suite's `Reading`.
    """
    report = reading.report
    made = _GeneratedCases(function, reader, reading.rendering(True))
    name, number = function.name or function.called, 0
    try:
        for number, value in enumerate(made.values(), 1):
            if number > MOST:
                message = f"'{name}' returns more than {MOST:,} cases, the maximum held in memory"
                report.error(BAD_GENERATOR, function.node, message, hint="write them to a JSON Lines file")
                return
            cases = made.cases(number, value)
            if cases:
                yield number, cases
    except ForeignError as error:
        after = f" (after {plural(number, 'case')})" if number else ""
        report.error(error.failure.code, function.node, f"{error.failure.message}{after}")
        return
    if not number:
        report.error("no-tests", function.node, f"'{name}' returns no cases")
    elif made.wrong > SHOWN:
        message = f"{made.wrong:,} cases of '{function.name}' are invalid; showing the errors of the first {SHOWN}"
        report.error("more-bad-lines", function.node, message)


class _GeneratedCases(Struct):
    function: CaseFunction
    reader: CaseReader
    reading: Reading
    wrong: int = 0

    def values(self) -> Iterator[Any]:
        """Yield the values that the function returns, as plain data.

        Raises:
            ForeignError: the function raised or timed out, or a value is not plain data.
        """
        function = self.function
        if not function.is_python:
            found = in_javascript(function.path, function.name, [{}], self.reading.scope.env, function.called)
            if not isinstance(found, list):
                given = "nothing" if found is None else f"a single {type(found).__name__}"
                message = f"{function.called} must return a list of cases, not {given}"
                raise ForeignError(Failure(BAD_GENERATOR, message))
            yield from (as_authored(one, function.called, BAD_GENERATOR) for one in found)
            return
        from agentv.user_code.blocking import series_of  # few suites have such functions

        call = CodeCall(
            "authoring",
            adapter="",
            payload=None,
            code=BAD_GENERATOR,
            what=function.called,
            function=function.name,
            file=function.path,
            env=dict(self.reading.scope.env) or None,
        )
        yield from series_of(call, AS_AUTHORED, (function.called, BAD_GENERATOR), WAIT_S)

    def cases(self, number: int, value: Any) -> tuple[Case, ...]:
        """The cases of a value. Its errors are reported with its number and the path inside the value."""
        if isinstance(value, dict) and not {"id", "name"} & value.keys() and not self.function.is_python:
            words = (Path(self.function.path).stem, self.function.name, str(number))
            value = {"id": "-".join(filter(None, words)), **value}  # promptfoo's cases have no id
        at, own = self.function.at, Report(hints=self.reading.report.hints)
        cases = self.reader.read(node_of(value, at), structs.replace(self.reading, report=own))
        if own.count:
            self.wrong += 1
            if self.wrong <= SHOWN:

                def read(node: Node, report: Report) -> None:
                    self.reader.read(node, structs.replace(self.reading, report=report))

                for one, path in located(value, at.file, own, read):
                    span = at if path is not None else one.span
                    where = f"case {number}, {path}" if path else f"case {number}"
                    self.reading.report.add(replace(one, message=f"{where}: {one.message}", span=span))
        return cases


def in_javascript(path: str, function: str, arguments: list[Json], env: Mapping[str, str], name: str) -> Json:
    """Call a function of a JavaScript file ("" for the default export). `name` is its name in messages.

    Raises:
        ForeignError: it raised or timed out, or no runtime is installed.
    """
    from agentv.user_code.blocking import call_javascript

    found = call_javascript(f"call:{function}:{path}", {"arguments": arguments}, env, WAIT_S)
    if isinstance(found, Failure):
        code = found.code if found.code in ("timeout", "no-javascript-runtime", "cannot-load") else BAD_GENERATOR
        raise ForeignError(Failure(code, f"{name} {found.message}"))
    return found


def located(
    value: Any, file: str, found: Report, read: Callable[[Node, Report], object]
) -> Iterator[tuple[Diagnostic, str | None]]:
    """Yield the diagnostics about plain data, each with its path in the data, or None if it is about something else.

    The data is read once more, with a position for each part.
    """
    exact, (node, paths) = Report(hints=found.hints), traced(value, file)
    read(node, exact)
    for one in (exact if exact.agrees_with(found) else found).diagnostics:
        yield one, paths.get(one.span)


ReadMade = Callable[[Node, Report], Suite | None]
"""(content of an eval file, report) → the suite, or None if it is invalid."""


def read_python_suite(path: str, report: Report, read_made: ReadMade, *, for_run: bool) -> Suite | None:
    """The suite of a Python file, or None if anything is invalid, which is reported.

    Args:
        path: path of the file.
        report: receives the diagnostics.
        read_made: reads the object that the file defines.
        for_run: run the file; otherwise only check its syntax tree, and return None.
    """
    at = _suite_position(path, report)
    if at is None:
        return None
    if not for_run:
        report.remark("unchecked-cases", at, f"'{NAME}' is not run here: it is checked when it runs")
        return None
    from agentv.user_code.blocking import call_blocking  # few suites are written in Python

    try:
        made = call_blocking(
            CodeCall(
                "authoring",
                "agentv.authoring.source.python_values:authored_suite",
                {"file": path},
                code=BAD_SUITE,
                what=Path(path).name,
                directory=str(Path(path).parent),
            ),
            CODE_TIMEOUT_S,
        )
    except ForeignError as error:
        report.error(error.failure.code, at, error.failure.message)
        return None
    own = Report(hints=report.hints)
    suite = read_made(node_of(made, at), own)
    for one, way in located(made, at.file, own, read_made) if own.count else ():
        message = f"{way}: {one.message}" if way else one.message
        report.add(replace(one, span=at if way is not None else one.span, message=message))
    return suite


def _suite_position(path: str, report: Report) -> Span | None:
    """Position where the file defines its suite; None if it defines none, which is reported. Runs no code."""
    top = Span.start_of(path)
    try:
        source = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        report.unreadable(path, error)
        return None
    except UnicodeDecodeError as error:
        report.error("not-utf-8", top, f"not UTF-8 text (byte {error.start + 1})")
        return None
    found = read_definitions(path, source, BAD_SUITE, report)
    if found is None:
        return None
    if NAME not in found.names and not found.open:
        near = nearest(NAME, found.names)
        hint = f"rename '{near}' to '{NAME}'" if near else "make one with agentv.Suite"
        report.error(BAD_SUITE, top, f"a Python eval file must define '{NAME}', or a function '{NAME}()'", hint=hint)
        return None
    return _callable_at(found, NAME, top, BAD_SUITE, report)
