"""Suggest the known name that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name most similar to this one, or None if no similarity reaches the cutoff (0..1)."""
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    found = extractOne(name, [*known], scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=cutoff)
    return None if found is None else found[0]
