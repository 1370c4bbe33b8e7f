"""The marker around what a judge must not obey, new for each question (SPEC section 9)."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    """Tags that end in a token which nobody could know before the question was put."""

    token: str

    @classmethod
    def new(cls) -> Fence:
        """A fence with 64 bits of chance."""
        return cls(secrets.token_hex(8))

    def around(self, what: str, text: str) -> str:
        """The text between `<what-token>` and `</what-token>`, each on a line of its own."""
        return f"<{what}-{self.token}>\n{text}\n</{what}-{self.token}>"

    def shows(self, what: str, text: str) -> bool:
        """Whether a text holds this fence around `what`; a filter may have changed its letters' case."""
        tag = f"<{what}-{self.token}"
        return tag in text or tag in text.lower()

    def outside(self, text: str) -> str:
        """The text without all that stands between tags of this fence; a tag without its partner hides the more."""
        if self.token not in text.lower():
            return text
        # the slash is a group, so it stands between the pieces: piece, slash or "", piece, …
        parts = re.split(rf"<\s*(/?)\s*[\w-]*-{self.token}\s*>", text, flags=re.IGNORECASE)
        pieces, slashes = parts[::2], parts[1::2]
        opened = [False, *(slash == "" for slash in slashes)]
        closes = [*(slash == "/" for slash in slashes), False]
        return " ".join(
            piece for piece, after, before in zip(pieces, opened, closes, strict=True) if not (after or before)
        )
