"""Replies of model APIs as the gateway needs them: usage out of a stream while it passes, prices, ceilings, errors."""

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
"""Bytes of one event."""

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


class TooLongEventError(Exception):
    """An event of a stream has no end."""


def data_of(event: bytes) -> bytes:
    """The data of an event; empty: it has none."""
    if event.startswith(b"data:") and event.count(b"\n") == 2 and b"\r" not in event:  # most are a line
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
"""API → keys of which a whole reply has one."""

_NO_ANSWER = {"failed": "the response failed", "cancelled": "the response was cancelled"}
"""States in which a response ends without an answer."""


class ReplyReader:
    """What one reply says of itself.

    Attributes:
        complete: the reply has its own end.
        body: the reply in the form of one that is not streamed, once it has ended.
    """

    def __init__(self, api: Api) -> None:
        self.complete = False
        self._api = api
        self._stream = _STREAMS[api]() if api in _STREAMS else None
        self.body: JsonObject = {}
        self._error: Json = None

    def read_whole(self, body: bytes) -> None:
        """Take a reply that is not streamed. Gemini streams a list where nobody asks for events."""
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
        """Take the data of an event; returns whether it tells of usage and of nothing else."""
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
        except TypeError:  # values of types that no API sends
            return
        self._error = self._error or self._stream.error
        self.complete = self.complete or self._stream.complete

    def end(self) -> None:
        """Put together what the events of a stream said."""
        if self._stream is not None:
            self.body = self._stream.body()

    @property
    def usage(self) -> dict[str, Json] | None:
        """As the API reports it; None: it reports none."""
        counts = next((one for key in ("usage", "usageMetadata") if isinstance(one := self.body.get(key), dict)), None)
        return None if counts is None else {key: value for key, value in counts.items() if value is not None}

    @property
    def model(self) -> str:
        """The model that answered; empty: the API does not say."""
        return next((one for key in ("model", "modelVersion") if isinstance(one := self.body.get(key), str)), "")

    @property
    def error(self) -> str | None:
        """The error of an API that fails after it has begun to reply."""
        body = self.body
        found = [self._error, body.get("error"), body if body.get("type") == "error" else None]
        found += [one.get("error") for one in objects_in(body.get("choices"))]
        if error := next(filter(None, found), None):
            words = error.get("message") if isinstance(error, Mapping) else error
            return str(words or "the API reports an error without a message")[:500]
        return _NO_ANSWER.get(str(body.get("status"))) if self._api == "responses" else None

    @property
    def finish(self) -> str:
        """Why the model ended, in the words of its API; empty: the API does not say."""
        body = self.body
        reasons = [one.get("finish_reason") for one in objects_in(body.get("choices"))]
        reasons += [one.get("finishReason") for one in objects_in(body.get("candidates"))]
        reasons += [one.get("blockReason") for one in objects_in([body.get("promptFeedback")])]
        reasons += [one.get("reason") for one in objects_in([body.get("incomplete_details")])]
        return next((one for one in (body.get("stop_reason"), *reversed(reasons)) if one and isinstance(one, str)), "")


class StreamReader:
    """Reads a stream of events while it passes.

    Args:
        reader: gets what the events say.
        hides_usage: an event that tells of usage and of nothing else is left out: the agent has not asked for it.
    """

    def __init__(self, reader: ReplyReader, *, hides_usage: bool = False) -> None:
        self._reader = reader
        self._hides_usage = hides_usage
        self._rest = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> bytes:
        """What of the stream so far is passed on.

        Raises:
            TooLongEventError: an event is longer than it may be.
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
        """What is left: some servers leave out the last empty line."""
        rest = bytes(self._rest)
        hidden = self._reader.read_event(data_of(rest)) if rest.strip() else False
        self._reader.end()
        return rest if self._hides_usage and not hidden else b""


_DOMAINS = {"openai": "openai.com", "anthropic": "anthropic.com", "gemini": "googleapis.com"}
_PRICES: Mapping[ModelProtocol, str] = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}
_CONFIGS = ("generationConfig", "generation_config")
"""Where Gemini's API takes settings: each key may be written in either way."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def ceiling(upstream: ModelUpstream, model: str, body: JsonObject) -> Ceiling:
    """The most that a call can cost, by its body."""
    # Tokens that an answer may have, and how many answers are asked for: the largest numbers that the body names.
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tokens_to_sample", "maxOutputTokens")
    places = [body, *(one for key in _CONFIGS if isinstance(one := body.get(key), Mapping))]
    longest = max((count(place.get(name)) or 0 for place in places for name in names), default=0) or None
    counts = ("n", "best_of", "candidateCount", "candidate_count")
    answers = max((count(place.get(name)) or 0 for place in places for name in counts), default=0) or 1
    most = RequestSettings(_prices(upstream), model, longest).ceiling_of_body(body, answers=answers)
    return most if upstream.price is None else Ceiling(upstream.price.at_most(most.tokens), most.tokens)


def is_local(upstream: ModelUpstream) -> bool:
    """Whether the API runs on this machine, where nobody is paid unless it says so."""
    return host_of(upstream.base_url) in _LOOPBACK


def usage_of(protocol: ModelProtocol, usage: Json) -> tuple[TokenUsage | None, int]:
    """The tokens in a `usage` of the API, and how many of them were written to a cache."""
    if protocol == "anthropic":
        return anthropic.usage_of(usage)
    if protocol == "gemini":
        return gemini.usage_of(usage), 0
    return openai.usage_of({"usage": usage}), 0


def cost_in(upstream: ModelUpstream, model: str, tokens: TokenUsage | None, *, cache_written: int = 0) -> float | None:
    """The price of a call; None where it is not known."""
    if upstream.price is not None:
        return upstream.price.cost(tokens)
    name = model.removeprefix("models/")
    return cost_of(_prices(upstream), name, tokens, cache_written=cache_written)


def failure_in(
    upstream: ModelUpstream, status: int, headers: Mapping[str, str], body: bytes, retried: frozenset[int]
) -> CallFailure:
    """What an error of the API means."""
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


def ending(finish: str) -> Failure | None:
    """Why a reply is no whole answer: it was cut off, or a filter ended it."""
    if is_cut(finish):
        return Failure("agent-limit", f"the model's last answer was cut off at its maximum length ({finish})")
    if finish in openai.BROKEN:
        return Failure("bad-answer", f"the API broke off the model's last answer ({finish})")
    if finish in gemini.BLOCKED or canonical_reason(finish) == openai.FILTERED:
        return Failure("refused", f"the provider's filter ended the model's last answer ({finish})")
    return None


def _prices(upstream: ModelUpstream) -> str:
    """The provider as the price list takes it."""
    return other_server(upstream.base_url, _DOMAINS[upstream.protocol]) or _PRICES[upstream.protocol]
