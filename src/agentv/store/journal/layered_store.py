"""A run's store with shelves behind it, on which answers stand that nobody has to be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agentv.model.run.trial import TrialResult
from agentv.model.values.response import TargetResponse
from agentv.ports import AnswerArchive, Call, Store


class LayeredStore:
    """A store in front of others. It leaves all of them for their makers to close.

    Args:
        own: where the run is kept.
        shelves: looked at in their order for what the run does not hold; each is given every answer.
    """

    def __init__(self, own: Store, shelves: Sequence[AnswerArchive]) -> None:
        self._own = own
        self._shelves = shelves

    def keep(self, call: Call, answer: TargetResponse) -> None:
        """Keep an answer in the run, and on the shelves."""
        self._own.keep(call, answer)
        for shelf in self._shelves:
            shelf.keep(call, answer)

    def stored_answer(self, call: Call) -> TargetResponse | None:
        """The run's own answer, else the first that is on a shelf."""
        found = self._own.stored_answer(call)
        if found is not None:
            for shelf in self._shelves:
                shelf.keep(call, found)
            return found
        on_shelf = next((one for shelf in self._shelves if (one := shelf.stored_answer(call)) is not None), None)
        return None if on_shelf is None else replace(on_shelf, earlier=True)

    def finish(self, result: TrialResult) -> TrialResult:
        """Keep the row of a finished trial."""
        return self._own.finish(result)

    def finished(self) -> Iterable[str]:
        """The keys of the trials that have a row."""
        return self._own.finished()

    def close(self) -> None:
        """Let go of nothing."""
