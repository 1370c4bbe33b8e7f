"""How much of a large input space the tests cover: a part in CI, all of it with `AGENTV_TESTS=thorough`."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Found = TypeVar("Found")

THOROUGH = os.environ.get("AGENTV_TESTS") == "thorough"


def examples(all_of_them: int, part: int) -> int:
    """Return the number of examples, kills or rounds to run."""
    return all_of_them if THOROUGH else part


def each_third(found: Iterable[Found], first: int) -> Iterator[Found]:
    """Return all items, or every third from an offset that the caller varies, so that some test covers each."""
    return islice(found, 0 if THOROUGH else first % 3, None, 1 if THOROUGH else 3)
