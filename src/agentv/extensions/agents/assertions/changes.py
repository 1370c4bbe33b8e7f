"""Changes that an agent made: `file-changes` bounds them, `diff` grades them (AGENTS.md section 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from agentv.assertions.evidence import excerpt, listed
from agentv.extensions.agents.assertions.files import NO_WORKSPACE, glob_issues
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade, spent_on
from agentv.model.run.verdict import combined
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.changes import FileChange
from agentv.model.values.formatting import plural
from agentv.model.values.path_globs import matches
from agentv.registry.fields import Alias, Count, DeclaredAssertion, Doc, Entries, Issue, Reads, Texts


@dataclass(frozen=True, slots=True)
class FileChanges(DeclaredAssertion):
    """The agent changed only what it may, and no more than that."""

    reads: ClassVar[Reads] = "work"

    allow: Annotated[Texts | None, Doc("globs; every changed file must match one of them")] = None
    deny: Annotated[Texts | None, Doc("globs; no changed file may match one of them")] = None
    max_files: Annotated[Count | None, Doc("maximum number of changed files")] = None
    max_lines: Annotated[Count | None, Doc("maximum number of added and deleted lines")] = None
    none: Annotated[bool, Doc("true: no file may be changed")] = False

    short: ClassVar[str | None] = None

    def label(self) -> str:
        """What is allowed."""
        if self.none:
            return "none"
        said = [f"only {listed(self.allow)}"] if self.allow else []
        said += [f"not {listed(self.deny)}"] if self.deny else []
        said += [f"≤ {plural(self.max_files, 'file')}"] if self.max_files is not None else []
        said += [f"≤ {plural(self.max_lines, 'line')}"] if self.max_lines is not None else []
        return ", ".join(said)

    def validate(self) -> Iterable[Issue]:
        """Reports globs of no file, options that contradict `none`, and an assertion that checks nothing."""
        yield from glob_issues(self.allow, "allow")
        yield from glob_issues(self.deny, "deny")
        given = [name for name in ("allow", "deny", "max_files", "max_lines") if getattr(self, name) is not None]
        if self.none and given:
            yield Issue((given[0],), f"'none: true' allows no change, so '{given[0]}' has no meaning")
        elif not self.none and not given:
            message = "'file-changes' needs 'allow', 'deny', 'max_files', 'max_lines' or 'none: true'"
            yield Issue((), message, "missing-value")

    def grade(self, context: AssertionContext) -> Grade:
        """Check each limit: a check per limit."""
        if context.changes is None:
            return NO_WORKSPACE
        checks = tuple(self._checks(context.changes.files))
        passed = all(check.passed for check in checks)
        return Grade(1.0 if passed else 0.0, passed, checks)

    def _checks(self, files: Sequence[FileChange]) -> Iterator[Check]:
        paths = tuple(dict.fromkeys(path for one in files for path in _paths(one)))
        if self.none:
            yield Check("no file is changed", not paths, _shown(paths))
        if self.allow is not None:
            others = tuple(path for path in paths if not any(matches(glob, path) for glob in self.allow))
            yield Check(f"only {listed(self.allow)} changed", not others, _shown(others or paths))
        if self.deny is not None:
            denied = tuple(path for path in paths if any(matches(glob, path) for glob in self.deny))
            yield Check(f"{listed(self.deny)} not changed", not denied, _shown(denied or paths))
        if self.max_files is not None:
            yield Check(
                f"at most {plural(self.max_files, 'file')} changed", len(files) <= self.max_files, _shown(paths)
            )
        if self.max_lines is not None:
            lines = sum((one.added_lines or 0) + (one.deleted_lines or 0) for one in files)
            unknown = tuple(one.path for one in files if one.binary)
            said = plural(lines, "line") + (f"; the lines of {listed(unknown)} are unknown" if unknown else "")
            within = lines <= self.max_lines and not unknown  # a large or binary file can hold any number of lines
            yield Check(f"at most {plural(self.max_lines, 'line')} changed", within, excerpt(said))


@dataclass(frozen=True, slots=True)
class Diff(DeclaredAssertion):
    """Assertions on the agent's changes: they see the diff in place of the answer."""

    reads: ClassVar[Reads] = "work"

    assert_: Annotated[Entries, Alias(("assertions",)), Doc("the assertions, such as a rubric or `not-contains`")]
    allow_empty: Annotated[bool, Doc("true: grade an empty diff too; else a trial without changes fails")] = False
    allow_binary: Annotated[
        bool, Doc("true: grade a diff that does not show binary and large files; else it errors")
    ] = False

    short: ClassVar[str | None] = "assert"
    timeout_s: ClassVar[float | None] = math.inf  # each assertion has a limit of its own

    @property
    def inner(self) -> tuple[AssertionEntry, ...]:
        """Its assertions."""
        return self.assert_

    def label(self) -> str:
        """The number of assertions in it."""
        return plural(len(self.assert_), "assertion")

    def validate(self) -> Iterable[Issue]:
        """Reports assertions that check nothing."""
        if not any(one.settings.weight or one.settings.required is not False for one in self.assert_):
            yield Issue(("assert_",), "there is no assertion that counts, so it checks nothing", "missing-value")

    async def grade(self, context: AssertionContext) -> Grade:
        """Grade the diff as a case's answer is graded."""
        changes = context.changes
        if changes is None:
            return NO_WORKSPACE
        if not changes.files and not self.allow_empty:
            return Grade.of(False, "the agent changed a file", "the diff is empty")
        hidden = tuple(one.path for one in changes.files if one.binary and one.kind != "deleted")
        if changes.cut or (hidden and not self.allow_binary):
            what = "all changes" if changes.cut else listed(hidden)
            return Grade.errored("no-data", f"the diff does not show {what}, so that it cannot be graded")
        seen = replace(context, output=changes.patch, value=None, changes=None)  # a judge is shown the diff once
        scores = await context.services.grade(self.assert_, seen)
        whole = combined(scores, context.threshold)
        cost, usage = spent_on(score.grade for score in scores)
        checks = tuple(
            Check(f"{score.entry.name}: {check.text}", check.passed, check.evidence)
            for score in scores
            for check in score.grade.checks
        )
        return Grade(
            score=whole.score,
            passed=whole.passed,
            checks=() if whole.error is not None else checks,
            reason=whole.error.message if whole.error is not None else None,
            error=whole.error,
            has_own_threshold=True,
            cost_usd=cost,
            token_usage=usage,
            undecided=not whole.passed and any(score.grade.undecided for score in scores),
        )


def _paths(change: FileChange) -> tuple[str, ...]:
    """Its path, and the one that it had before."""
    return (change.path,) if change.old_path is None else (change.old_path, change.path)


def _shown(paths: tuple[str, ...]) -> str:
    return excerpt(f"changed: {listed(paths)}") if paths else "no file was changed"
