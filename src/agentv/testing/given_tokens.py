"""The tokens that a server has given: what its replies said, added up."""

from __future__ import annotations

from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.testing.agents.conversation import conversation_of
from agentv.testing.calls import ModelCall
from agentv.testing.steps import HOLDERS, Answer, Step, StoppedStream, Truncated

_NONE = TokenUsage(input=0, output=0, total=0, cached=0, reasoning=0)
MOST = 10_000
"""Keys and conversations that are counted apart, so that a server may run for days."""

OTHERS = "others"
_CUT = (Truncated, StoppedStream)


class GivenTokens:
    """Tokens of the replies that came whole: in total, by key, by conversation."""

    def __init__(self) -> None:
        self.total = _NONE
        self.by_key: dict[str, TokenUsage] = {}
        self.by_conversation: dict[str, TokenUsage] = {}

    def add(self, call: ModelCall, key: str, step: Step) -> None:
        """Count a reply."""
        usage = _usage_of(step)
        if usage is None:
            return
        self.total += usage
        _add(self.by_key, key, usage)
        _add(self.by_conversation, conversation_of(call), usage)

    def counts(self) -> JsonObject:
        """For `GET /stats`; keys are shortened."""
        by_key = {_short(key): _counts(usage) for key, usage in self.by_key.items()}
        by_conversation = {name: _counts(usage) for name, usage in self.by_conversation.items()}
        return {**_counts(self.total), "by_key": by_key, "by_conversation": by_conversation}


def _add(counts: dict[str, TokenUsage], name: str, usage: TokenUsage) -> None:
    kept = name if name in counts or len(counts) < MOST else OTHERS
    counts[kept] = counts.get(kept, _NONE) + usage


def _usage_of(step: Step) -> TokenUsage | None:
    if isinstance(step, Answer):
        return step.usage
    return step.answer.usage if isinstance(step, HOLDERS) and not isinstance(step, _CUT) else None


def _counts(usage: TokenUsage) -> JsonObject:
    return {name: getattr(usage, name) for name in ("input", "output", "total", "cached", "reasoning")}


_SHOWN = 12


def _short(key: str) -> str:
    """A short key whole, so that a test finds its own; of a long one, which may be real, the ends."""
    return key if len(key) <= _SHOWN else f"{key[:4]}…{key[-4:]}"
