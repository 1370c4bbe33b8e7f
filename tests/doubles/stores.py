"""A store that forgets: everything is kept in memory."""

from __future__ import annotations

from agentv.model.response import TargetResponse
from agentv.model.trial import TrialResult


class MemoryStore:
    """Passes `tests/contract/test_stores.py`, as the one on disk does."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, TargetResponse]] = []
        self.results: list[TrialResult] = []
        self.closed = False

    def answer(self, key: str, answer: TargetResponse) -> None:
        self.kept.append((key, answer))

    def finish(self, result: TrialResult) -> None:
        if result.status != "skipped":
            self.results.append(result)

    def answers(self):
        return iter(self.kept)

    def finished(self):
        return (one.trial.key for one in self.results if not getattr(one.error, "stops", False))

    def close(self) -> None:
        self.closed = True
