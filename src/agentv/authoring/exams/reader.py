"""Readers that turn an exam, in either of its forms, into a suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from agentv.authoring.fields.reading import Reading
from agentv.authoring.header.header import Header
from agentv.authoring.source.nodes import MapNode
from agentv.model.suite.exam import Exam
from agentv.model.suite.suite import Case, Suite


class ReadsExam(Protocol):
    """Reads one exam, part by part, in the order of these methods. What is wrong goes to the report of `reading`."""

    @property
    def reading(self) -> Reading:
        """What the suite is read with."""
        ...

    @property
    def not_missing(self) -> frozenset[str]:
        """Keys of an eval file whose absence is not to be reported, since they stand at a wrong place."""
        ...

    def header(self) -> MapNode:
        """All but the cases, in the words of an eval file; every part stands where it was written."""
        ...

    def queries(self, header: Header) -> tuple[Case, ...]:
        """The cases that ask the judge, which come first."""
        ...

    def cases(self, header: Header) -> Iterator[tuple[Case, ...]]:
        """What each entry stands for, as it is read; nothing in place of those that are wrong."""
        ...

    def exam(self, suite: Suite, read: Mapping[str, bytes]) -> Exam | None:
        """What makes the suite, which is right, an exam; None where it is none.

        Args:
            suite: as it was loaded.
            read: path → bytes of all files that were read for it.
        """
        ...
