"""`--shard I/N`: a part of the selected cases, so that N machines run all of them and each case once."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from agentv.engine.draws import Groups
from agentv.model.suite.suite import Case, Suite


class Shard(Struct, frozen=True):
    """Every N-th case of each suite, starting with the I-th. Cases that depend on each other are in one shard.

    Attributes:
        index: from 1.
        of: number of shards.
    """

    index: int
    of: int

    def takes(self, suite: Suite, place: int) -> Callable[[Case], bool]:
        """Whether a case of a suite is in this shard.

        Args:
            suite: of the case.
            place: of the suite in the run, so that many suites of one case do not all end up in the first shard.
        """
        if not suite.links:
            return lambda case: (case.position + place) % self.of == self.index % self.of
        groups = Groups()
        for name, link in suite.links.items():
            groups.join(name, link.needs)
        numbers: dict[object, int] = {}
        for case in suite.cases:
            numbers.setdefault(groups.of(case.id), len(numbers) + 1)
        return lambda case: (numbers[groups.of(case.id)] + place) % self.of == self.index % self.of
