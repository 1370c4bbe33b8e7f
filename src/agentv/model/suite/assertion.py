"""An entry of an `assert:` list, ready to grade (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from msgspec import Struct

from agentv.model.values.values import Span


class Transform(Struct, frozen=True):
    """How the output is reshaped for one assertion.

    `expression` is a Jinja expression over `output`, a path such as `$.a.b`, the name of a Python function in `file`,
    JavaScript, or the name of a function in a JavaScript `file`, empty for its default export.
    """

    kind: Literal["jinja", "path", "function", "javascript", "javascript-file"]
    expression: str
    file: str | None = None


class AssertionSettings(Struct, frozen=True):
    """The keys that every assertion takes (SPEC section 7.1).

    Attributes:
        required: False: no gate. True: the grade must pass. A number: it must score that much.
        min_score: pass mark of the grade, 0..1; None: the type's own rule.
        timeout_s: seconds; None: the type's default.
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
    """The frozen options of one assertion type. They grade too: see `agentv.model.run.context.Assertion`."""

    def label(self) -> str:
        """Short description of what the entry checks; part of its default name."""


class AssertionEntry(Struct, frozen=True, gc=False):
    """One assertion of one case: its canonical type, its frozen options, and the settings common to all types.

    Attributes:
        plugin: the identity of the plugin that grades, with a hash of its files; empty for other types.
    """

    type: str
    assertion: AssertionOptions
    settings: AssertionSettings
    span: Span | None = None
    plugin: str = ""

    @property
    def inner(self) -> tuple[AssertionEntry, ...]:
        """The entries inside it: those of an assert-set, and its aggregator if that runs code or asks a judge."""
        own = getattr(self.assertion, "assert_", ())
        found = getattr(self.assertion, "inner", own) if own else ()
        return found if isinstance(found, tuple) else ()

    def nested(self) -> Iterator[AssertionEntry]:
        """The entry, and all inside it."""
        yield self
        for one in self.inner:
            yield from one.nested()

    @property
    def shown_type(self) -> str:
        """The type as a row shows it, `not-` in front when negated."""
        return f"not-{self.type}" if self.settings.negate else self.type

    @property
    def name(self) -> str:
        """The name given, else one made from the type and what it looks for."""
        if self.settings.name is not None:
            return self.settings.name
        label, shown = self.assertion.label(), self.shown_type
        return f"{shown}: {label}" if label else shown
