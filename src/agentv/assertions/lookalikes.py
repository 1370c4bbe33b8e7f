"""Texts that look the same and are not: another normalisation, or characters that nobody sees."""

from __future__ import annotations

from collections.abc import Callable
from unicodedata import category, name, normalize

LONGEST = 100_000
"""Characters of an answer in which such differences are looked for."""


def only_difference(value: str, output: str, matches: Callable[[str, str], bool]) -> str:
    """What alone keeps a text from matching, as evidence begins: `only the normalisation differs: `; empty: more.

    Args:
        value: the author's text.
        output: the answer.
        matches: whether a text matches an answer.
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
    """Whether a character takes no room, or looks like an ordinary space or another form of a letter."""
    return category(letter) == "Cf" or (category(letter) == "Zs" and letter != " ") or "\ufe00" <= letter <= "\ufe0f"


def _visible(text: str) -> str:
    spaced = (" " if category(one) == "Zs" else "" if _unseen(one) else one for one in text)
    return normalize("NFC", "".join(spaced))
