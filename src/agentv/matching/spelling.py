"""The name that somebody meant who misspelt it."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most like this one; None where no one has that share of its letters in place."""
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    found = extractOne(name, [*known], scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=cutoff)
    return None if found is None else found[0]
