"""Faults that are injected into the model calls of a trial, the same in every run of it."""

from __future__ import annotations

import random
from collections.abc import Mapping


class FaultPlan:
    """Decides which calls of one trial fail.

    Args:
        faults: a status or `drop` → share of the calls.
        key: of the trial; the same key gives the same faults.
    """

    def __init__(self, faults: Mapping[str, float], key: str) -> None:
        self._faults = sorted(faults.items())
        self._random = random.Random(f"faults\0{key}")  # noqa: S311  # it has to be repeatable, and keeps no secret

    def next(self) -> str | None:
        """The fault of the next call; None: it has none."""
        if not self._faults:
            return None
        drawn = self._random.random()
        for name, share in self._faults:
            if drawn < share:
                return name
            drawn -= share
        return None
