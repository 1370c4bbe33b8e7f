"""How much of a large space of inputs the tests go through: CI takes a part, `AGENTV_TESTS=thorough` all of it."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Found = TypeVar("Found")

THOROUGH = os.environ.get("AGENTV_TESTS") == "thorough"


def examples(all_of_them: int, part: int) -> int:
    """A number of examples, kills or rounds."""
    return all_of_them if THOROUGH else part


def each_third(found: Iterable[Found], first: int) -> Iterator[Found]:
    """All of them, or every third, from a first one that the caller varies, so that each is in some test."""
    return islice(found, 0 if THOROUGH else first % 3, None, 1 if THOROUGH else 3)
