"""Long texts cut in the middle, with a mark where something is left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Beginning and end of a text, and the number of characters left out between them."""

    head: str
    tail: str = ""
    left_out: int = 0

    @classmethod
    def of(cls, text: str, most: int) -> Excerpt:
        """Excerpt that keeps at most the given number of characters, not counting the mark."""
        left_out = len(text) - most
        if left_out <= 0:
            return cls(text)
        tail = most // 2
        return cls(text[: most - tail], text[len(text) - tail :], left_out)

    @property
    def text(self) -> str:
        """Excerpt with the mark on its own line."""
        if not self.left_out:
            return self.head
        return f"{self.head}\n[… {self.left_out:,} characters left out …]\n{self.tail}"

    @property
    def joined(self) -> str:
        """Excerpt without the mark, as a judge may quote it."""
        return self.head + self.tail
