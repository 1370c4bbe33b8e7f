"""What is no eval file by itself, in the form of one: the suite of an exam is read from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentv.model.exam import Exam
from agentv.model.suite import Case, Suite
from agentv.spec.head import Head
from agentv.spec.nodes import MapNode
from agentv.spec.reading import Reading


@dataclass(frozen=True, slots=True)
class Lowered:
    """An eval file that nobody wrote.

    Attributes:
        root: its keys by their canonical names, `tests` among them; every part stands where it was written.
        reading: what it is read with.
        queries: the cases that come before those of `tests`; what is wrong with them is reported.
        exam: what the suite, once it is right, is the exam of.
    """

    root: MapNode
    reading: Reading
    queries: Callable[[Head, Reading], tuple[Case, ...]]
    exam: Callable[[Suite], Exam]


def no_queries(_head: Head, _reading: Reading) -> tuple[Case, ...]:
    """Nothing comes before the cases of `tests`."""
    return ()
