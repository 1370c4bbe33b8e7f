"""`command`: a program decides in the final workspace, by its exit status or by its tests (AGENTS.md section 7)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from agentv.assertions.evidence import excerpt, listed, quoted
from agentv.assertions.work.junit import ReportedTest, ReportError, read_report
from agentv.assertions.work.workspace_files import NO_WORKSPACE, Unreadable, content
from agentv.lazy_dataclass import dataclass
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import PLACES, Check, Grade
from agentv.model.suite.workspace import WorkspaceCommand
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.path_globs import GlobError, check_glob, is_glob, matches
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.ports import ProgramResult
from agentv.registry.fields import Between, Command, DeclaredAssertion, Doc, Issue, Nonempty, Text, Texts
from agentv.user_code.excerpts import tail

TIMEOUT_S = 600.0
"""Seconds that a command may take where the entry says nothing: it may run the tests of a whole repository."""

_RUNNER = lazy_pattern(r"\b(?:pytest|py\.test|tox|nox|jest|vitest|mocha|playwright|phpunit)\b")
_MOST_FAILED = 50
_KEPT = 4_000
"""Characters of each output of a failed command that its row keeps."""


@dataclass(frozen=True, slots=True)
class CommandPasses(DeclaredAssertion):
    """A command that runs in the final workspace exits as expected, or its tests pass."""

    command: Annotated[Command, Doc("a list of words, or a shell command; it runs in the workspace")]
    cwd: Annotated[Text, Doc("working directory, relative to the workspace")] = ""
    env: Annotated[Mapping[str, Text], Doc("environment variables of the command")] = field(default_factory=dict)
    exit: Annotated[int, Between(0, 255), Doc("expected exit status")] = 0
    stdout: Annotated[Text | None, Nonempty(), Doc("text that the output must contain")] = None
    parse: Annotated[Literal["junit"] | None, Doc("read the tests from the report that the command writes")] = None
    path: Annotated[Text | None, Nonempty(), Doc("the report, relative to the workspace")] = None
    fail_to_pass: Annotated[Texts | None, Doc("tests that must pass now; they failed before the agent's work")] = None
    pass_to_pass: Annotated[Texts | None, Doc("tests that must still pass")] = None
    allow_config: Annotated[
        Texts, Doc("globs of files that configure tests, such as `conftest.py`, which the agent may add or change")
    ] = ()

    short: ClassVar[str | None] = "command"
    timeout_s: ClassVar[float | None] = TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def label(self) -> str:
        """The command."""
        return quoted(str(self.command))

    def validate(self) -> Iterable[Issue]:
        """Reports a report without a path, lists of tests without a report, and paths outside the workspace."""
        if self.parse is not None and self.path is None:
            yield Issue((), "'parse: junit' needs 'path', the report that the command writes", "missing-value")
        for option in ("path", "fail_to_pass", "pass_to_pass"):
            if self.parse is None and getattr(self, option) is not None:
                yield Issue((option,), f"'{option}' requires parse: junit")
        for option in ("cwd", "path"):
            yield from _path_issues(getattr(self, option), option)
        for place, glob in enumerate(self.allow_config):
            try:
                check_glob(glob)
            except GlobError as error:
                yield Issue(("allow_config", place), str(error))

    async def grade(self, context: AssertionContext) -> Grade:
        """Run the command. It ends with the grade's time limit, and all that it started with it."""
        workspace = context.workspace
        if workspace is None or context.workspace_path is None:
            return NO_WORKSPACE
        call, directory, path = context.services.executor.call, context.workspace_path, self.path
        if path is not None and (blocked := await call(lambda: _remove_report(Path(directory), path))):
            return Grade.of(False, f"the command writes {path}", blocked)
        ended = await workspace.run(
            WorkspaceCommand(
                argv=self.command.argv,
                shell=self.command.shell,
                cwd=self.cwd,
                env=dict(self.env),
                timeout_s=float("inf"),  # the entry's own limit cancels this
            )
        )
        if isinstance(ended, Failure):
            return Grade.errored(ended.code, ended.message)
        if path is None:
            grade = _all_of([*self._outcome(ended)])
        else:
            grade = await call(lambda: self._tests(ended, os.path.realpath(directory), path))
        grade = self._trusted(grade, context)
        return grade if grade.passed else replace(grade, details={**grade.details, **_printed(ended)})

    def _trusted(self, grade: Grade, context: AssertionContext) -> Grade:
        """The grade; failed where the agent changed what decides how hidden tests run, so that they prove nothing."""
        changed = context.changes.test_config if context.changes is not None else ()
        if self.parse is None and _RUNNER.search(str(self.command)) is None:
            return grade
        others = tuple(one for one in changed if not any(matches(glob, one) for glob in self.allow_config))
        if not others:
            return grade
        said = f"{listed(others)}; 'allow_config' names what the agent may change"
        check = Check("the agent did not change how hidden tests run", False, excerpt(said))
        return replace(grade, score=0.0, passed=False, checks=(check, *grade.checks))

    def _outcome(self, ended: ProgramResult) -> Iterator[Check]:
        said = _last_lines(ended)
        status = f"exit {ended.status}" if ended.status >= 0 else f"killed by signal {-ended.status}"
        evidence = status if ended.status == self.exit or not said else f"{status}: {said}"
        yield Check(f"exits with {self.exit}", ended.status == self.exit, excerpt(evidence))
        if self.stdout is not None:
            printed = ended.stdout.decode("utf-8", "replace")
            yield Check(
                f"prints {quoted(self.stdout)}", self.stdout in printed, excerpt(printed.strip(), 120) or "nothing"
            )

    def _tests(self, ended: ProgramResult, root: str, path: str) -> Grade:
        """The grade by the report: every test, or those that the entry names."""
        data = content(root, path)
        if isinstance(data, Unreadable):
            reason = f"{path} {data.reason} after the command; {_status(ended)}"
            return Grade.of(False, "the command writes a report", excerpt(reason))
        try:
            tests = read_report(data)
        except ReportError as error:
            return Grade.of(False, "the command writes a report", f"{path} {error}")
        if self.fail_to_pass is not None or self.pass_to_pass is not None:
            checks = [_named(name, tests) for name in (*(self.fail_to_pass or ()), *(self.pass_to_pass or ()))]
            if self.stdout is not None:
                checks += [*self._outcome(ended)][1:]
            return _share(checks)
        ran = [test for test in tests if test.outcome != "skipped"]
        if not ran:
            return Grade.of(False, "the report has a test that ran", f"{len(tests)} skipped; {_status(ended)}")
        return _share([*_each(ran), *self._outcome(ended)])


