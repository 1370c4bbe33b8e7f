"""The edit distance of two texts, computed only if that takes at most a second (V. Levenshtein, 1966)."""

from __future__ import annotations

MOST_COMPARED = 40_000_000_000
"""Pairs of letters that one comparison may look at: all those of two texts of 200,000 letters."""


class TooManyEditsError(Exception):
    """The texts are too long for so many edits to be counted; the message says how long they are."""

    def __init__(self, one: str, other: str, most: int) -> None:
        super().__init__(f"texts of {len(one):,} and {len(other):,} characters with up to {most:,} edits")


def edits_between(one: str, other: str, most: int) -> int | None:
    """Letters to be inserted, deleted or replaced; None where these are more than `most`.

    Raises:
        TooManyEditsError: to count them would take too long.
    """
    shorter, longer = sorted((len(one), len(other)))
    if one == other:
        return 0
    if longer - shorter > most:
        return None
    if longer * min(shorter, 2 * most + 1) > MOST_COMPARED:
        raise TooManyEditsError(one, other, most)
    from rapidfuzz.distance import Levenshtein

    edits = Levenshtein.distance(one, other, score_cutoff=most)
    return edits if edits <= most else None
