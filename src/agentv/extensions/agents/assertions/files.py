"""Assertion types on files of the workspace and on the agent's changes (AGENTS.md section 7).

`file-exists`, `file-contains`, `file-equals` and `file-json` read files, `file-changes` limits the changes, `diff`
grades them, and `agent-rubric` lets an agent inspect a copy of the workspace.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import structs
from msgspec.structs import replace

from agentv.assertions.comparing import first_differences, shown
from agentv.assertions.evidence import around, excerpt, listed, quoted
from agentv.assertions.judged.rubric import LlmRubric
from agentv.assertions.structure import AssertSet
from agentv.extensions.agents.assertions.calls import all_or_nothing
from agentv.matching.json_text import NotJson, UnsearchableError
from agentv.matching.json_text import parse as parse_json
from agentv.matching.patterns import PatternError, compiled, search
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import AGENT_JUDGE_TIMEOUT_S
from agentv.model.values.formatting import plural
from agentv.model.values.json_path import Missing, parse, read
from agentv.model.values.path_globs import GlobError, check_glob, glob_pattern, is_glob, matches
from agentv.model.values.response import Failure
from agentv.model.values.trace import FileChange
from agentv.model.values.values import Json
from agentv.registry.fields import (
    Alias,
    Count,
    DeclaredAssertion,
    Doc,
    Document,
    Entries,
    Issue,
    LoadedJson,
    Nonempty,
    Reads,
    Text,
    Texts,
)

LIMIT = 10_000_000
"""Maximum size of a file that is read, in bytes."""

NO_WORKSPACE = Grade.errored("no-workspace", "the case has no workspace; give it or the suite one with 'workspace:'")
"""The grade of any type that needs a workspace, for a case without one."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why the content of a file in the workspace cannot be used."""

    reason: str


def matching_paths(root: str, pattern: str) -> tuple[str, ...]:
    """Return the sorted relative paths that a path or glob matches. Links to directories are not followed."""
    if not is_glob(pattern) and not pattern.endswith("/"):
        path = os.path.normpath(pattern)
        behind_a_link = os.path.commonpath((root, os.path.realpath(Path(root, path).parent))) != root
        return (path,) if not behind_a_link and os.path.lexists(f"{root}/{path}") else ()
    described = glob_pattern(pattern).fullmatch
    every = (
        os.path.relpath(f"{folder}/{name}", root) for folder, *names in os.walk(root) for name in (*names[0], *names[1])
    )
    return tuple(sorted(filter(described, every)))


