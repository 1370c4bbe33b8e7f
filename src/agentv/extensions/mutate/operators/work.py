"""An agent's final workspace as operators see it, and what a case names of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentv.extensions.mutate.operators.named import NOTHING_NAMED, NamedWords, all_entries, texts_in, words_of
from agentv.extensions.mutate.operators.patch import Hunk
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.path_globs import matches

_RUNS_TESTS = lazy_pattern(r"\b(?:\w*tests?|py\.test|tox|nox|jest|vitest|mocha|phpunit|rspec)\b")
_DEBUG_WORDS = frozenset({"debug", "debugging", "print", "prints", "println", "console", "log", "logging", "puts"})


def reads_work(entry: AssertionEntry) -> bool:
    """Whether an assertion reads the workspace, and nothing of the answer."""
    return getattr(entry.assertion, "reads", None) == "work"


@dataclass(frozen=True, slots=True)
class NamedWork:
    """What the checks of a case name of a workspace.

    Attributes:
        read: paths and globs of files that assertions read.
        kept: globs of files that the agent must not change.
        runs: a command grades the workspace.
        runs_tests: one of the commands runs tests.
        names_debugging: the criteria or an assertion name debug output.
    """

    read: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    runs: bool = False
    runs_tests: bool = False
    names_debugging: bool = False

    def names(self, path: str) -> bool:
        """Whether a path is named."""
        return any(matches(glob, path) for glob in (*self.read, *self.kept))


@dataclass(frozen=True, slots=True)
class WorkFile:
    """A text file of the final workspace.

    Attributes:
        text: its content; None: the agent deleted it.
        hunks: of the agent's diff.
        is_new: the agent added it.
    """

    path: str
    text: str | None
    hunks: tuple[Hunk, ...] = ()
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What an agent left in its workspace.

    Attributes:
        changed: the text files that it changed.
        tests: files with tests, changed or not.
        words: what the criteria and the assertions on the workspace name.
    """

    changed: tuple[WorkFile, ...] = ()
    tests: tuple[WorkFile, ...] = ()
    named: NamedWork = NamedWork()
    words: NamedWords = NOTHING_NAMED

    def texts(self) -> dict[str, str | None]:
        """Path → the text of a file."""
        return {one.path: one.text for one in (*self.tests, *self.changed)}


def named_work(case: Case, entries: Iterable[AssertionEntry]) -> NamedWork:
    """What a case names of its workspace, by its assertions, its criteria and its protected files."""
    read: list[str] = []
    kept = list(case.workspace.protected) if case.workspace is not None else []
    commands: list[str] = []
    words = set(words_of(case.criteria or ""))
    for entry in all_entries(entries):
        assertion = entry.assertion
        words |= {word for text in texts_in(assertion) for word in words_of(text)}
        if getattr(assertion, "reads_files", False):
            read.append(getattr(assertion, "path", ""))
        elif entry.type == "file-changes":
            kept += getattr(assertion, "deny", None) or ()
        elif entry.type == "command":
            commands.append(f"{getattr(assertion, 'command', '')} {getattr(assertion, 'parse', None) or ''}")
    return NamedWork(
        read=tuple(read),
        kept=tuple(kept),
        runs=bool(commands),
        runs_tests=any(_RUNS_TESTS.search(one) or "junit" in one for one in commands),
        names_debugging=not words.isdisjoint(_DEBUG_WORDS),
    )
