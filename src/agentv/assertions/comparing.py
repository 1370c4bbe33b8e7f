"""Comparison of two values: differences in JSON, edit distance of texts, and invisible or similar characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import eq
from typing import TypeGuard
from unicodedata import category, name, normalize

from agentv.assertions.evidence import excerpt
from agentv.model.values.values import Json

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def same(one: Json, other: Json) -> bool:
    """Return whether two JSON values are equal. 1 equals 1.0, but 1 does not equal true."""
    return next(differences(one, other), None) is None


def differences(expected: Json, found: Json, *, subset: bool = False) -> Iterator[str]:
    """Yield each difference between two values, such as `$.total: expected 3, found 4`.

    With `subset`, objects in `found` may have additional keys. Lists must still match item by item.
    """
    # an explicit stack, because JSON can be nested more deeply than Python's recursion limit
    pending: list[tuple[str, Json, Json]] = [("$", expected, found)]
    while pending:
        path, one, other = pending.pop()
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            missing = [key for key in one if key not in other]
            added = [] if subset else [key for key in other if key not in one]
            yield from (f"{path}{_step(key)}: expected {shown(one[key])}, found nothing" for key in missing)
            yield from (f"{path}{_step(key)}: expected nothing, found {shown(other[key])}" for key in added)
            pending += [(f"{path}{_step(key)}", one[key], other[key]) for key in reversed([*one]) if key in other]
        elif _is_list(one) and _is_list(other) and len(one) == len(other):
            pending += [(f"{path}[{place}]", one[place], other[place]) for place in reversed(range(len(one)))]
        elif not _equal(one, other):
            texts = isinstance(one, str) and isinstance(other, str)
            near = only_difference(one, other, eq).removesuffix(": ") if texts else ""  # type: ignore[arg-type]  # both are text
            yield f"{path}: expected {shown(one)}, found {shown(other)}{f'; {near}' if near else ''}"


MOST_DIFFERENCES = 5
"""Maximum number of differences in a check."""


def first_differences(expected: Json, found: Json, *, subset: bool) -> tuple[str, ...]:
    """Return the first few differences between two values."""
    return tuple(islice(differences(expected, found, subset=subset), MOST_DIFFERENCES))


def shown(value: Json) -> str:
    """Return a short form of a value: a scalar as JSON, an object or a list by its size."""
    if isinstance(value, str):
        return f'"{excerpt(value, 60)}"'
    if isinstance(value, Mapping):
        return f"an object of {len(value)} key{'s' if len(value) != 1 else ''}"
    if isinstance(value, Sequence):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return excerpt(f"{value}", 60)


def _step(key: str) -> str:
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f'["{excerpt(key, 40)}"]'


def _is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _equal(one: Json, other: Json) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other and isinstance(one, bool) is isinstance(other, bool)
    return type(one) is type(other) and one == other


LONGEST = 100_000
"""Maximum length, in characters, of texts that `only_difference` compares."""


def only_difference(value: str, output: str, matches: Callable[[str, str], bool]) -> str:
    """Return why two texts that look alike do not match, as a prefix of the evidence, or "" if they look different.

    Args:
        value: the author's text.
        output: the answer.
        matches: tests whether a text matches an answer.
    """
    if (value.isascii() and output.isascii()) or len(output) > LONGEST:
        return ""
    if matches(normalize("NFC", value), normalize("NFC", output)):
        return "only the Unicode normalisation (NFC, NFD) differs: "
    if not matches(_visible(value), _visible(output)):
        return ""
    unseen = sorted({one for one in value if _unseen(one)} ^ {one for one in output if _unseen(one)})
    unseen = unseen or sorted({one for one in value + output if _unseen(one)})
    named = ", ".join(f"U+{ord(one):04X} {name(one, '')}".strip() for one in unseen[:3])
    return f"only invisible or similar characters differ ({named}): " if named else ""


def _unseen(letter: str) -> bool:
    """Return whether a character is invisible, looks like an ordinary space, or is a variation selector."""
    return category(letter) == "Cf" or (category(letter) == "Zs" and letter != " ") or "\ufe00" <= letter <= "\ufe0f"


def _visible(text: str) -> str:
    spaced = (" " if category(one) == "Zs" else "" if _unseen(one) else one for one in text)
    return normalize("NFC", "".join(spaced))


MOST_COMPARED = 40_000_000_000
"""Maximum number of character pairs per comparison: those of two texts of 200,000 characters."""


class TooManyEditsError(Exception):
    """The texts are too long to count that many edits; the message gives their lengths."""

    def __init__(self, one: str, other: str, most: int) -> None:
        super().__init__(f"texts of {len(one):,} and {len(other):,} characters with up to {most:,} edits")


def edits_between(one: str, other: str, most: int) -> int | None:
    """Return the number of characters to insert, delete or replace, or None if it exceeds `most`.

    Raises:
        TooManyEditsError: counting them would take too long.
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
