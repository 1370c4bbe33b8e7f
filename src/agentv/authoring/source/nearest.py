"""The nearest known name to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

MOST = 500
"""Known names that are compared; longer lists are made by programs."""

LONGEST = 100
"""Letters of a name that a person misspelt."""

CUTOFF = 0.6
"""Share of letters in place below which two names have nothing to do with each other."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a person most likely meant, or None."""
    from rapidfuzz.distance import DamerauLevenshtein, Prefix
    from rapidfuzz.process import extractOne

    choices = list(islice(known, MOST))
    if len(name) > LONGEST:
        return None
    head, _, rest = name.partition(".")
    inside = [one.removeprefix(f"{head}.") for one in choices if one.startswith(f"{head}.")] if head in choices else []
    if inside:  # a key in a nested mapping: what stands in front of the dot is right
        suggestion = nearest(rest, inside)
        return f"{head}.{suggestion}" if suggestion is not None else None
    found = extractOne(name, choices, scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=CUTOFF)
    if found is not None:
        return str(found[0])
    begun = [choice for choice in choices if Prefix.similarity(name, choice) >= min(4, len(name), len(choice)) > 2]
    return min(begun, key=len, default=None)


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """The known names, the most similar first."""
    from rapidfuzz.distance import DamerauLevenshtein

    return sorted(islice(known, MOST), key=lambda one: -DamerauLevenshtein.normalized_similarity(name, one))


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint of a diagnostic, or None."""
    found = nearest(name, known)
    return f"did you mean '{found}'?" if found else None
