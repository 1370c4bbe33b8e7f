"""JUnit XML reports: the tests of a run, by the names that people write (AGENTS.md section 7).

There is no standard; read as pytest, Maven Surefire, Jest, Go and .NET write it: https://github.com/testmoapp/junitxml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from xml.parsers.expat import ExpatError, ParserCreate

Outcome = Literal["passed", "failed", "errored", "skipped"]
_OUTCOMES: Mapping[str, Outcome] = {"failure": "failed", "error": "errored", "skipped": "skipped"}
_WORST: tuple[Outcome, ...] = ("passed", "skipped", "failed", "errored")
_STATUSES: Mapping[str, Outcome] = {
    **dict.fromkeys(("fail", "failed", "failure"), "failed"),
    **dict.fromkeys(("error", "errored"), "errored"),
    **dict.fromkeys(("skipped", "notrun", "disabled", "ignored", "pending"), "skipped"),  # GoogleTest, CTest
}
MOST_TESTS = 100_000


@dataclass(frozen=True, slots=True)
class ReportedTest:
    """One test of a report. `message`: why it did not pass."""

    classname: str
    name: str
    file: str
    outcome: Outcome
    message: str = ""

    @property
    def shown(self) -> str:
        """As pytest names it where the report has the parts for that."""
        return f"{self.classname}::{self.name}" if self.classname else self.name

    def is_called(self, written: str) -> bool:
        """Whether a person means this test: `test_a`, `tests.test_x.test_a`, `tests/test_x.py::TestX::test_a`."""
        return written in self._names()

    def _names(self) -> Iterator[str]:
        yield self.name
        if self.file:
            yield f"{self.file}::{self.name}"
        if not self.classname:
            return
        yield f"{self.classname}.{self.name}"
        yield f"{self.classname}::{self.name}"
        parts = self.classname.split(".")
        for end in range(len(parts), 0, -1):  # where the module ends and classes begin is not said
            yield "::".join((f"{'/'.join(parts[:end])}.py", *parts[end:], self.name))


class ReportError(Exception):
    """A text is no report of tests; the message says why."""


def read_report(data: bytes) -> tuple[ReportedTest, ...]:
    """The tests of a report, in order.

    Raises:
        ReportError: it is not well-formed, declares entities, or has too many tests.
    """
    found: list[ReportedTest] = []
    reader = _Reader(found)
    parser = ParserCreate()
    parser.specified_attributes = True
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.EntityDeclHandler = reader.refuse
    try:
        parser.Parse(data, True)
    except ExpatError as error:
        raise ReportError(f"not well-formed XML: {error}") from None
    if not reader.is_report:
        raise ReportError("has no <testsuite>")
    wrong = sum(test.outcome in ("failed", "errored") for test in found)
    if reader.declared > wrong:
        raise ReportError(f"says that {reader.declared} tests failed, and names {wrong} of them")
    return tuple(found)


class _Reader:
    def __init__(self, found: list[ReportedTest]) -> None:
        self._found = found
        self._test: Mapping[str, str] | None = None
        self._outcome: Outcome = "passed"
        self._message = ""
        self._suites = 0
        self.declared = 0
        self.is_report = False

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        tag = name.rpartition("}")[2].lower()
        if tag in ("testsuite", "testsuites"):
            self.is_report = True
            self._declare(attributes, outermost=tag == "testsuites")
        elif tag == "testcase":
            status = attributes.get("status", "").lower()
            self._test, self._outcome, self._message = attributes, _STATUSES.get(status, "passed"), ""
        elif tag in _OUTCOMES and self._test is not None:
            self._outcome = max(self._outcome, _OUTCOMES[tag], key=_WORST.index)
            self._message = self._message or attributes.get("message", "")
        elif tag in ("failure", "error"):
            self._found.append(
                ReportedTest("", "outside of any test", "", _OUTCOMES[tag], attributes.get("message", ""))
            )

    def _declare(self, attributes: Mapping[str, str], *, outermost: bool) -> None:
        """Add up how many tests failed by the attributes of suites, which may stand at the outermost one alone."""
        counts = [attributes.get(key, "") for key in ("failures", "errors")]
        number = sum(int(count) for count in counts if count.isascii() and count.isdigit())
        self._suites += 0 if outermost else number
        self.declared = max(self.declared, number, self._suites)

    def end(self, name: str) -> None:
        if name.rpartition("}")[2].lower() != "testcase" or self._test is None:
            return
        if len(self._found) >= MOST_TESTS:
            raise ReportError(f"has more than {MOST_TESTS:,} tests")
        said = self._test
        classname, file = said.get("classname", ""), said.get("file", "")
        self._found.append(ReportedTest(classname, said.get("name", ""), file, self._outcome, self._message))
        self._test = None

    def refuse(self, *_declaration: object) -> None:
        raise ReportError("declares entities, which are never expanded")
