"""`command`: grade the final workspace by a program's exit status, tests or reward (AGENTS.md section 7).

Test reports are JUnit XML, which all test runners write.
"""

from __future__ import annotations

import json
import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from xml.parsers.expat import ExpatError, ParserCreate

from msgspec.structs import replace

from agentv.assertions.evidence import excerpt, listed, quoted
from agentv.extensions.agents.assertions.calls import all_or_nothing
from agentv.extensions.agents.assertions.files import NO_WORKSPACE, Unreadable, content, glob_issues
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import PLACES, Check, Grade
from agentv.model.suite.workspace import WorkspaceCommand
from agentv.model.values.path_globs import GlobError, check_glob, is_glob
from agentv.model.values.response import Failure
from agentv.model.values.values import lazy_pattern
from agentv.ports import FailingTests, ProgramResult, Workspace
from agentv.registry.fields import Between, Command, DeclaredAssertion, Doc, Issue, Nonempty, Reads, Text, Texts
from agentv.user_code.excerpts import tail

Outcome = Literal["passed", "failed", "errored", "skipped"]
_OUTCOMES: Mapping[str, Outcome] = {"failure": "failed", "error": "errored", "skipped": "skipped"}
_WORST: tuple[Outcome, ...] = ("passed", "skipped", "failed", "errored")
_STATUSES: Mapping[str, Outcome] = {
    **dict.fromkeys(("fail", "failed", "failure"), "failed"),
    **dict.fromkeys(("error", "errored"), "errored"),
    **dict.fromkeys(("skipped", "notrun", "disabled", "ignored", "pending"), "skipped"),  # GoogleTest, CTest
}
_SUITES = ("testsuite", "testsuites")


@dataclass(frozen=True, slots=True)
class ReportedTest:
    """A test in a report. `message` says why it did not pass."""

    classname: str
    name: str
    file: str
    outcome: Outcome
    message: str = ""

    @property
    def shown(self) -> str:
        """The name with its class, as in pytest, if the report gives one."""
        return f"{self.classname}::{self.name}" if self.classname else self.name

    def names(self) -> Iterator[str]:
        """Yield the names that a user may use: `test_a`, `tests.test_x.test_a`, `tests/test_x.py::TestX::test_a`."""
        yield self.name
        if self.file:
            yield f"{self.file}::{self.name}"
        if not self.classname:
            return
        yield f"{self.classname}.{self.name}"
        yield f"{self.classname}::{self.name}"
        parts = self.classname.split(".")
        for end in range(len(parts), 0, -1):  # reports do not say where the classes begin
            yield "::".join((f"{'/'.join(parts[:end])}.py", *parts[end:], self.name))


class ReportError(Exception):
    """The data is not a valid test report; the message says why."""


def read_report(data: bytes) -> tuple[ReportedTest, ...]:
    """Return the tests in a report, in order.

    Raises:
        ReportError: the report is not well-formed, declares entities, has no suite, or omits failed tests.
    """
    try:
        parser, builder = ParserCreate(namespace_separator="}"), ET.TreeBuilder()
        parser.StartElementHandler = builder.start
        parser.EndElementHandler = builder.end
        parser.EntityDeclHandler = _refuse
        parser.Parse(data, True)
        root = builder.close()
        found = tuple(_tests_in([root]))
        declared = _declared(root)
    except (ExpatError, ValueError, LookupError) as error:
        raise ReportError(f"not well-formed XML: {error}") from None
    except RecursionError:
        raise ReportError("is nested too deep") from None
    if not any(_tag(one) in _SUITES for one in root.iter()):
        raise ReportError("has no <testsuite>")
    wrong = sum(test.outcome in ("failed", "errored") for test in found)
    if declared > wrong:
        raise ReportError(f"says that {declared} tests failed, and names {wrong} of them")
    return found


def _refuse(*_declaration: object) -> None:
    raise ReportError("declares entities, which are never expanded")


