"""Return value of a custom assertion (SPEC section 8, "AssertionScore")."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from agentv.model.run.grade import Check
from agentv.model.values.values import EMPTY, JsonObject


class AssertionScore(Struct, frozen=True):
    """The verdict of a custom assertion; `passed` or `score` is required.

    Attributes:
        passed: the verdict; None: `score >= 0.5` decides.
        score: 0..1, clamped; None: 1 if passed, else 0.
        assertions: one check per aspect.
        details: any data, kept in the row.
    """

    passed: bool | None = None
    score: float | None = None
    assertions: Sequence[Check] = ()
    reason: str | None = None
    details: JsonObject = field(default=EMPTY)
