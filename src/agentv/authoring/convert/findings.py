"""What is wrong with a file of records: each finding once, with the lines to which it applies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import Struct, field

from agentv.authoring.source.nodes import Node, Place
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic

MOST_FINDINGS = 100
"""Different findings about one file that are kept; the rest are counted."""

LISTED_LINES = 10
"""Further lines of one finding that are listed."""


class _Finding(Struct):
    first: Diagnostic
    lines: list[int] = field(default_factory=list)
    count: int = 1


class Findings(Struct):
    """Diagnostics of a file of samples: each once, with the lines to which it applies."""

    _found: dict[tuple[str, str], _Finding] = field(default_factory=dict)
    _unlisted: int = 0
    failed: bool = False

    def error(self, code: str, at: Node | Place, message: str, hint: str | None = None) -> None:
        """Add a problem because of which nothing is written."""
        self._add(code, at, message, hint, "error")

    def omitted(self, at: Node | Place, message: str, hint: str | None = None) -> None:
        """Add something that is left out, and that changes no verdict."""
        self._add("no-equivalent", at, message, hint, "warning")

    def add(self, found: Iterable[Diagnostic]) -> None:
        """Add what a reader has reported of one record."""
        for one in found:
            self.failed = self.failed or one.severity == "error"
            self._keep(one)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings, in the order in which they were made."""
        found = [_with_lines(one) for one in self._found.values()]
        if self._unlisted and found:
            at = found[0].span
            found.append(Diagnostic("more-bad-lines", f"{self._unlisted:,} further findings are not listed", at))
        return tuple(found)

    def _add(self, code: str, at: Node | Place, message: str, hint: str | None, severity: str) -> None:
        report = Report()
        (report.error if severity == "error" else report.warning)(code, at, message, hint=hint)
        self.add(report.diagnostics)

    def _keep(self, one: Diagnostic) -> None:
        known = self._found.get((one.code, one.message))
        if known is None and len(self._found) >= MOST_FINDINGS:
            self._unlisted += 1
        elif known is None:
            self._found[one.code, one.message] = _Finding(one)
        else:
            known.count += 1
            line = one.span.line if one.span is not None else 0
            if len(known.lines) < LISTED_LINES and line not in (known.first.span and known.first.span.line, 0):
                known.lines.append(line)


def _with_lines(finding: _Finding) -> Diagnostic:
    lines = list(dict.fromkeys(finding.lines))
    if not lines:
        return finding.first
    more = finding.count - 1 - len(finding.lines)
    rest = f" and {more:,} more" if more > 0 else ""
    note = f"also at line{'s' if len(lines) > 1 or more > 0 else ''} {', '.join(map(str, lines))}{rest}"
    return replace(finding.first, notes=(*finding.first.notes, note))
