"""Responses of targets: an answer, or the reason for a failure."""

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
"""Finish reason of another provider → OpenAI's term."""


def canonical_reason(reason: str) -> str:
    """Return a finish reason in OpenAI's terms (stop, length, tool_calls, content_filter), else in lower case."""
    word = reason.strip().casefold().replace("-", "_")
    return _FINISH_REASONS.get(word, word)


def is_cut(reason: str | None) -> bool:
    """Whether a model stopped at its token limit, so that its answer may be incomplete."""
    return reason is not None and canonical_reason(reason) == "length"


RUN_INTERRUPTED = "interrupted"
"""Failure code of a call that the user interrupted. Its trial runs again when the run is resumed."""


class Failure(Struct, frozen=True):
    """The reason why there is no answer or grade. `code` is stable, such as `timeout` or `empty-output`."""

    code: str
    message: str
    retryable: bool = False


class Attempt(Struct, frozen=True):
    """One failed attempt of a call, followed by a retry or by giving up.

    Attributes:
        code, message: why it failed.
        duration_ms: duration of the attempt.
        waited_ms: wait after the attempt.
    """

    code: str
    message: str
    duration_ms: float
    waited_ms: float = 0.0


class CallFailure(Failure, frozen=True):
    """The reason why a call gave no answer, with the data that decides whether to retry.

    Attributes:
        status: HTTP status; None if there was no reply.
        retry_after_s: seconds that the server asks to wait.
        stops: whether every call of this target would fail, as with an invalid key or an unknown model.
        attempts: the earlier attempts.
        response: what an agent had said and done before the failure, with its trace; None if unknown.
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
"""Attributes of an answer that are written unchanged."""

ANSWER_KEYS = ("output", "context", "metadata", "token_usage", *MEASURED)
"""Keys that are read from a mapping that a target returns."""

STRUCTURED = "structured_output"
"""Key of `metadata` for an answer that was a value: `output` is its JSON, and code that grades it gets the value."""


class TargetResponse(Struct, frozen=True):
    """The answer of a target.

    Attributes:
        output: the final answer as text.
        messages: the transcript that the target reports; empty if it only reports the answer.
        token_usage: tokens of the call, if known.
        cost_usd: US dollars; None, never 0, if unknown.
        duration_ms: duration that the target reports, or else the one that the engine measured.
        finish_reason: why the model stopped, in the provider's terms.
        time_to_first_token_ms: milliseconds until the first part of the answer arrived; None if it was not streamed.
        metadata: any other data that the target returned; kept in the row as `response_metadata`.
        context: the texts that it retrieved, in its order; read by `context-*` assertions.
        ignored: unknown keys of the mapping that it returned.
        attempts: the failed attempts before this answer.
        earlier: whether the answer was paid for by another run or an older row of this run, so that no call was made.
        trace: what an agent did before it answered; None if it reports no trace.
        thoughts: the thought block that was removed from the start of `output`, with the white space around it.
        metered: whether the gateway already counted its usage, call by call.
        logs: file name → output of an agent's program; stored beside the trace, not in the journal.
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
        """Return the answer with a leading thought block moved to `thoughts`; `messages` still contain it."""
        if self.output is None or "<" not in self.output:
            return self
        thoughts, answer = split_thoughts(self.output)
        return replace(self, output=answer, thoughts=thoughts) if thoughts else self

    @property
    def said(self) -> str:
        """The whole text of the answer, including thoughts, as shown in a transcript."""
        return self.thoughts + (self.output or "")


_BLOCK = lazy_pattern(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>\s*|\Z)", re.IGNORECASE | re.DOTALL)
_CLOSING_LINE = lazy_pattern(r"^[ \t]*</think>[ \t]*(?:\n\s*|\Z)", re.MULTILINE)


def split_thoughts(text: str) -> tuple[str, str]:
    """Split a text into the thoughts at its start, with tags and surrounding white space, and the answer after them.

    Thoughts are blocks of `<think>`, `<thinking>` or `<reasoning>`. An unclosed block continues to the end of the text.
    Some chat templates put the opening tag in the prompt; then a line that is only `</think>` ends the thoughts.
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
"""Matches tags, and the starts of what may contain them as plain text: JSON objects and `SCORE=` lines."""

_QUOTES = frozenset({"``", '""', "''", "“”", "‘’"})
"""Pairs of quotation marks around a tag that is only mentioned."""

MOST_BROKEN = 200
"""Maximum braces to try as the start of a JSON object without success; a reply with more of them quotes code."""


def spoken(reply: str) -> str:
    """Return the reply without blocks of `<think>`, `<thinking>` or `<reasoning>`.

    A tag is plain text inside a JSON object, in quotation marks of its own, or if it has no counterpart on a line
    `SCORE=… REASON=…`. An unclosed block continues to the end. A closing tag without an opening one ends a thought that
    the chat template began.
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
