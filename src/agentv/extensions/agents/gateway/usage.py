"""What the gateway needs from replies of model APIs: usage from passing streams, prices, ceilings, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from agentv.extensions.agents.gateway.routes import Api
from agentv.extensions.agents.traces.values import count
from agentv.model.suite.tools import ModelProtocol, ModelUpstream
from agentv.model.values.response import CallFailure, Failure, canonical_reason, is_cut
from agentv.model.values.usage import Ceiling, TokenUsage
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.targets.anthropic import messages as anthropic
from agentv.targets.gemini import messages as gemini
from agentv.targets.http.failures import failure_of, host_of, other_server
from agentv.targets.model_api.prices import RequestSettings, cost_of
from agentv.targets.model_api.streams import ChatStream, ContentStream, MessageStream, ResponseStream
from agentv.targets.openai_api import replies as openai

LONGEST_EVENT = 32_000_000
"""Maximum bytes of one event."""

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


class TooLongEventError(Exception):
    """An event of a stream is too long."""


def data_of(event: bytes) -> bytes:
    """Return the data of an event; empty if it has none."""
    if event.startswith(b"data:") and event.count(b"\n") == 2 and b"\r" not in event:  # most have one line
        return event[5:-2].strip()
    lines = (line for line in _LINE.split(event) if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines).strip()


_decode = msgspec.json.Decoder().decode

_STREAMS = {"chat": ChatStream, "responses": ResponseStream, "messages": MessageStream, "gemini": ContentStream}
_ANSWERS: Mapping[Api, tuple[str, ...]] = {
    "chat": ("choices",),
    "responses": ("output", "status"),
    "messages": ("content",),
    "gemini": ("candidates", "promptFeedback"),
    "embeddings": ("data", "embeddings", "embedding"),
}
"""API → keys of which a complete reply has at least one."""

_NO_ANSWER = {"failed": "the response failed", "cancelled": "the response was cancelled"}
"""Status of a response without an answer → description."""


class ReplyReader:
    """Reads one reply.

    Attributes:
        complete: whether the reply is complete.
        body: the reply in the form of one that is not streamed, once it has ended.
    """

    def __init__(self, api: Api) -> None:
        self.complete = False
        self._api = api
        self._stream = _STREAMS[api]() if api in _STREAMS else None
        self.body: JsonObject = {}
        self._error: Json = None

    def read_whole(self, body: bytes) -> None:
        """Read a reply that is not streamed. Gemini streams a JSON list unless events are requested."""
        try:
            found = _decode(body)
        except msgspec.DecodeError:
            self._error = "the reply is not JSON"
            return
        rows = objects_in(found if isinstance(found, list) else [found])
        if isinstance(found, list):
            for one in rows:
                self._take(one)
            self.end()
        elif isinstance(found, dict):
            self.body = found
        self.complete = any(name in one for one in rows for name in _ANSWERS[self._api])
        if not self.complete and self.error is None:
            self._error = "the reply has no answer"

    def read_event(self, data: bytes) -> bool:
        """Read the data of an event. Return whether it has usage and nothing else."""
        if data == b"[DONE]":
            self.complete = True
            return False
        try:
            found = _decode(data)
        except msgspec.DecodeError:
            return False
        if not isinstance(found, dict):
            return False
        self._take(found)
        return self._api == "chat" and found.get("choices") == [] and isinstance(found.get("usage"), dict)

    def _take(self, event: JsonObject) -> None:
        if self._stream is None:
            return
        self._error = self._error or event.get("error")
        try:
            self._stream.add(event)
        except TypeError:  # values of unexpected types
            return
        self._error = self._error or self._stream.error
        self.complete = self.complete or self._stream.complete

    def end(self) -> None:
        """Assemble `body` from the events of a stream."""
        if self._stream is not None:
            self.body = self._stream.body()

    @property
    def usage(self) -> dict[str, Json] | None:
        """Usage as the API reports it, or None."""
        counts = next((one for key in ("usage", "usageMetadata") if isinstance(one := self.body.get(key), dict)), None)
        return None if counts is None else {key: value for key, value in counts.items() if value is not None}

    @property
    def model(self) -> str:
        """Name of the model that answered; empty if the API gives none."""
        return next((one for key in ("model", "modelVersion") if isinstance(one := self.body.get(key), str)), "")

    @property
    def error(self) -> str | None:
        """Error that the API reports within its reply, or None."""
        body = self.body
        found = [self._error, body.get("error"), body if body.get("type") == "error" else None]
        found += [one.get("error") for one in objects_in(body.get("choices"))]
        if error := next(filter(None, found), None):
            words = error.get("message") if isinstance(error, Mapping) else error
            return str(words or "the API reports an error without a message")[:500]
        return _NO_ANSWER.get(str(body.get("status"))) if self._api == "responses" else None

    @property
    def finish(self) -> str:
        """Finish reason in the words of the API; empty if the API gives none."""
        body = self.body
        reasons = [one.get("finish_reason") for one in objects_in(body.get("choices"))]
        reasons += [one.get("finishReason") for one in objects_in(body.get("candidates"))]
        reasons += [one.get("blockReason") for one in objects_in([body.get("promptFeedback")])]
        reasons += [one.get("reason") for one in objects_in([body.get("incomplete_details")])]
        return next((one for one in (body.get("stop_reason"), *reversed(reasons)) if one and isinstance(one, str)), "")


class StreamReader:
    """Reads a stream of events while it is forwarded.

    Args:
        reader: gets the data of the events.
        hides_usage: whether to drop events with only usage, which the agent has not asked for.
    """

    def __init__(self, reader: ReplyReader, *, hides_usage: bool = False) -> None:
        self._reader = reader
        self._hides_usage = hides_usage
        self._rest = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> bytes:
        """Read a chunk and return what can be forwarded.

        Raises:
            TooLongEventError: an event is longer than `LONGEST_EVENT`.
        """
        rest, shown = self._rest, []
        rest += chunk
        begin, at = 0, self._searched
        while (found := _END.search(rest, at)) is not None:
            event = bytes(rest[begin : found.end()])
            begin = at = found.end()
            if not self._reader.read_event(data_of(event)):
                shown.append(event)
        if begin:
            del rest[:begin]
        self._searched = max(0, len(rest) - 3)
        if len(rest) > LONGEST_EVENT:
            raise TooLongEventError
        return b"".join(shown) if self._hides_usage else chunk

    def end(self) -> bytes:
        """Read the rest and return what can be forwarded. Some servers omit the last empty line."""
        rest = bytes(self._rest)
        hidden = self._reader.read_event(data_of(rest)) if rest.strip() else False
        self._reader.end()
        return rest if self._hides_usage and not hidden else b""


_DOMAINS = {"openai": "openai.com", "anthropic": "anthropic.com", "gemini": "googleapis.com"}
_PRICES: Mapping[ModelProtocol, str] = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}
_CONFIGS = ("generationConfig", "generation_config")
"""Keys of the settings in Gemini's API, which accepts both spellings."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def ceiling(upstream: ModelUpstream, model: str, body: JsonObject) -> Ceiling:
    """Return the most that a call can cost, given its body."""
    # The largest limit on tokens and the largest number of answers in the body.
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample", "maxOutputTokens")
    places = [body, *(one for key in _CONFIGS if isinstance(one := body.get(key), Mapping))]
    longest = max((count(place.get(name)) or 0 for place in places for name in names), default=0) or None
    counts = ("n", "best_of", "candidateCount", "candidate_count")
    answers = max((count(place.get(name)) or 0 for place in places for name in counts), default=0) or 1
    most = RequestSettings(_prices(upstream), model, longest).ceiling_of_body(body, answers=answers)
    return most if upstream.price is None else Ceiling(upstream.price.at_most(most.tokens), most.tokens)


