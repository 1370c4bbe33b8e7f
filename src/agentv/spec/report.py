"""What the loader has found wrong so far. Nothing is raised: reading goes on, so that one pass finds it all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agentv.errors import Diagnostic, Severity
from agentv.spec.nodes import NOWHERE, ListNode, MapNode, Place, Scalar, span_of

LONGEST = 500
"""Characters of a message or hint."""

LONGEST_NOTE = 4_000
"""Characters of a note, which may list all that there is."""


class Report:
    """Collects diagnostics; the same mistake at the same place is kept once.

    Args:
        hints: whether to keep what could be written better; for `validate` alone.

    Attributes:
        unrendered: how many texts have a placeholder that could not be filled in. Nothing else is said of such a
            text: it is told already, as an error, or as a warning where nothing runs.
    """

    def __init__(self, *, hints: bool = False) -> None:
        self.hints = hints
        self.unrendered = 0
        self._found: dict[tuple[object, ...], Diagnostic] = {}
        self._errors = 0

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All that was found, sorted by place."""
        return tuple(sorted(self._found.values(), key=lambda one: one.order))

    @property
    def failed(self) -> bool:
        """Whether an error is among them."""
        return self._errors > 0

    @property
    def errors(self) -> int:
        """How many errors were told, the same one again included: where it grows, something is wrong."""
        return self._errors

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
        self.add(_diagnostic(code, at, message, "error", hint, notes))

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
        self.add(_diagnostic(code, at, message, "warning", hint, notes))

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
        self._found.setdefault((found.code, found.span, found.message), found)
        self._errors += found.severity == "error"


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