def content(root: str, path: str) -> bytes | Unreadable:
    """Return the bytes of a file, or Unreadable for links out of the workspace and anything but regular files."""
    real = os.path.realpath(f"{root}/{path}")
    if os.path.commonpath((root, real)) != root:
        return Unreadable("is a link that leads out of the workspace")
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Unreadable("is a link to nothing" if Path(root, path).is_symlink() else "does not exist")
    except OSError as error:
        return Unreadable(f"cannot be read: {error.strerror}")
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        return Unreadable("is a directory" if stat.S_ISDIR(mode) else "is no regular file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(LIMIT + 1)
    return Unreadable(f"has more than {LIMIT // 1_000_000} MB") if len(data) > LIMIT else data


def text_content(root: str, path: str) -> str | Unreadable:
    """Return the text of a UTF-8 file, with or without a byte order mark."""
    data = content(root, path)
    if isinstance(data, Unreadable):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Unreadable("is not UTF-8 text")


def glob_issues(globs: Iterable[str] | None, option: str) -> Iterator[Issue]:
    """Report globs that cannot match a file of any workspace."""
    for place, glob in enumerate(globs or ()):
        try:
            check_glob(glob)
        except GlobError as error:
            yield Issue((option, place), str(error))


WorkspacePath = Annotated[Text, Nonempty(), Doc("a path or glob, relative to the workspace")]


class _FileAssertion(DeclaredAssertion):
    """Base class of the types that read files of the workspace. A glob passes if one of its files does."""

    reads: ClassVar[Reads] = "work"

    __slots__ = ()

    path: str
    reads_files: ClassVar[bool] = True

    def label(self) -> str:
        """The path."""
        return quoted(self.path)

    def validate(self) -> Iterable[Issue]:
        """Report a path that cannot be in the workspace."""
        try:
            check_glob(self.path)
        except GlobError as error:
            yield Issue(("path",), str(error))

    def grade(self, context: AssertionContext) -> Grade | Awaitable[Grade]:
        """Grade the files in a thread."""
        workspace = context.workspace_path
        if workspace is None:
            return NO_WORKSPACE
        return context.services.executor.call(lambda: self._grade_files(os.path.realpath(workspace)))

    def _grade_files(self, root: str) -> Grade:
        """The grade of the first file that passes or errs, else of the last file."""
        grade = Grade.of(False, f"{self.path} {self._expected}", "no such file")
        for path in matching_paths(root, self.path):
            grade = self._grade_file(root, path)
            if grade.error is not None or grade.passed:
                break
        return grade

    @property
    def _expected(self) -> str:
        """The predicate of the check's text, which follows the path."""
        raise NotImplementedError

    def _grade_file(self, root: str, path: str) -> Grade:
        text = text_content(root, path)
        if isinstance(text, Unreadable):
            return Grade.of(False, f"{path} {self._expected}", text.reason)
        return self._grade_text(path, text, f"{path} {self._expected}")

    def _grade_text(self, path: str, text: str, check: str) -> Grade:
        """Grade a file by its text."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FileExists(_FileAssertion):
    """The workspace has such a file or directory."""

    path: WorkspacePath

    short: ClassVar[str | None] = "path"

    @property
    def _expected(self) -> str:
        return "exists"

    def _grade_file(self, root: str, path: str) -> Grade:
        del root
        return Grade.of(True, f"{self.path} exists", excerpt(path))


@dataclass(frozen=True, slots=True)
class FileContains(_FileAssertion):
    """A file of the workspace contains a text, or a match of a pattern."""

    path: WorkspacePath
    value: Annotated[Text | None, Nonempty(), Doc("the text")] = None
    pattern: Annotated[Text | None, Nonempty(), Doc("a regular expression, as in `regex`")] = None

    short: ClassVar[str | None] = None

    def label(self) -> str:
        """The path, and the text or pattern."""
        return f"{quoted(self.path)} {quoted(self.value or self.pattern or '')}"

    def validate(self) -> Iterable[Issue]:
        """Report an impossible path, an invalid pattern, and anything but either `value` or `pattern`."""
        yield from _FileAssertion.validate(self)
        if (self.value is None) == (self.pattern is None):
            yield Issue((), "'file-contains' needs either 'value' or 'pattern'", "missing-value")
        if self.pattern is not None:
            try:
                compiled(self.pattern)
            except PatternError as error:
                yield Issue(("pattern",), f"the pattern does not compile: {error}", "bad-regex")

    @property
    def _expected(self) -> str:
        return f"contains {quoted(self.value or self.pattern or '')}"

    def _grade_text(self, path: str, text: str, check: str) -> Grade:
        if self.value is not None:
            start = text.find(self.value)
            end = start + len(self.value)
        else:
            try:
                match = search(compiled(self.pattern or ""), text)
            except TimeoutError:
                return Grade.errored("regex-timeout", f"the search in {path} took too long")
            start, end = match.span() if match is not None else (-1, -1)
        return Grade.of(start >= 0, check, around(text, start, end) if start >= 0 else excerpt(text, 120))


@dataclass(frozen=True, slots=True)
class FileEquals(_FileAssertion):
    """A file of the workspace holds exactly a text, or the same text as a file of the project."""

    path: WorkspacePath
    value: Annotated[Text | None, Doc("the text")] = None
    file: Annotated[Document | None, Doc("the path of a file that holds the text, relative to the eval file")] = None
    trim: Annotated[bool, Doc("ignore white space at both ends")] = True

    short: ClassVar[str | None] = None

    def validate(self) -> Iterable[Issue]:
        """Report an impossible path, and anything but either `value` or `file`."""
        yield from _FileAssertion.validate(self)
        if (self.value is None) == (self.file is None):
            yield Issue((), "'file-equals' needs either 'value' or 'file'", "missing-value")
        elif self.file is not None and self.file.path is None:
            yield Issue(("file",), f"{quoted(self.file.text)} is not the path of a file")

    @property
    def _expected(self) -> str:
        return "equals the expected text" if self.file is None else f"equals {Path(self.file.path or '').name}"

    def _grade_text(self, path: str, text: str, check: str) -> Grade:
        del path
        wanted = self.file.text if self.file is not None else self.value or ""
        one, other = (text.strip(), wanted.strip()) if self.trim else (text, wanted)
        if one == other:
            return Grade.of(True, check, excerpt(text, 120))
        have, want = one.splitlines(), other.splitlines()
        line = next((at for at, (mine, its) in enumerate(zip(have, want, strict=False)) if mine != its), None)
        if line is None:
            return Grade.of(False, check, f"{len(have)} lines instead of {len(want)}")
        return Grade.of(False, check, f"line {line + 1}: expected {quoted(want[line])}, found {quoted(have[line])}")


@dataclass(frozen=True, slots=True)
class FileJson(_FileAssertion):
    """A file of the workspace is JSON that contains a value, or is equal to it."""

    path: WorkspacePath
    value: Annotated[LoadedJson | None, Doc("the JSON, inline or a path; omitted: any JSON")] = None
    at: Annotated[
        Text | None, Alias(("json_path",)), Nonempty(), Doc("compare only what this path leads to: $.a.b")
    ] = None
    mode: Annotated[Literal["subset", "equal"], Doc("subset: objects may have more keys; equal: no more keys")] = (
        "subset"
    )

    short: ClassVar[str | None] = None

    def validate(self) -> Iterable[Issue]:
        """Report an impossible path, an invalid `at`, and a value that every object contains."""
        yield from _FileAssertion.validate(self)
        if self.at is not None:
            try:
                parse(self.at)
            except ValueError as error:
                yield Issue(("at",), str(error), "bad-path")
        if self.value is not None and self.value.value == {} and self.mode == "subset":
            yield Issue(("value",), "every object has all of {}, so this checks nothing", hint="add mode: equal")

    @property
    def _expected(self) -> str:
        return "is JSON" if self.value is None else "has the expected JSON"

    def _grade_text(self, path: str, text: str, check: str) -> Grade:
        try:
            value: Json | NotJson = parse_json(text)
        except UnsearchableError as error:
            return Grade.errored("too-long", f"{path} contains {error}")
        if isinstance(value, NotJson):
            return Grade.of(False, check, value.reason)
        if self.at is not None:
            inner = read(parse(self.at), value)
            if isinstance(inner, Missing):
                return Grade.of(False, f"{check} at {self.at}", excerpt(inner.message))
            value, check = inner, f"{check} at {self.at}"
        if self.value is None:
            return Grade.of(True, check, shown(value))
        wrong = first_differences(self.value.value, value, subset=self.mode == "subset")
        return Grade.of(not wrong, check, excerpt("; ".join(wrong)) if wrong else shown(value))


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
        parts = [f"only {listed(self.allow)}"] if self.allow else []
        parts += [f"not {listed(self.deny)}"] if self.deny else []
        parts += [f"≤ {plural(self.max_files, 'file')}"] if self.max_files is not None else []
        parts += [f"≤ {plural(self.max_lines, 'line')}"] if self.max_lines is not None else []
        return ", ".join(parts)

    def validate(self) -> Iterable[Issue]:
        """Report globs that match no file, options that contradict `none`, and an assertion that checks nothing."""
        yield from glob_issues(self.allow, "allow")
        yield from glob_issues(self.deny, "deny")
        given = [name for name in ("allow", "deny", "max_files", "max_lines") if getattr(self, name) is not None]
        if self.none and given:
            yield Issue((given[0],), f"'none: true' allows no change, so '{given[0]}' has no meaning")
        elif not self.none and not given:
            message = "'file-changes' needs 'allow', 'deny', 'max_files', 'max_lines' or 'none: true'"
            yield Issue((), message, "missing-value")

    def grade(self, context: AssertionContext) -> Grade:
        """Grade with a check per limit."""
        if context.changes is None:
            return NO_WORKSPACE
        return all_or_nothing([*self._checks(context.changes.files)])

    def _checks(self, files: Sequence[FileChange]) -> Iterator[Check]:
        both = (path for one in files for path in (one.old_path, one.path))
        paths = tuple(dict.fromkeys(path for path in both if path is not None))
        if self.none:
            yield Check("no file is changed", not paths, _shown(paths))
        if self.allow is not None:
            others = tuple(path for path in paths if not any(matches(glob, path) for glob in self.allow))
            yield Check(f"only {listed(self.allow)} changed", not others, _shown(others or paths))
        if self.deny is not None:
            denied = tuple(path for path in paths if any(matches(glob, path) for glob in self.deny))
            yield Check(f"{listed(self.deny)} not changed", not denied, _shown(denied or paths))
        if self.max_files is not None:
            most = plural(self.max_files, "file")
            yield Check(f"at most {most} changed", len(files) <= self.max_files, _shown(paths))
        if self.max_lines is not None:
            lines = sum((one.added_lines or 0) + (one.deleted_lines or 0) for one in files)
            unknown = tuple(one.path for one in files if one.binary)
            evidence = plural(lines, "line") + (f"; the lines of {listed(unknown)} are unknown" if unknown else "")
            within = lines <= self.max_lines and not unknown  # a large or binary file can hold any number of lines
            yield Check(f"at most {plural(self.max_lines, 'line')} changed", within, excerpt(evidence))


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
        """The assertions on the diff."""
        return self.assert_

    def label(self) -> str:
        """The number of assertions in it."""
        return plural(len(self.assert_), "assertion")

    def validate(self) -> Iterable[Issue]:
        """Report assertions that check nothing."""
        return AssertSet(self.assert_).validate()

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
        grade = await AssertSet(self.assert_).grade(seen)
        return grade.without_spans()  # spans refer to the diff, not to the answer


def _shown(paths: tuple[str, ...]) -> str:
    return excerpt(f"changed: {listed(paths)}") if paths else "no file was changed"


@dataclass(frozen=True, slots=True)
class AgentRubric(LlmRubric):
    """An agent grades by a rubric after it looked at a copy of the workspace."""

    needs_agent: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = AGENT_JUDGE_TIMEOUT_S
    title: ClassVar[str] = "agent-rubric"

    async def grade(self, context: AssertionContext) -> Grade:
        """Let the judge inspect a copy. Its verdict is void if it changed the workspace itself."""
        workspace = context.workspace
        if workspace is None:
            return NO_WORKSPACE
        place = await workspace.copy_for_judge()
        if isinstance(place, Failure):
            return Grade.errored(place.code, place.message)
        place = structs.replace(place, max_turns=self.max_steps)
        grade = await LlmRubric.grade(self, replace(context, judge_workspace=place))
        if await workspace.has_hash(place.sha256):
            return grade
        why = Failure("workspace-failed", "the judge changed the workspace that it was to look at")
        return structs.replace(grade, score=0.0, passed=False, checks=(), reason=why.message, error=why)