def _each(tests: Sequence[ReportedTest]) -> Iterator[Check]:
    """A check for each test that did not pass, and one for all others; each test counts once."""
    for test in tests:
        yield Check(f"{test.shown} passes", test.outcome == "passed", excerpt(test.message) or test.outcome)


def _named(written: str, tests: Sequence[ReportedTest]) -> Check:
    """The check of one test by its name. Where the name fits several, each must pass; skipped is not passed."""
    meant = [test for test in tests if test.is_called(written)]
    if not meant:
        return Check(f"{written} passes", False, "the report has no such test")
    wrong = next((test for test in meant if test.outcome != "passed"), None)
    return Check(
        f"{written} passes", wrong is None, "passed" if wrong is None else excerpt(wrong.message) or wrong.outcome
    )


def _share(checks: Sequence[Check]) -> Grade:
    """Passes if all checks pass; the score is the share that pass."""
    held = sum(check.passed for check in checks)
    shown = [*(check for check in checks if not check.passed)][:_MOST_FAILED]
    shown += [check for check in checks if check.passed][: max(_MOST_FAILED - len(shown), 0)]
    details = {"checks": len(checks), "passed": held}
    return Grade(
        round(held / len(checks), PLACES), held == len(checks), tuple(shown), details=details, has_own_threshold=True
    )


def _all_of(checks: Sequence[Check]) -> Grade:
    passed = all(check.passed for check in checks)
    return Grade(1.0 if passed else 0.0, passed, tuple(checks))


def _remove_report(workspace: Path, path: str) -> str:
    """Remove the report that was there before the command ran, since the agent may have written it.

    Returns:
        Why that is impossible; empty where no report is left.
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
    said = _last_lines(ended)
    return f"exit {ended.status}" + (f": {said}" if said else "")


def _printed(ended: ProgramResult) -> dict[str, Json]:
    """The ends of what a failed command printed, for the row."""
    streams = (("stdout", ended.stdout), ("stderr", ended.stderr))
    return {name: tail(printed, _KEPT) for name, printed in streams if printed.strip()}


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
