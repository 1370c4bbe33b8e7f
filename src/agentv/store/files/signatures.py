"""Signatures of the lines that this process wrote, so that lines of others are detected.

Rows and answers lie where the agent under test can reach them. Each line is signed as it is written: SHA-256 over a key
and the line, cut to 64 bits. Key and signatures never leave this process, so nothing outside it can make a line that it
takes for its own. Eight bytes a line are kept.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator

_KEYED = hashlib.sha256(os.urandom(64))  # one block of SHA-256: what follows is hashed from its state


def signature(line: bytes) -> int:
    """The signature of a line, which is given without its end. It holds in this process alone."""
    signed = _KEYED.copy()
    signed.update(line)
    return int.from_bytes(signed.digest()[:8])


class Signatures:
    """The signatures of the lines of one file, in their order."""

    def __init__(self) -> None:
        self._found = array("Q")

    def __len__(self) -> int:
        return len(self._found)

    def add(self, lines: bytes) -> None:
        """Lines were written, each with its end."""
        found = lines.split(b"\n")
        if len(found) == 2:  # one line, as for every answer
            self._found.append(signature(found[0]))
        else:
            self._found.extend(map(signature, found[:-1]))

    def agree(self, lines: Iterable[bytes]) -> bool:
        """Return true if these, with their ends, are the lines that were written: all, in their order, and no more."""
        found, number = self._found, 0
        for line in lines:
            if number == len(found) or line[-1:] != b"\n" or found[number] != signature(line[:-1]):
                return False
            number += 1
        return number == len(found)

    def own(self, *copies: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
        """The lines of copies of the file, with their ends: each that was written once, each other one as often.

        Yields:
            A line with its end, and whether it was written here.
        """
        missing = Counter(self._found)
        for lines in copies:
            for line in lines:
                signed = signature(line.rstrip(b"\n"))
                if missing[signed]:
                    missing[signed] -= 1
                    yield line.rstrip(b"\n") + b"\n", True
                elif signed not in missing and not line.isspace():
                    yield line.rstrip(b"\n") + b"\n", False