def _tag(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def _declared(element: ET.Element) -> int:
    """The number of failed tests that a suite declares, or that its inner suites do if it declares fewer."""
    inner = sum(map(_declared, element))
    if _tag(element) not in _SUITES:
        return inner
    counts = [element.get(key, "") for key in ("failures", "errors")]
    return max(inner, sum(int(count) for count in counts if count.isascii() and count.isdigit()))


def _tests_in(elements: Iterable[ET.Element]) -> Iterator[ReportedTest]:
    for one in elements:
        tag = _tag(one)
        if tag == "testcase":
            wrong = [inner for inner in one.iter() if _tag(inner) in _OUTCOMES]
            outcomes = (_STATUSES.get(one.get("status", "").lower(), "passed"), *(_OUTCOMES[_tag(it)] for it in wrong))
            message = next(filter(None, (inner.get("message") for inner in wrong)), "")
            names = (one.get("classname", ""), one.get("name", ""), one.get("file", ""))
            yield ReportedTest(*names, max(outcomes, key=_WORST.index), message)
            yield from _tests_in(inner for inner in one if _tag(inner) == "testcase")
        elif tag in ("failure", "error"):
            yield ReportedTest("", "outside of any test", "", _OUTCOMES[tag], one.get("message", ""))
        else:
            yield from _tests_in(one)


TIMEOUT_S = 600.0
"""Default time limit of a command, in seconds. It may run the tests of a whole repository."""

_RUNNER = lazy_pattern(
    r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|playwright|phpunit|node --test"
    r"|(?:npm|pnpm|yarn|bun|go|cargo)(?: run)? test)\b"
)
_NO_TESTS = lazy_pattern(
    r"^(?:Ran 0 tests in .*|=* ?no tests ran\b.*|=* ?\d+ (?:skipped|deselected|xfailed)\b.*"
    r"|No tests? (?:files )?found.*|\s*0 passing\b.*|(?:# |ℹ )tests 0)$",
    re.MULTILINE,
)
_RAN_TESTS = lazy_pattern(
    r"\bRan [1-9]\d* tests?\b|\b[1-9]\d* (?:passed|passing)\b|^(?:# |ℹ )tests [1-9]", re.MULTILINE
)
"""Summary lines of test runners: unittest, pytest, jest and vitest, mocha, node."""

DEFEATED = "grader-defeated"
NO_TEST_RAN = "no-test-ran"
NO_REWARD = "no-reward"
_REWARDS = ("reward.json", "reward.txt")
_MOST_SHOWN = 50
_KEPT = 4_000
"""Maximum number of characters that a row keeps of each output stream of a failed command."""


@dataclass(frozen=True, slots=True)
class CommandPasses(DeclaredAssertion):
    """A command that runs in the final workspace exits as expected, or its tests pass."""

    reads: ClassVar[Reads] = "work"

    command: Annotated[Command, Doc("a list of words, or a shell command; it runs in the workspace")]
    cwd: Annotated[Text, Doc("working directory, relative to the workspace")] = ""
    env: Annotated[Mapping[str, Text], Doc("environment variables of the command")] = field(default_factory=dict)
    exit: Annotated[int, Between(0, 255), Doc("expected exit status")] = 0
    stdout: Annotated[Text | None, Nonempty(), Doc("text that the output must contain")] = None
    parse: Annotated[
        Literal["junit", "reward"] | None,
        Doc("what the command writes: a report of tests, or a `reward.json` or `reward.txt`, which is the score"),
    ] = None
    path: Annotated[
        Text | None, Nonempty(), Doc("the report, or the directory of the reward, relative to the workspace")
    ] = None
    fail_to_pass: Annotated[Texts | None, Doc("tests that must pass now; they failed before the agent's work")] = None
    pass_to_pass: Annotated[Texts | None, Doc("tests that must still pass")] = None
    allow_config: Annotated[
        Texts, Doc("globs of files that configure tests, such as `conftest.py`, whose changes by the agent stay")
    ] = ()

    short: ClassVar[str | None] = "command"
    timeout_s: ClassVar[float | None] = TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def label(self) -> str:
        """The command."""
        return quoted(str(self.command))

    def validate(self) -> Iterable[Issue]:
        """Report options that require another one or have no effect, and paths outside the workspace."""
        if self.parse is not None and self.path is None:
            yield Issue((), f"'parse: {self.parse}' needs 'path', where the command writes it", "missing-value")
        if self.parse is None and self.path is not None:
            yield Issue(("path",), "'path' requires parse: junit or parse: reward")
        for option in ("fail_to_pass", "pass_to_pass"):
            if self.parse != "junit" and getattr(self, option) is not None:
                yield Issue((option,), f"'{option}' requires parse: junit")
        if self.parse == "reward" and self.stdout is not None:
            yield Issue(("stdout",), "'stdout' has no effect with parse: reward: the reward alone is the score")
        if self.exit and (self.parse == "reward" or self.fail_to_pass or self.pass_to_pass):
            by = "the reward alone decides" if self.parse == "reward" else "the named tests alone decide"
            yield Issue(("exit",), f"'exit' has no effect here: {by}")
        for option in ("cwd", "path"):
            yield from _path_issues(getattr(self, option), option)
        yield from glob_issues(self.allow_config, "allow_config")

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the command. At the time limit, it is ended together with all processes that it started."""
        workspace = context.workspace
        if workspace is None or context.workspace_path is None:
            return NO_WORKSPACE
        tests = self.parse is not None or _RUNNER.search(str(self.command)) is not None
        restored = await workspace.restore_test_config(self.allow_config) if tests else ()
        if isinstance(restored, Failure):
            return Grade.errored(restored.code, restored.message)
        command = WorkspaceCommand(
            argv=self.command.argv,
            shell=self.command.shell,
            cwd=self.cwd,
            env=dict(self.env),
            timeout_s=float("inf"),  # the assertion's time limit applies
        )
        grade, ended = await self._run(context, workspace, command)
        if tests and grade.passed and self.exit == 0:
            grade = await self._confirmed(grade, workspace, command)
        details = {**grade.details, **({"restored": list(restored)} if restored else {})}
        if ended is not None and not grade.passed:
            streams = (("stdout", ended.stdout), ("stderr", ended.stderr))
            details |= {name: tail(printed, _KEPT) for name, printed in streams if printed.strip()}
        return replace(grade, details=details)

    async def _run(
        self, context: AssertionContext, workspace: Workspace, command: WorkspaceCommand
    ) -> tuple[Grade, ProgramResult | None]:
        """Run a command, and return its grade and how it ended."""
        call, directory, paths = context.services.executor.call, Path(workspace.path), self._reports
        if blocked := await call(lambda: next(filter(None, (_remove_report(directory, one) for one in paths)), "")):
            return Grade.of(False, f"the command writes {self.path}", blocked), None
        ended = await workspace.run(command)
        if isinstance(ended, Failure):
            return Grade.errored(ended.code, ended.message), None
        if not paths:
            return all_or_nothing([*self._outcome(ended)]), ended
        graded = self._reward if self.parse == "reward" else self._tests
        return await call(lambda: graded(ended, os.path.realpath(directory))), ended

    async def _confirmed(self, grade: Grade, workspace: Workspace, command: WorkspaceCommand) -> Grade:
        """Rerun a passed command with tests that must fail. The grade is an error if it passes again."""
        again = await workspace.run_failing_tests(command, self._reports)
        if isinstance(again, Failure):
            return Grade.errored(again.code, again.message)
        how = "" if again is None else again.cheated or self._defeated(again)
        return Grade.errored(DEFEATED, f"a pass proves nothing: {how}") if how else grade

    def _defeated(self, again: FailingTests) -> str:
        """How the command passes with tests that must fail; empty if it fails."""
        ended = again.ended
        if self.parse == "reward":
            reward = "" if again.report is None or not again.loaded else _rewards(again.report)
            passes = isinstance(reward, dict) and _grade_of(reward).passed
            return "with tests that must fail, the reward is the same" if passes else ""
        if self.parse is None:
            passes = again.loaded and ended.status == self.exit
            return f"with tests that must fail, the command exits with {ended.status}" if passes else ""
        try:
            reported = () if again.report is None else read_report(again.report)
        except ReportError:
            reported = ()
        passing = [one.shown for one in reported if one.outcome == "passed" and _is_one_of(one, again.names)]
        if passing:
            return f"the report says that {listed(tuple(passing))} passed, which must fail"
        ends_well = not reported and ended.status == self.exit
        return f"with tests that must fail, the command exits with {ended.status} and no report" if ends_well else ""

    def _outcome(self, ended: ProgramResult) -> Iterator[Check]:
        lines = _last_lines(ended)
        status = f"exit {ended.status}" if ended.status >= 0 else f"killed by signal {-ended.status}"
        evidence = status if ended.status == self.exit or not lines else f"{status}: {lines}"
        yield Check(f"exits with {self.exit}", ended.status == self.exit, excerpt(evidence))
        printed = b"\n".join((ended.stdout, ended.stderr)).decode("utf-8", "replace")
        none = _NO_TESTS.search(printed)
        if none is not None and _RAN_TESTS.search(printed) is None:
            yield Check("runs a test", False, excerpt(none[0].strip()))
        if self.stdout is not None:
            printed = ended.stdout.decode("utf-8", "replace")
            evidence = excerpt(printed.strip(), 120) or "nothing"
            yield Check(f"prints {quoted(self.stdout)}", self.stdout in printed, evidence)

    @property
    def _reports(self) -> tuple[str, ...]:
        """The paths of the reports that the command may write. The first that exists counts."""
        if self.path is None:
            return ()
        if self.parse == "reward":
            return tuple(os.path.normpath(f"{self.path}/{name}") for name in _REWARDS)
        return (self.path,)

    def _reward(self, ended: ProgramResult, root: str) -> Grade:
        """Grade by the reward, whatever the exit status."""
        written = [path for path in self._reports if os.path.lexists(f"{root}/{path}")]
        if not written:
            return Grade.errored(NO_REWARD, f"the command writes no {' or '.join(self._reports)}; {_status(ended)}")
        data = content(root, written[0])
        if isinstance(data, Unreadable):
            return Grade.errored(NO_REWARD, f"{written[0]} {data.reason}; {_status(ended)}")
        rewards = _rewards(data)
        return Grade.errored(NO_REWARD, f"the reward {rewards}") if isinstance(rewards, str) else _grade_of(rewards)

    def _tests(self, ended: ProgramResult, root: str) -> Grade:
        """Grade by the report: all tests, or those that the assertion names."""
        (path,) = self._reports
        data = content(root, path)
        if isinstance(data, Unreadable):
            reason = f"{path} {data.reason} after the command; {_status(ended)}"
            return Grade.of(False, "the command writes a report", excerpt(reason))
        try:
            tests = read_report(data)
        except ReportError as error:
            return Grade.of(False, "the command writes a report", f"{path} {error}")
        ran = [test for test in tests if test.outcome != "skipped"]
        if not ran:
            skipped = f"{len(tests)} skipped; " if tests else ""
            return Grade.errored(NO_TEST_RAN, f"the command ran no test: {skipped}{_status(ended)}")
        if self.fail_to_pass is not None or self.pass_to_pass is not None:
            checks = [_check_test(name, tests) for name in (*(self.fail_to_pass or ()), *(self.pass_to_pass or ()))]
            if self.stdout is not None:
                checks += [*self._outcome(ended)][1:]
            return _share(checks)
        checks = []
        for test in ran:
            passed = test.outcome == "passed"
            checks.append(Check(f"{test.shown} passes", passed, excerpt(test.message) or test.outcome))
        return _share([*checks, *self._outcome(ended)])


def _rewards(data: bytes) -> dict[str, float] | str:
    """Return the rewards that count by name (`reward` if present, else all), or what is wrong with them."""
    text = data.decode(errors="replace").strip()
    try:
        found = json.loads(text, parse_int=float)
    except (ValueError, RecursionError):
        return f"is not a number or an object of numbers: {excerpt(text) or 'it is empty'}"
    rewards = found if isinstance(found, dict) else {"reward": found}
    if not rewards or not all(isinstance(one, float) and math.isfinite(one) for one in rewards.values()):
        return f"is not a number or an object of numbers: {excerpt(json.dumps(found))}"
    counted = {"reward": rewards["reward"]} if "reward" in rewards else rewards
    outside = next((f"{name}: {one:g}" for name, one in counted.items() if not 0 <= one <= 1), None)
    return counted if outside is None else f"is not from 0 to 1 ({outside})"


def _grade_of(rewards: Mapping[str, float]) -> Grade:
    """Return a grade whose score is the mean of all rewards; it passes if each is 1."""
    checks = tuple(Check(f"{name} is 1", one >= 1, f"{one:g}") for name, one in rewards.items())
    mean = sum(rewards.values()) / len(rewards)
    return Grade(round(mean, PLACES), all(one.passed for one in checks), checks, has_own_threshold=True)


def _is_one_of(test: ReportedTest, names: frozenset[str]) -> bool:
    """Whether a reported test is one of the functions `module::function`."""
    function = test.name.partition("[")[0]
    modules = {*test.classname.split("."), Path(test.file).stem}
    return any(f"{module}::{function}" in names for module in modules)


def _check_test(written: str, tests: Sequence[ReportedTest]) -> Check:
    """Check a test by name. If several tests match, all must pass. A skipped test does not pass."""
    meant = [test for test in tests if written in test.names()]
    if not meant:
        return Check(f"{written} passes", False, "the report has no such test")
    wrong = next((test for test in meant if test.outcome != "passed"), None)
    evidence = "passed" if wrong is None else excerpt(wrong.message) or wrong.outcome
    return Check(f"{written} passes", wrong is None, evidence)


def _share(checks: Sequence[Check]) -> Grade:
    """Return a grade that passes if all checks pass; its score is the share that pass."""
    held = sum(check.passed for check in checks)
    shown = sorted(checks, key=lambda check: check.passed)[:_MOST_SHOWN]  # failed checks first
    details, score = {"checks": len(checks), "passed": held}, round(held / len(checks), PLACES)
    return Grade(score, held == len(checks), tuple(shown), details=details, has_own_threshold=True)


def _remove_report(workspace: Path, path: str) -> str:
    """Remove an existing report before the command runs, since the agent may have written it.

    Returns:
        Why it cannot be removed; empty if no report is left.
    """
    place = workspace / path
    if not place.parent.resolve().is_relative_to(workspace.resolve()):
        return f"{path} is behind a link that leads out of the workspace"
    try:
        place.unlink(missing_ok=True)
    except OSError as error:
        return f"{path} was there before the command and cannot be removed: {error.strerror}"
    return ""


def _status(ended: ProgramResult) -> str:
    lines = _last_lines(ended)
    return f"exit {ended.status}" + (f": {lines}" if lines else "")


def _last_lines(ended: ProgramResult) -> str:
    return tail(ended.stderr or ended.stdout)


def _path_issues(path: str | None, option: str) -> Iterator[Issue]:
    if not path:
        return
    try:
        check_glob(path)
    except GlobError as error:
        yield Issue((option,), str(error))
        return
    if is_glob(path):
        yield Issue((option,), f"'{path}' is a glob; write one path")
