"""A run that grades the answers of another one: its store finds them there, and keeps them as its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agentv.model.response import TargetResponse
from agentv.model.trial import TrialResult
from agentv.ports import Store
from agentv.store.recall import Recall


class Regrading:
    """A store in front of another. It leaves both for their makers to close.

    Args:
        own: where the run is kept.
        earlier: the answers of the other run.
    """

    def __init__(self, own: Store, earlier: Recall) -> None:
        self._own = own
        self._earlier = earlier

    def keep(self, key: str, case: str, answer: TargetResponse) -> None:
        """Keep an answer that somebody was asked for."""
        self._own.keep(key, case, answer)

    def kept(self, key: str) -> TargetResponse | None:
        """The run's own answer, else the other one's."""
        found = self._own.kept(key)
        if found is not None:
            return found
        found = self._earlier.answer(key)
        return None if found is None else replace(found, earlier=True)

    def finish(self, result: TrialResult) -> None:
        """Keep the row of a finished trial."""
        self._own.finish(result)

    def finished(self) -> Iterable[str]:
        """The keys of the trials that have a row."""
        return self._own.finished()

    def close(self) -> None:
        """Let go of nothing: what it stands before is others' to close."""
