"""Set of seen ids, by their hashes: a million of them take 24 MB."""

from __future__ import annotations

from agentv.model.values.hashes import NumberedHashes, text_hash


class IdTable:
    """A set of ids by their hashes. A hit means: most likely seen, so look again at the source."""

    def __init__(self) -> None:
        self._hashes = NumberedHashes()

    def __len__(self) -> int:
        return len(self._hashes)

    def seen(self, identity: str) -> bool:
        """Whether the id was there already; it is from now on."""
        before = len(self._hashes)
        return self._hashes.number(text_hash(identity)) < before

    def __contains__(self, identity: str) -> bool:
        return self._hashes.find(text_hash(identity)) is not None
