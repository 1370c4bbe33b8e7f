"""Set of seen ids: a compact table of 64-bit hashes, so that a million fit in 32 MB."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_START = 1 << 10


class IdTable:
    """A set of ids by their hashes, open addressing. A hit means: most likely seen, so look again at the source."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _START))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def seen(self, identity: str) -> bool:
        """Whether the id was there already; it is from now on."""
        digest = _digest(identity)
        if self._put(self._slots, digest):
            return True
        self._count += 1
        if self._count * 2 > len(self._slots):
            self._grow()
        return False

    def __contains__(self, identity: str) -> bool:
        digest, slots = _digest(identity), self._slots
        mask = len(slots) - 1
        at = digest & mask
        while slots[at] not in (0, digest):
            at = (at + 1) & mask
        return slots[at] == digest

    @staticmethod
    def _put(slots: array[int], digest: int) -> bool:
        mask = len(slots) - 1
        at = digest & mask
        while slots[at]:
            if slots[at] == digest:
                return True
            at = (at + 1) & mask
        slots[at] = digest
        return False

    def _grow(self) -> None:
        larger = array("Q", bytes(8 * len(self._slots) * 2))
        for digest in self._slots:
            if digest:
                self._put(larger, digest)
        self._slots = larger


def _digest(identity: str) -> int:
    """64 bits of an id; 0 marks an empty slot, so it never is one."""
    return int.from_bytes(blake2b(identity.encode(errors="surrogatepass"), digest_size=8).digest()) or 1
