"""Streamed replies of model APIs, assembled into the reply that the API would have sent without streaming."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.values import Json, JsonObject, objects_in

ENDED_EARLY = CallFailure("bad-answer", "the stream ended early", retryable=True)


class StreamedReply:
    """Base of replies that are assembled from events.

    Attributes:
        complete: whether the API has sent the end of the reply.
        error: the error with which the API ended the stream, if no SDK raised it.
    """

    complete = False
    error: Json = None

    def add(self, event: JsonObject) -> bool:
        """Add the next event. Return whether it contains a part of the answer's text or of a tool call."""
        raise NotImplementedError

    def body(self) -> JsonObject:
        """Return the reply so far, in the format without streaming."""
        raise NotImplementedError


class ReplyStream:
    """One streamed call.

    Attributes:
        reply: the reply so far.
        first_token_ms: milliseconds until the first part of the answer arrived; None before that.
    """

    def __init__(self, reply: Callable[[], StreamedReply]) -> None:
        self._make = reply
        self.begin()

    def begin(self) -> None:
        """Start the clock for a call, or for its repetition without a rejected parameter."""
        self.reply = self._make()
        self.first_token_ms: float | None = None
        self._began = perf_counter()

    async def read(self, events: AsyncIterable[Any]) -> Failure | None:
        """Read events until the stream ends. Return a Failure if the reply is incomplete, or None."""
        async for event in events:
            if isinstance(event, Mapping) and event.get("error"):
                self.reply.error = event["error"]
                return ENDED_EARLY
            is_piece = isinstance(event, Mapping) and self.reply.add(event)
            if is_piece and self.first_token_ms is None:
                self.first_token_ms = round((perf_counter() - self._began) * 1000, 3)
        return None if self.reply.complete else ENDED_EARLY

    def timed(
        self, found: TargetResponse | Failure, read: Callable[[JsonObject], TargetResponse | Failure]
    ) -> TargetResponse | Failure:
        """Return the answer with the time of its first token, or the failure with the partial answer.

        Args:
            found: result of the call.
            read: parses a whole reply.
        """
        if isinstance(found, TargetResponse):
            return replace(found, time_to_first_token_ms=self.first_token_ms)
        if self.first_token_ms is None or not isinstance(found, CallFailure):
            return found
        part = read(self.reply.body())
        if isinstance(part, Failure):
            return found
        known = {"token_usage": None, "cost_usd": None, "finish_reason": None}
        return replace(found, response=replace(part, **known, time_to_first_token_ms=self.first_token_ms))


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a reply is a stream. Some servers send a whole reply instead; without a content type it is a stream."""
    return headers.get("content-type", "text/event-stream").lower().startswith("text/event-stream")


def text_in(content: Json) -> str:
    """Return the text of a content, which some servers send as a list of parts."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in objects_in(content))
    return "".join(text for text in texts if isinstance(text, str))


async def events_in(pieces: AsyncIterable[bytes]) -> AsyncIterator[Json]:
    """Yield the JSON data of server-sent events until the stream ends or an event is `[DONE]`.

    Raises:
        ValueError, RecursionError: the data of an event is not JSON.
    """
    rest = b""
    data: list[bytes] = []
    async for piece in pieces:
        lines = (rest + piece).splitlines(keepends=True)
        rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""  # a line feed may follow
        for line in (one.rstrip(b"\r\n") for one in lines):
            if line.removeprefix(BOM_UTF8).startswith(b"data:"):
                data.append(line.partition(b":")[2].removeprefix(b" "))
            elif not line and data:
                event = b"\n".join(data)
                if event.startswith(b"[DONE]"):
                    return
                yield json.loads(event)
                data = []


class ChatStream(StreamedReply):
    """A chat completion of OpenAI or a compatible server. Only the first choice is read."""

    def __init__(self) -> None:
        self._head: dict[str, Json] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: list[_Call] = []
        self._function: _Call | None = None
        self._finish: Json = None

    def add(self, event: JsonObject) -> bool:
        """Add a `chat.completion.chunk`, or an error that some servers send without the key `error`."""
        if "choices" not in event and "message" in event:
            self.error = event
            return False
        others = {key: value for key, value in event.items() if key not in ("choices", "usage")}
        self._head |= {key: value for key, value in others.items() if value is not None}
        _add_counts(self._head, "usage", event.get("usage"))
        choice = next((one for one in objects_in(event.get("choices")) if not one.get("index")), {})
        self.error = self.error or choice.get("error")
        if choice.get("finish_reason"):
            self.complete = True
            if self._finish in (None, "stop"):  # some servers send "stop" with every chunk
                self._finish = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return False
        found = False
        for key in ("content", "refusal", "reasoning_content"):
            piece = text_in(delta.get(key))
            if piece:
                self._texts.setdefault(key, []).append(piece)
                found = found or key != "reasoning_content"
        for part in objects_in(delta.get("tool_calls")):
            self._call_of(part).add(part.get("id"), part.get("function"))
            found = True
        if isinstance(delta.get("function_call"), Mapping):  # OpenAI's tool calls before 2024
            self._function = self._function or _Call(None)
            self._function.add(None, delta["function_call"])
            found = True
        return found

    def _call_of(self, part: JsonObject) -> _Call:
        """Return the tool call that a part belongs to. Some servers distinguish calls only by id, not by index."""
        index, identity, function = part.get("index"), part.get("id"), part.get("function")
        call = next((one for one in reversed(self._calls) if one.index == index), None)
        begins = identity and isinstance(function, Mapping) and function.get("name")
        if call is None or (begins and call.id not in (None, identity)):
            call = _Call(index)
            self._calls.append(call)
        return call

    def body(self) -> JsonObject:
        """Return a `chat.completion`."""
        message: dict[str, Json] = {"role": "assistant", "content": None}
        message |= {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": call.function} for call in self._calls
            ]
        if self._function is not None:
            message["function_call"] = self._function.function
        return {**self._head, "choices": [{"index": 0, "message": message, "finish_reason": self._finish}]}


