"""Response of a target: an answer and why it ended, or the reason for a failure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.values.message import Message
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.thoughts import split_thoughts
from agentv.model.values.trace import Trace
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, JsonObject

_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "completed": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "incomplete": "length",
    "continuation": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "safety": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "content_filter",
}
"""Providers' terms → OpenAI's term for the same."""


def canonical_reason(reason: str) -> str:
    """The reason in OpenAI's terms: stop, length, tool_calls, content_filter; an unknown one in lower case."""
    word = reason.strip().casefold().replace("-", "_")
    return _FINISH_REASONS.get(word, word)


def is_cut(reason: str | None) -> bool:
    """Whether a model stopped at its limit of tokens, so that its answer may be incomplete."""
    return reason is not None and canonical_reason(reason) == "length"


RUN_INTERRUPTED = "interrupted"
"""Code of a failure of a call that the user ended early. Its trial runs again when the run is resumed."""


class Failure(Struct, frozen=True):
    """Why there is no answer or grade. `code` is stable, such as `timeout` or `empty-output`."""

    code: str
    message: str
    retryable: bool = False


class Attempt(Struct, frozen=True):
    """One failed attempt of a call, followed by a retry or by giving up.

    Attributes:
        code, message: why there was no answer.
        duration_ms: how long the try took.
        waited_ms: the wait after it.
    """

    code: str
    message: str
    duration_ms: float
    waited_ms: float = 0.0


class CallFailure(Failure, frozen=True):
    """Why a network call gave no answer, with the data that decides on a retry.

    Attributes:
        status: of HTTP; None where there was no reply.
        retry_after_s: seconds that the server asks to wait.
        stops: no call of this target can do better, as with a refused key or an unknown model.
        limits: what its rate limits still allow.
        attempts: the tries before this one.
        response: what an agent had done and said until then, with its trace; None: nothing is known of it.
    """

    status: int | None = None
    retry_after_s: float | None = None
    stops: bool = False
    attempts: tuple[Attempt, ...] = ()
    response: TargetResponse | None = None


class Embeddings(Struct, frozen=True):
    """Embeddings: one vector per text, in order and of equal length."""

    vectors: tuple[tuple[float, ...], ...]
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None


MEASURED = ("cost_usd", "duration_ms", "finish_reason", "time_to_first_token_ms")
"""Facts of an answer that are written as they are."""

ANSWER_KEYS = ("output", "context", "metadata", "token_usage", *MEASURED)
"""Keys of the mapping that a target returns."""

STRUCTURED = "structured_output"
"""Key of `metadata`: the answer was a value, and `output` is its JSON. Code that grades it gets the value."""


class TargetResponse(Struct, frozen=True):
    """The answer of a target.

    Attributes:
        output: the final answer as text.
        messages: the transcript that the target reports; empty when the answer is all there is.
        token_usage: tokens of the call, when known.
        cost_usd: US dollars, when known; unknown is None, never 0.
        duration_ms: milliseconds that the target itself reports, else the engine measures.
        finish_reason: why the model stopped, in the provider's terms.
        time_to_first_token_ms: milliseconds until the first piece of the answer came; None: it was not streamed.
        metadata: anything else that the target says of it; kept in the row as `response_metadata`.
        context: the texts that it retrieved, in its order; `context-*` assertions read them.
        ignored: keys of the mapping that it returned that mean nothing here.
        limits: what the provider's rate limits still allow.
        attempts: the failed attempts before this answer.
        earlier: it was paid for earlier, by another run or in an older row of this one: no call was made.
        trace: what an agent did before it answered; None: it reports no trace.
        thoughts: a thought block that began the answer and was taken off `output`, with the white space around it.
        metered: the gateway counted what it took, call by call, so that nothing else counts it.
        logs: name of a file → what an agent's program printed; kept beside the trace, not in the journal.
    """

    output: str | None
    messages: tuple[Message, ...] = ()
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    finish_reason: str | None = None
    metadata: JsonObject = field(default=EMPTY)
    attempts: tuple[Attempt, ...] = ()
    earlier: bool = False
    trace: Trace | None = None
    metered: bool = False
    logs: Mapping[str, bytes] = field(default_factory=dict)
    context: tuple[RetrievedText, ...] = ()
    ignored: tuple[str, ...] = ()
    thoughts: str = ""
    time_to_first_token_ms: float | None = None

    def without_thoughts(self) -> TargetResponse:
        """The answer with a thought block that begins it moved to `thoughts`; `messages` keep it."""
        if self.output is None or "<" not in self.output:
            return self
        split = split_thoughts(self.output)
        return replace(self, output=split.answer, thoughts=split.thoughts) if split.thoughts else self

    @property
    def said(self) -> str:
        """The whole text of the answer, as a transcript shows it."""
        return self.thoughts + (self.output or "")
