"""Entries of an `assert:` list, resolved and ready to grade (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from msgspec import Struct

from agentv.model.values.values import Span


class Transform(Struct, frozen=True):
    """A transformation of the output before one assertion grades it.

    `expression` depends on `kind`: a Jinja expression over `output`, a path such as `$.a.b`, the name of a Python
    function in `file`, JavaScript code, or the name of a function in the JavaScript `file` (empty: its default export).
    """

    kind: Literal["jinja", "path", "function", "javascript", "javascript-file"]
    expression: str
    file: str | None = None


class AssertionSettings(Struct, frozen=True):
    """Settings that every assertion type accepts (SPEC section 7.1).

    Attributes:
        required: whether the assertion is a gate. True: the grade must pass. A number: the minimum score.
        min_score: score from which the grade passes, 0..1; None for the type's own rule.
        timeout_s: seconds; None for the type's default.
    """

    name: str | None = None
    weight: float = 1.0
    required: bool | float = False
    min_score: float | None = None
    negate: bool = False
    timeout_s: float | None = None
    transform: Transform | None = None


DEFAULTS = AssertionSettings()


class AssertionOptions(Protocol):
    """The frozen options of one assertion. They also grade; see `agentv.model.run.context.Assertion`."""

    def label(self) -> str:
        """Return a short description of what the entry checks; it is part of the default name."""


class AssertionEntry(Struct, frozen=True, gc=False):
    """One assertion of one case: its canonical type, its frozen options, and the settings common to all types.

    Attributes:
        plugin: identity of the plugin that grades, including a hash of its files; empty for built-in types.
    """

    type: str
    assertion: AssertionOptions
    settings: AssertionSettings
    span: Span | None = None
    plugin: str = ""

    @property
    def inner(self) -> tuple[AssertionEntry, ...]:
        """The directly nested entries: those of an assert-set, and its aggregator if it runs code or calls a judge."""
        own = getattr(self.assertion, "assert_", ())
        found = getattr(self.assertion, "inner", own) if own else ()
        return found if isinstance(found, tuple) else ()

    def nested(self) -> Iterator[AssertionEntry]:
        """Yield this entry and all entries nested in it, at any depth."""
        yield self
        for one in self.inner:
            yield from one.nested()

    @property
    def shown_type(self) -> str:
        """The type as shown in rows, with the prefix `not-` if negated."""
        return f"not-{self.type}" if self.settings.negate else self.type

    @property
    def name(self) -> str:
        """The configured name, or a default made of the type and the label."""
        if self.settings.name is not None:
            return self.settings.name
        label, shown = self.assertion.label(), self.shown_type
        return f"{shown}: {label}" if label else shown
