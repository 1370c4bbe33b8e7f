"""A set of 64-bit hashes that numbers its members: a million of them take 24 MB, where a dict takes 110."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_SMALLEST = 1024


def text_hash(text: str) -> int:
    """A signed 64-bit hash of a text, the same in every process."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), signed=True)


class NumberedHashes:
    """Gives every hash a number, 0, 1, 2, … in the order of first sight.

    Open addressing with linear probing, at most half full; the slots hold numbers + 1, 0 is empty. Two different
    things meet in one hash with a chance of n² / 2⁶⁵: 3 in 100 million among a million.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._slots = array("I", [0]) * _SMALLEST
        self._mask = _SMALLEST - 1

    def __len__(self) -> int:
        return len(self._hashes)

    def number(self, value: int) -> int:
        """The number of a hash, a signed 64-bit integer; it is new where this equals the length before."""
        slot = self._slot(value)
        if found := self._slots[slot]:
            return found - 1
        self._hashes.append(value)
        self._slots[slot] = len(self._hashes)
        if 2 * len(self._hashes) > self._mask:
            self._mask = 2 * self._mask + 1
            self._slots = array("I", [0]) * (self._mask + 1)
            for number, one in enumerate(self._hashes, 1):
                self._slots[self._slot(one)] = number
        return len(self._hashes) - 1

    def find(self, value: int) -> int | None:
        """The number that a hash has; None where it was never given one."""
        found = self._slots[self._slot(value)]
        return found - 1 if found else None

    def _slot(self, value: int) -> int:
        """Where the number of a hash is, or belongs."""
        slots, hashes, mask = self._slots, self._hashes, self._mask
        slot = value & mask
        while (found := slots[slot]) and hashes[found - 1] != value:
            slot = (slot + 1) & mask
        return slot
