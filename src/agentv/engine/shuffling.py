"""`--shuffle`: trials in a random order that a resume repeats."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from agentv.model.run.trial import Trial


def shuffled(groups: Iterable[Iterable[Trial]], seed: int) -> Iterator[list[Trial]]:
    """Groups of trials in the order of a hash of their first key, which edits of other cases do not change."""
    held = [trials for group in groups if (trials := list(group))]
    return iter(sorted(held, key=lambda trials: _number(seed, trials[0].key)))


def _number(seed: int, key: str) -> bytes:
    return hashlib.blake2b(f"shuffled\0{seed}\0{key}".encode(), digest_size=16).digest()
