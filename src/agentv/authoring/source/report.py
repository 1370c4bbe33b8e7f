"""Collector of diagnostics. Nothing is raised, so that one pass finds every mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.source.boundary import ALLOW, OUTSIDE, REASON, OutsideError
from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Node, Place, Scalar, kind_of, span_of
from agentv.errors import Diagnostic, Severity
from agentv.model.values.formatting import shorten
from agentv.model.values.values import Span

LONGEST = 500
"""Maximum length of a message or hint, in characters."""

LONGEST_NOTE = 4_000
"""Maximum length of a note, which may contain a long list, in characters."""

KEPT_SPELLINGS = 4096
"""Maximum number of values whose authored key is remembered."""

FOLDED = frozenset({"missing-file", "missing-template", "unknown-target", "unset-environment"})
"""Codes of errors that one fix resolves in a whole file: reported once, with the line numbers of the other places."""

LISTED = 10
"""Maximum number of such line numbers."""


T = TypeVar("T")

At: TypeAlias = "Node | Place | None"
"""What a diagnostic is about: a value, a place, or None."""


class Result(NamedTuple, Generic[T]):
    """Result of reading a node.

    Attributes:
        value: what could be read.
        valid: whether all of the node could be read; if not, the mistakes were reported.
    """

    value: T
    valid: bool = True


class _Findings(Struct):
    """The state that a report shares with its sections."""

    diagnostics: dict[tuple[object, ...], Diagnostic] = {}
    added: int = 0
    errors: int = 0
    lines: dict[tuple[object, ...], list[int]] = {}
    occurrences: dict[int, tuple[object, int]] = {}
    spelled: dict[int, tuple[object, str, str]] = {}
    unset: set[str] = set()


class Report(Struct, eq=False):
    """Collects diagnostics; the same mistake at the same place is kept once.

    Attributes:
        hints: whether to keep hints; only `validate` does.
        outer: the report that this one is a section of.
        failed: whether an error was reported here.
        unrendered: whether a text has a placeholder that could not be filled in. No other diagnostic is reported for
            such a text; the placeholder was reported as an error, or as a warning if nothing is run.
        findings: state shared with all sections.
    """

    hints: bool = False
    outer: Report | None = None
    failed: bool = False
    unrendered: bool = False
    findings: _Findings = field(default_factory=_Findings)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics, sorted by place."""
        found = (self._with_places(one) for one in self.findings.diagnostics.values())
        return tuple(sorted(found, key=lambda one: one.order))

    @property
    def valid(self) -> bool:
        """Whether no error was reported here and no text was left unrendered."""
        return not (self.failed or self.unrendered)

    @property
    def count(self) -> int:
        """Number of diagnostics."""
        return len(self.findings.diagnostics)

    @property
    def added(self) -> int:
        """Number of diagnostics, including repeated ones that are kept once."""
        return self.findings.added

    @property
    def unset(self) -> set[str]:
        """Environment variables that placeholders name but that are not set."""
        return self.findings.unset

    def section(self) -> Report:
        """A report on one part of the input, with its own `failed` and `unrendered`."""
        return Report(hints=self.hints, outer=self, findings=self.findings)

    def agrees_with(self, other: Report) -> bool:
        """Whether both reports have the same number of errors, so that either reading of a node can be used."""
        return self.findings.errors == other.findings.errors

    def occurrences(self, of: object) -> int:
        """Number of earlier calls with the same object, such as a mapping with many mistakes."""
        _, count = self.findings.occurrences.get(id(of), (of, 0))
        self.findings.occurrences[id(of)] = of, count + 1  # kept alive, so that no other object gets its id
        return count

    def error(self, code: str, at: At, message: str, hint: str | None = None, notes: Iterable[str] = ()) -> None:
        """Report a mistake that must be fixed before anything is run."""
        self.add(_diagnostic(code, at, self._as_written(at, message), "error", hint, notes))

    def warning(self, code: str, at: At, message: str, hint: str | None = None, notes: Iterable[str] = ()) -> None:
        """Report something that is probably a mistake."""
        self.add(_diagnostic(code, at, self._as_written(at, message), "warning", hint, notes))

    def unfit(self, node: Node, rule: str, code: str = "bad-value", *, hint: str | None = None) -> None:
        """Report a value that breaks a rule, such as "'vars' must be a mapping", and say what was found instead."""
        self.error(code, node, f"{rule}, found {kind_of(node)}", hint=hint)

    def unreadable(self, path: str, error: OSError) -> None:
        """Report an error at the start of a file that cannot be read."""
        top = Span.start_of(path)
        if isinstance(error, OutsideError):
            self.error(OUTSIDE, top, f"cannot read {shown(path)}: {REASON}", hint=ALLOW)
        else:
            self.error("missing-file", top, f"cannot read {shown(path)}: {error.strerror}")

    def empty_copy(self) -> Report:
        """An empty report with the same spellings, for diagnostics that may be discarded."""
        other = Report(hints=self.hints)
        other.findings.spelled = self.findings.spelled
        return other

    def spell(self, value: Scalar | ListNode | MapNode, written: str, canonical: str) -> None:
        """Record the authored key to show in diagnostics about a value, for the last `KEPT_SPELLINGS` values."""
        written = self.spelled(value, written)  # translated before: `failOnError` → `fail_on_error`
        if len(self.findings.spelled) >= KEPT_SPELLINGS:
            del self.findings.spelled[next(iter(self.findings.spelled))]
        key = self.spelled(value, written.rpartition(".")[2])  # a key can be translated in two steps
        self.findings.spelled[id(value)] = value, key, canonical.rpartition(".")[2]  # kept alive

    def spelled(self, value: Scalar | ListNode | MapNode, canonical: str) -> str:
        """The key of a value as the file spells it."""
        _, written, means = self.findings.spelled.get(id(value), (value, canonical, canonical))
        return written if means == canonical else canonical

    def carry(self, old: MapNode, new: MapNode) -> None:
        """Give a mapping that replaces another the same authored key."""
        if id(old) in self.findings.spelled:
            _, written, canonical = self.findings.spelled[id(old)]
            self.findings.spelled[id(new)] = new, written, canonical

    def _as_written(self, at: At, message: str) -> str:
        found = self.findings.spelled.get(id(at)) if self.findings.spelled else None
        return message if found is None else message.replace(f"'{found[2]}'", f"'{found[1]}'", 1)

    def older(self, written: str, canonical: str, at: At) -> None:
        """Report an older spelling, which is still valid, as a hint."""
        if self.hints:
            message = f"'{written}' is an older spelling of '{canonical}'"
            found = _diagnostic("older-spelling", at, message, "hint", None, ())
            self.add(replace(found, rename=(written, canonical)))

    def remark(self, code: str, at: At, message: str, hint: str | None = None) -> None:
        """Report a hint, which is not a mistake."""
        if self.hints:
            self.add(_diagnostic(code, at, message, "hint", hint, ()))

    def remark_on_keys(self, keys: Mapping[str, Place]) -> None:
        """Report the keys of a file that have no effect, in one hint."""
        if keys:
            listed = ", ".join(f"'{key}'" for key in sorted(keys))
            verb = "has" if len(keys) == 1 else "have"
            self.remark("no-effect", next(iter(keys.values())), f"{listed} {verb} no effect in agentv")

    def leave_unrendered(self) -> None:
        """Mark this report and its outer ones as unrendered."""
        self.unrendered = True
        if self.outer is not None:
            self.outer.leave_unrendered()

    def fail(self) -> None:
        """Mark this report and its outer ones as failed."""
        self.failed = True
        if self.outer is not None:
            self.outer.fail()

    def add(self, found: Diagnostic) -> None:
        """Add a diagnostic. A section passes it to its outer report."""
        self.failed = self.failed or found.severity == "error"
        if self.outer is not None:
            self.outer.add(found)
            return
        self.findings.added += 1
        self.findings.errors += found.severity == "error"
        if found.code not in FOLDED or found.span is None or found.severity != "error":
            self.findings.diagnostics.setdefault((found.code, found.span, found.message), found)
            return
        key = (found.code, found.span.file, found.message)
        first = self.findings.diagnostics.setdefault(key, found)
        lines = self.findings.lines.setdefault(key, [])
        if first.span is not None and found.span.line not in (first.span.line, *lines[-1:]):
            lines.append(found.span.line)

    def _with_places(self, found: Diagnostic) -> Diagnostic:
        """The diagnostic with a note that lists the other lines with the same error, if any."""
        lines = (
            self.findings.lines.get((found.code, found.span.file, found.message), ()) if found.span is not None else ()
        )
        if not lines:
            return found
        listed = ", ".join(str(line) for line in lines[:LISTED])
        more = f" and {len(lines) - LISTED:,} more" if len(lines) > LISTED else ""
        note = f"also at line{'s' if len(lines) > 1 else ''} {listed}{more}"
        return replace(found, notes=(*found.notes, note))


def _diagnostic(
    code: str, at: At, message: str, severity: Severity, hint: str | None, notes: Iterable[str]
) -> Diagnostic:
    place = at.at if isinstance(at, Scalar | ListNode | MapNode) else at
    span = span_of(place) if place is not None and place is not NOWHERE else None
    lines = tuple(_line(note, LONGEST_NOTE) for note in notes)
    return Diagnostic(code, _line(message), span, severity, _line(hint) if hint else None, lines)


def _line(text: str, longest: int = LONGEST) -> str:
    """Escape line breaks and shorten: a message may quote any text."""
    if "\n" in text or "\r" in text:
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    return shorten(text, longest)
