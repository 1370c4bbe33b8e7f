"""A store that keeps everything in memory."""

from agentv.model.run.trial import TrialResult
from agentv.model.values.message import Message
from agentv.model.values.response import TargetResponse
from agentv.ports import Call, TargetRequest


def call(key: str, case: str = "case") -> Call:
    """Return a call with this key; its request does not matter."""
    return Call(key, "gpt", TargetRequest(case, "hi", (Message("user", "hi"),)))


class MemoryStore:
    """Passes `tests/contract/test_stores.py`, as the store on disk does."""

    def __init__(self, recalled: dict[str, TargetResponse] | None = None) -> None:
        self.answers: list[tuple[str, TargetResponse]] = []
        self.recalled = recalled or {}
        self.results: list[TrialResult] = []
        self.closed = False

    def keep(self, call: Call, answer: TargetResponse) -> None:
        self.answers.append((call.key, answer))

    def stored_answer(self, call: Call) -> TargetResponse | None:
        return self.recalled.get(call.key)

    def load_answers(self) -> int:
        self.recalled.update(self.answers)
        return len(self.recalled)

    def finish(self, result: TrialResult) -> TrialResult:
        if result.status != "skipped":
            self.results.append(result)
        return result

    def finished(self):
        return (one.trial.key for one in self.results if not getattr(one.error, "stops", False))

    def close(self) -> None:
        self.closed = True
