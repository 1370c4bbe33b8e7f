"""Collector of diagnostics. Nothing is raised, so that one pass finds every mistake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agentv.authoring.source.nodes import NOWHERE, ListNode, MapNode, Place, Scalar, span_of
from agentv.errors import Diagnostic, Severity

LONGEST = 500
"""Characters of a message or hint."""

LONGEST_NOTE = 4_000
"""Characters of a note, which may list all that there is."""

KEPT_SPELLINGS = 4096
"""Values under older keys that are known at once."""

FOLDED = frozenset({"missing-file", "missing-template", "unknown-target", "unset-environment"})
"""Errors that one fix mends wherever they stand in a file: told at the first place, with the lines of the others."""

LISTED = 10
"""Such lines that are listed."""


class Report:
    """Collects diagnostics; the same mistake at the same place is kept once.

    Args:
        hints: whether to keep what could be written better; for `validate` alone.

    Attributes:
        unrendered: how many texts have a placeholder that could not be filled in. Nothing else is said of such a
            text: it is reported already, as an error, or as a warning where nothing runs.
        unset: the environment variables that placeholders name and that are not set.
    """

    def __init__(self, *, hints: bool = False) -> None:
        self.hints = hints
        self.unrendered = 0
        self.unset: set[str] = set()
        self._found: dict[tuple[object, ...], Diagnostic] = {}
        self._again: dict[tuple[object, ...], list[int]] = {}
        self._errors = 0
        self._crowds: dict[int, tuple[object, int]] = {}
        self._spelled: dict[int, tuple[object, str, str]] = {}

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All that was found, sorted by place."""
        found = (self._with_places(one) for one in self._found.values())
        return tuple(sorted(found, key=lambda one: one.order))

    @property
    def failed(self) -> bool:
        """Whether an error is among them."""
        return self._errors > 0

    @property
    def errors(self) -> int:
        """How many errors were told, the same one again included: where it grows, something is wrong."""
        return self._errors

    def crowd(self, of: object) -> int:
        """How often this was asked of one thing before, such as a mapping with many mistakes."""
        _, count = self._crowds.get(id(of), (of, 0))
        self._crowds[id(of)] = of, count + 1  # held, so that nothing else gets its id
        return count

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._found)

    def error(
        self,
        code: str,
        at: Scalar | ListNode | MapNode | Place | None,
        message: str,
        *,
        hint: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """Something that must be mended before anything runs."""
        self.add(_diagnostic(code, at, self._as_written(at, message), "error", hint, notes))

    def warning(
        self,
        code: str,
        at: Scalar | ListNode | MapNode | Place | None,
        message: str,
        *,
        hint: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """Something that is probably not meant."""
        self.add(_diagnostic(code, at, self._as_written(at, message), "warning", hint, notes))

    def beside(self) -> Report:
        """An empty report that knows the same spellings, for what may yet turn out to be no mistake."""
        other = Report(hints=self.hints)
        other._spelled = self._spelled
        return other

    def spell(self, value: Scalar | ListNode | MapNode, written: str, canonical: str) -> None:
        """What is reported of this value names the key that the file holds. The last few thousand values are known."""
        if len(self._spelled) >= KEPT_SPELLINGS:
            del self._spelled[next(iter(self._spelled))]
        self._spelled[id(value)] = value, written.rpartition(".")[2], canonical.rpartition(".")[2]  # held, as above

    def spelled(self, value: Scalar | ListNode | MapNode, canonical: str) -> str:
        """The key of a value as the file spells it."""
        _, written, means = self._spelled.get(id(value), (value, canonical, canonical))
        return written if means == canonical else canonical

    def _as_written(self, at: Scalar | ListNode | MapNode | Place | None, message: str) -> str:
        found = self._spelled.get(id(at)) if self._spelled else None
        return message if found is None else message.replace(f"'{found[2]}'", f"'{found[1]}'", 1)

    def older(self, written: str, canonical: str, at: Scalar | ListNode | MapNode | Place | None) -> None:
        """An older spelling, which is right and could be written better."""
        if self.hints:
            message = f"'{written}' is an older spelling of '{canonical}'"
            found = _diagnostic("older-spelling", at, message, "hint", None, ())
            self.add(replace(found, rename=(written, canonical)))

    def remark(self, code: str, at: Scalar | ListNode | MapNode | Place | None, message: str) -> None:
        """Something to know, which is no mistake."""
        if self.hints:
            self.add(_diagnostic(code, at, message, "hint", None, ()))

    def add(self, found: Diagnostic) -> None:
        """One more."""
        self._errors += found.severity == "error"
        if found.code not in FOLDED or found.span is None or found.severity != "error":
            self._found.setdefault((found.code, found.span, found.message), found)
            return
        key = (found.code, found.span.file, found.message)
        first = self._found.setdefault(key, found)
        lines = self._again.setdefault(key, [])
        if first.span is not None and found.span.line not in (first.span.line, *lines[-1:]):
            lines.append(found.span.line)

    def _with_places(self, found: Diagnostic) -> Diagnostic:
        """With the other lines that say the same, where one fix mends them all."""
        lines = self._again.get((found.code, found.span.file, found.message), ()) if found.span is not None else ()
        if not lines:
            return found
        listed = ", ".join(str(line) for line in lines[:LISTED])
        more = f" and {len(lines) - LISTED:,} more" if len(lines) > LISTED else ""
        note = f"also at line{'s' if len(lines) > 1 else ''} {listed}{more}"
        return replace(found, notes=(*found.notes, note))


def _diagnostic(
    code: str,
    at: Scalar | ListNode | MapNode | Place | None,
    message: str,
    severity: Severity,
    hint: str | None,
    notes: Iterable[str],
) -> Diagnostic:
    place = at.at if isinstance(at, Scalar | ListNode | MapNode) else at
    span = span_of(place) if place is not None and place is not NOWHERE else None
    return Diagnostic(
        code,
        _line(message),
        span,
        severity,
        _line(hint) if hint else None,
        tuple(_line(note, LONGEST_NOTE) for note in notes),
    )


def _line(text: str, longest: int = LONGEST) -> str:
    """One line of bearable length: what a message quotes may be anything."""
    if "\n" in text or "\r" in text:
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= longest else text[: longest - 1] + "…"
