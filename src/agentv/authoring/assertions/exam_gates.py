"""Gates of exams: every line is a gate, and one that fails fails the case (SPEC section 10, seed 004)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentv.model.suite.assertion import AssertionEntry


def as_gate(entry: AssertionEntry) -> AssertionEntry:
    """The entry as a gate, but for one that is only reported, or that says how much it must score.

    A set without a threshold of its own would take the case's, which is 0, and one whose own is 0 would let everything
    pass: such a set needs all that it holds.
    """
    inner: tuple[AssertionEntry, ...] = entry.inner
    if inner and not getattr(entry.assertion, "threshold", None):
        whole: Any = entry.assertion
        entry = replace(entry, assertion=replace(whole, assert_=tuple(map(as_gate, inner))))
    settings = entry.settings
    if settings.required or settings.weight == 0:
        return entry
    return replace(entry, settings=replace(settings, required=True))