def _add_counts(reply: dict[str, Json], key: str, counts: Json) -> None:
    """Update the usage in the reply with the counts of an event."""
    if isinstance(counts, Mapping):
        known = reply.get(key)
        reported = {name: value for name, value in counts.items() if value is not None}
        reply[key] = {**(known if isinstance(known, Mapping) else {}), **reported}


class _Call:
    """A tool call that is assembled from parts."""

    def __init__(self, index: Json) -> None:
        self.index = index
        self.id: Json = None
        self._name: list[str] = []
        self._arguments: list[str] = []

    def add(self, identity: Json, function: Json) -> None:
        self.id = self.id or identity
        for key, pieces in (("name", self._name), ("arguments", self._arguments)):
            piece = function.get(key) if isinstance(function, Mapping) else None
            if isinstance(piece, str):
                pieces.append(piece)

    @property
    def function(self) -> JsonObject:
        return {"name": "".join(self._name), "arguments": "".join(self._arguments)}


_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_PIECES = frozenset({"response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta"})


class ResponseStream(StreamedReply):
    """A reply of OpenAI's Responses API, whose last event contains the whole reply."""

    def __init__(self) -> None:
        self._response: JsonObject = {}
        self._texts: list[str] = []

    def add(self, event: JsonObject) -> bool:
        """Add an event."""
        kind, response = event.get("type"), event.get("response")
        if isinstance(response, Mapping):
            self._response = {**response, "status": "failed"} if kind == "response.failed" else response
        if kind == "error":
            self.error = event.get("error") or event
        self.complete = self.complete or (kind in _ENDS and bool(self._response))
        if kind == "response.output_text.delta" and isinstance(event.get("delta"), str):
            self._texts.append(str(event["delta"]))
        return kind in _PIECES

    def body(self) -> JsonObject:
        """Return a `response`. If the stream ended early, it has the text received so far."""
        if self.complete:
            return self._response
        part = {"type": "output_text", "text": "".join(self._texts)}
        return {**self._response, "status": None, "output": [{"type": "message", "content": [part]}]}


class MessageStream(StreamedReply):
    """A reply of Anthropic's Messages API."""

    def __init__(self) -> None:
        self._message: dict[str, Json] = {}
        self._blocks: dict[Json, dict[str, Json]] = {}
        self._pieces: dict[Json, list[str]] = {}

    def add(self, event: JsonObject) -> bool:
        """Add an event."""
        kind, place, delta = event.get("type"), event.get("index"), event.get("delta")
        message, block = event.get("message"), event.get("content_block")
        if isinstance(message, Mapping):
            self._message |= message
        _add_counts(self._message, "usage", event.get("usage"))
        if kind == "content_block_start" and isinstance(block, Mapping):
            self._blocks[place] = dict(block)
            self._pieces[place] = [text] if isinstance(text := block.get("text"), str) else []
            return block.get("type") == "tool_use"
        if kind == "message_delta" and isinstance(delta, Mapping):
            self._message |= delta
        elif isinstance(delta, Mapping):
            piece = delta.get("text", delta.get("partial_json", delta.get("thinking")))
            if isinstance(piece, str) and place in self._pieces:
                self._pieces[place].append(piece)
                return bool(piece) and "thinking" not in delta
        self.complete = self.complete or kind == "message_stop"
        return False

    def body(self) -> JsonObject:
        """Return a `message`."""
        return {**self._message, "content": [self._block(place) for place in self._blocks]}

    def _block(self, place: Json) -> JsonObject:
        block, text = self._blocks[place], "".join(self._pieces[place])
        if (kind := block.get("type")) in ("text", "thinking"):
            return {**block, str(kind): text}
        try:
            return {**block, "input": json.loads(text)} if text else block
        except (ValueError, RecursionError):
            return block  # incomplete or invalid JSON


class ContentStream(StreamedReply):
    """A reply of Gemini. Only the first candidate is read."""

    def __init__(self) -> None:
        self._reply: dict[str, Json] = {}
        self._candidate: dict[str, Json] = {}
        self._parts: list[JsonObject] = []
        self._blocked = False

    def add(self, event: JsonObject) -> bool:
        """Add a `GenerateContentResponse`."""
        self._reply |= {key: value for key, value in event.items() if key != "usageMetadata"}
        _add_counts(self._reply, "usageMetadata", event.get("usageMetadata"))
        candidate = next((one for one in objects_in(event.get("candidates")) if not one.get("index")), {})
        self._candidate |= candidate
        content, feedback = candidate.get("content"), event.get("promptFeedback")
        parts = objects_in(content.get("parts") if isinstance(content, Mapping) else None)
        self._parts += parts
        self._blocked = self._blocked or (isinstance(feedback, Mapping) and bool(feedback.get("blockReason")))
        self.complete = self.complete or self._blocked or bool(candidate.get("finishReason"))
        return any(part.get("functionCall") or (part.get("text") and not part.get("thought")) for part in parts)

    def body(self) -> JsonObject:
        """Return a `GenerateContentResponse`."""
        if self._blocked or not self._candidate:
            return {**self._reply, "candidates": []}
        return {**self._reply, "candidates": [{**self._candidate, "content": {"role": "model", "parts": self._parts}}]}
