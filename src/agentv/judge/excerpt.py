"""Long texts cut in the middle, with a mark where something is left out."""

from __future__ import annotations

from agentv.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning and the end of a text, and how many characters are left out between them."""

    head: str
    tail: str = ""
    left_out: int = 0

    @classmethod
    def of(cls, text: str, most: int) -> Excerpt:
        """A text of which no more than some characters are kept; the mark comes on top."""
        left_out = len(text) - most
        if left_out <= 0:
            return cls(text)
        tail = most // 2
        return cls(text[: most - tail], text[len(text) - tail :], left_out)

    @property
    def text(self) -> str:
        """With the mark, on a line of its own."""
        if not self.left_out:
            return self.head
        return f"{self.head}\n[… {self.left_out:,} characters left out …]\n{self.tail}"

    @property
    def joined(self) -> str:
        """Without the mark, as somebody may quote it."""
        return self.head + self.tail
