"""Response of a target: an answer and why it ended, or the reason for a failure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.values.message import Message
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.trace import Trace
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import EMPTY, JsonObject, lazy_pattern

_FINISH_REASONS = {
    **dict.fromkeys(("end_turn", "stop_sequence", "eos", "completed"), "stop"),
    **dict.fromkeys(("max_tokens", "max_output_tokens", "model_length", "incomplete", "continuation"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(("safety", "content_filtered", "refusal"), "content_filter"),
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
        thoughts, answer = split_thoughts(self.output)
        return replace(self, output=answer, thoughts=thoughts) if thoughts else self

    @property
    def said(self) -> str:
        """The whole text of the answer, as a transcript shows it."""
        return self.thoughts + (self.output or "")


_BLOCK = lazy_pattern(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>\s*|\Z)", re.IGNORECASE | re.DOTALL)
_CLOSING_LINE = lazy_pattern(r"^[ \t]*</think>[ \t]*(?:\n\s*|\Z)", re.MULTILINE)


def split_thoughts(text: str) -> tuple[str, str]:
    """The thoughts that begin a text, with their tags and surrounding white space, and the answer after them.

    Thoughts are blocks of `<think>`, `<thinking>` or `<reasoning>`. An unclosed block continues to the end of the text.
    Some chat templates put the opening tag into the prompt; then a line with `</think>` alone ends the thoughts.
    """
    closing = _CLOSING_LINE.search(text) if "</think>" in text else None
    end = 0 if closing is None or "<think>" in text[: closing.start()] else closing.end()
    while block := _BLOCK.match(text, end):
        end = block.end()
    return text[:end], text[end:]


_TAG = r"<(?P<slash>/?)(?:think|thinking|reasoning)(?:\s[^<>]*)?(?<!/)>"
_TAGS = lazy_pattern(_TAG, re.IGNORECASE)
_LINE = r"(?:^|(?<=>))[ \t]*[*_`]{0,3}SCORE[ \t]*=(?P<rest>.*)$"
_PARTS = lazy_pattern(rf"{_TAG}|(?P<brace>\{{)|(?P<line>{_LINE})", re.IGNORECASE | re.MULTILINE)
"""Tags, and what may hold them as text: a JSON object, and a line of a verdict on a scale."""

_QUOTES = frozenset({"``", '""', "''", "“”", "‘’"})
"""Pairs of quotes around a tag that is only mentioned."""

MOST_BROKEN = 200
"""Braces that begin no JSON object and are looked into; a reply with more of them quotes code."""


def spoken(reply: str) -> str:
    """The reply without blocks of `<think>`, `<thinking>` or `<reasoning>`.

    A tag inside a JSON object, alone in a line `SCORE=… REASON=…`, or in quotation marks of its own is text. An
    unclosed block continues to the end. A closing tag alone ends a thought that the chat template began.
    """
    if _TAGS.search(reply) is None:
        return reply
    kept: list[str] = []
    start = at = broken = 0
    while (found := _PARTS.search(reply, at)) is not None:
        at = found.end()
        if found["brace"]:
            end = _end_of_object(reply, found.start()) if broken < MOST_BROKEN else None
            broken += end is None
            at = at if end is None else end
        elif found["line"]:
            tags = {one["slash"] for one in _TAGS.finditer(found["rest"])}
            at = found.start("rest") if len(tags) > 1 else at
        elif not _is_quoted(found):
            if found["slash"]:
                kept.clear()
            else:
                kept.append(reply[start : found.start()])
                ends = (one.end() for one in _TAGS.finditer(reply, at) if one["slash"] and not _is_quoted(one))
                at = next(ends, len(reply))
            start = at
    return "".join((*kept, reply[start:]))


def _end_of_object(text: str, start: int) -> int | None:
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _is_quoted(tag: re.Match[str]) -> bool:
    text, start, end = tag.string, tag.start(), tag.end()
    return f"{text[start - 1 : start]}{text[end : end + 1]}" in _QUOTES and text[end : end + 3] != "```"
