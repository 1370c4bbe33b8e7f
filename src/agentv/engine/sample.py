"""A random sample of the cases of a run: uniform, repeatable, and drawn without holding the cases in memory.

Every case has a number, a hash of the seed and of its place and id; the sample are the cases with the smallest ones.
So a case does not come or go when the file is sorted, and when cases are added, only these can take its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from heapq import heappush, heappushpop

from msgspec import Struct

from agentv.model.suite.suite import Case, Suite

DIGEST = 16
"""Bytes of a case's number: two cases never have the same."""


class DrawnCases(Struct, frozen=True):
    """The drawn cases.

    Attributes:
        root: absolute path that suite paths are relative to, so that a checkout elsewhere draws the same cases.
        bound: the largest number that was drawn; None: all cases were drawn.
        size, of: number of drawn cases, and of all cases.
    """

    seed: int
    root: str
    bound: bytes | None
    size: int
    of: int

    def takes(self, suite: Suite, case: Case) -> bool:
        """Whether a case was drawn; one case with several prompts is drawn, or not, with all of them."""
        return self.bound is None or number_of(suite, case, self.seed, self.root) <= self.bound


def draw(suites: Iterable[Suite], chosen: Callable[[Case], bool], number: int, *, seed: int, root: str) -> DrawnCases:
    """A random sample of the selected cases, from all suites together; all of them if there are fewer."""
    drawn: list[bytes] = []  # a heap of what is left out first: the complement of every number
    of = 0
    for suite in suites:
        before: str | None = None
        for case in suite.cases:
            if case.id == before or not chosen(case):
                continue
            before = case.id
            of += 1
            mirrored = _mirrored(number_of(suite, case, seed, root))
            if len(drawn) < number:
                heappush(drawn, mirrored)
            else:
                heappushpop(drawn, mirrored)
    bound = _mirrored(drawn[0]) if of > number else None
    return DrawnCases(seed, root, bound, len(drawn), of)


def number_of(suite: Suite, case: Case, seed: int, root: str) -> bytes:
    """The number of a case under a seed."""
    facts = f"{seed}\0{suite.path.removeprefix(root)}\0{suite.name}\0{case.id}"
    return hashlib.blake2b(facts.encode(errors="surrogatepass"), digest_size=DIGEST).digest()


_COMPLEMENT = bytes(255 - byte for byte in range(256))


def _mirrored(number: bytes) -> bytes:
    return number.translate(_COMPLEMENT)
