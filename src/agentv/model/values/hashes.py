"""A compact mapping from 64-bit hashes to numbers: a million take 24 MB, where a dict takes 110 MB."""

from __future__ import annotations

from array import array
from hashlib import blake2b

_SMALLEST = 1024


def text_hash(text: str) -> int:
    """Return a signed 64-bit hash of a text, the same in every process."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), signed=True)


class NumberedHashes:
    """Numbers hashes 0, 1, 2, … in the order in which they are first seen.

    A hash table with open addressing and linear probing, at most half full. A slot holds a number + 1; 0 is empty. The
    probability of a collision among n keys is n² / 2⁶⁵: 3 in 100 million for a million keys.
    """

    def __init__(self) -> None:
        self._hashes = array("q")
        self._slots = array("I", [0]) * _SMALLEST
        self._mask = _SMALLEST - 1

    def __len__(self) -> int:
        return len(self._hashes)

    def number(self, value: int) -> int:
        """Return the number of a signed 64-bit hash, adding it if it is new: the number is then the previous length."""
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
        """Return the number of a hash, or None if it was never added."""
        found = self._slots[self._slot(value)]
        return found - 1 if found else None

    def _slot(self, value: int) -> int:
        """Return the index of the slot that holds the number of a hash, or the empty slot where it belongs."""
        slots, hashes, mask = self._slots, self._hashes, self._mask
        slot = value & mask
        while (found := slots[slot]) and hashes[found - 1] != value:
            slot = (slot + 1) & mask
        return slot