def is_local(upstream: ModelUpstream) -> bool:
    """Whether the API runs on this machine, where calls are free unless it reports a cost."""
    return host_of(upstream.base_url) in _LOOPBACK


def usage_of(protocol: ModelProtocol, usage: Json) -> tuple[TokenUsage | None, int]:
    """Return the tokens in the API's `usage`, and how many of them were written to a cache."""
    if protocol == "anthropic":
        return anthropic.usage_of(usage)
    if protocol == "gemini":
        return gemini.usage_of(usage), 0
    return openai.usage_of({"usage": usage}), 0


def cost_in(upstream: ModelUpstream, model: str, tokens: TokenUsage | None, *, cache_written: int = 0) -> float | None:
    """Return the price of a call in USD, or None if it is unknown."""
    if upstream.price is not None:
        return upstream.price.cost(tokens)
    name = model.removeprefix("models/")
    return cost_of(_prices(upstream), name, tokens, cache_written=cache_written)


def failure_in(
    upstream: ModelUpstream, status: int, headers: Mapping[str, str], body: bytes, retried: frozenset[int]
) -> CallFailure:
    """Return the Failure for an error reply of the API."""
    text, details = body.decode(errors="replace"), None
    with suppress(ValueError, RecursionError):
        details = json.loads(text)
    secrets = (upstream.api_key,)
    if upstream.protocol == "gemini" and isinstance(details, dict | list):
        first = details[0] if isinstance(details, list) and details else details
        return gemini.refusal_of(status, first, headers, retried, secrets)
    error = details.get("error") if isinstance(details, dict) else None
    words = error.get("message") if isinstance(error, dict) else None
    return failure_of(status, words if isinstance(words, str) else text, headers, retried, secrets=secrets)


def failure_of_finish(finish: str) -> Failure | None:
    """Return a failure if a reply was cut off, broken off or ended by a filter; None otherwise."""
    if is_cut(finish):
        return Failure("agent-limit", f"the model's last answer was cut off at its maximum length ({finish})")
    if finish in openai.BROKEN:
        return Failure("bad-answer", f"the API broke off the model's last answer ({finish})")
    if finish in gemini.BLOCKED or canonical_reason(finish) == openai.FILTERED:
        return Failure("refused", f"the provider's filter ended the model's last answer ({finish})")
    return None


def _prices(upstream: ModelUpstream) -> str:
    """Return the provider's name in the price list."""
    return other_server(upstream.base_url, _DOMAINS[upstream.protocol]) or _PRICES[upstream.protocol]
