"""Exceptions, diagnostics of authored files, and exit statuses.

    AgentvError                an expected error that ends a command; never shown with a traceback
    ├── LoadError              authored files are invalid: has every diagnostic; nothing ran
    ├── UsageError             the command line or a call of the SDK is invalid; nothing ran
    ├── StoreError             a run directory cannot be read or written
    └── PluginError            a plugin's code raised where the error cannot be recorded in a trial

Expected failures of a trial are values (`agentv.model.Failure`), not exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal

from msgspec import Struct

from agentv.model.values.values import Span


class ExitStatus(IntEnum):
    """Exit status of a command (SPEC section 12)."""

    PASSED = 0
    FAILED = 1
    WRONG = 2
    ERRORED = 3
    INTERRUPTED = 130


Severity = Literal["error", "warning", "hint"]


class Diagnostic(Struct, frozen=True):
    """One mistake in an authored file, with its position.

    Attributes:
        code: stable code of the kind of mistake, a key of `agentv.codes.CODES`.
        message: what was found and what was expected, on one line.
        span: position in the file; None if the mistake is in no file.
        severity: an `error` stops the command, a `warning` does not, and a `hint` is shown only by `validate`.
        hint: the likely fix, shown after the caret.
        notes: further lines, such as every searched path.
        rename: (spelling in the file, canonical spelling), if `validate --fix` may replace the first with the second.
        private: whether the content of the file must not be shown.
    """

    code: str
    message: str
    span: Span | None = None
    severity: Severity = "error"
    hint: str | None = None
    notes: tuple[str, ...] = ()
    rename: tuple[str, str] | None = None
    private: bool = False

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        """Sort key: file, line, column, then code and message."""
        if self.span is None:
            return ("", 0, 0, self.code, self.message)
        return (self.span.file, self.span.line, self.span.column, self.code, self.message)


class AgentvError(Exception):
    """Base of expected errors, which end a command with the exit status `status`."""

    status: ExitStatus = ExitStatus.WRONG
    http_error = (422, "unreadable")  # HTTP status and error code of a web application's response


class LoadError(AgentvError):
    """Authored files are invalid; `diagnostics` lists every mistake, sorted by position."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(sorted(diagnostics, key=lambda found: found.order))
        lines = []
        for found in self.diagnostics:
            place = f"{found.span}: " if found.span else ""
            hint = f" ({found.hint})" if found.hint else ""
            lines.append(f"{place}{found.severity}[{found.code}]: {found.message}{hint}")
        super().__init__("\n".join(lines) or "0 errors")


class UsageError(AgentvError):
    """The command line, or a call of the SDK, is invalid."""

    http_error = (422, "not-possible")

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class BudgetSpentError(UsageError):
    """A command ended early because its budget is spent."""

    status = ExitStatus.ERRORED


class StoreError(AgentvError):
    """A run directory, or a file in it, cannot be read or written."""


class PluginError(AgentvError):
    """A plugin's code raised an exception that belongs neither to an entry of a file nor to a trial.

    Args:
        message: names the plugin, its package and version, and the line that raised.
        hint: the fix.
        status: exit status; `ERRORED` if a run had started.
    """

    def __init__(self, message: str, hint: str, status: ExitStatus = ExitStatus.WRONG) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status
