"""Gates: requirements of a suite that decide a run beside the verdicts of its cases."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class GateResult(Struct, frozen=True):
    """What a gate came to.

    Attributes:
        gate: `corrected`: the corrected pass rate; `judge`: how well the judge agrees with people; `activation`: how
            well the queries of each skill are distinguished.
        why: what was found, and what is required.
        warning: what speaks against a gate that passed.
        failed: failed cases whose verdicts it decides instead.
    """

    gate: Literal["corrected", "judge", "activation"]
    suite: str
    passed: bool
    why: str
    warning: str | None = None
    failed: int = 0

    @property
    def title(self) -> str:
        """What it decides by."""
        return "corrected pass rate" if self.gate == "corrected" else self.gate
