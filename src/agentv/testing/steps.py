"""Steps of a scripted model server, and the calls that it receives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentv.model.values.message import ToolCall
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.user_code.guard import ForeignError, foreign_code

DEFAULT_USAGE = TokenUsage(input=10, output=5, total=15, cached=0, reasoning=0)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer from the model.

    Attributes:
        text: the answer's text. Embedding calls get vectors instead.
        tool_calls: the requested tool calls. A call without an `id` gets one.
        finish_reason: in the provider's spelling; by default derived from the answer (`stop`, `tool_use`, …).
        usage: tokens; `input` includes cached tokens, `output` includes reasoning tokens, as everywhere in agentv.
            None omits the usage from the reply.
        delay_s: seconds before the reply, in addition to the server's `delay_s`.
        refusal: text of a refusal, sent as `refusal` if the API has that field, otherwise as text.
        headers: additional headers of the reply.
        vectors: the result of an embedding call, one per text. By default, texts that share words get similar
            vectors, and the same text always gets the same vector.
        reasoning: the model's reasoning before the answer, sent if the protocol supports it.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: TokenUsage | None = DEFAULT_USAGE
    delay_s: float = 0.0
    refusal: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    vectors: tuple[tuple[float, ...], ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The provider replies with an error in its own format.

    Attributes:
        code: HTTP status code, such as 429, 500 or 529.
        message: the error's text; by default the provider's usual one.
        retry_after: the header `Retry-After`: seconds, or a text such as an HTTP date.
        headers: additional headers of the reply.
    """

    code: int
    message: str = ""
    retry_after: float | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContentFilter:
    """The provider's content filter blocks the answer: a finish reason in most APIs, an error 400 in Azure's."""


@dataclass(frozen=True, slots=True)
class EmptyChoices:
    """A well-formed reply without an answer: no choices, no content blocks, no candidates, no vectors."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """Half of the body is sent, less than `Content-Length`, then the connection is closed. Streams are cut too."""

    answer: Answer = Answer("this is cut short")


@dataclass(frozen=True, slots=True)
class MalformedJson:
    """Status 200 and the right content type, but the body, or the second event of a stream, is invalid JSON."""

    answer: Answer = Answer("this is not JSON")


@dataclass(frozen=True, slots=True)
class WrongType:
    """Status 200 with an HTML page, as a proxy may send it."""

    body: str = "<html><body><h1>Bad Gateway</h1></body></html>"
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True)
class ClosedConnection:
    """The connection is closed without a reply."""


@dataclass(frozen=True, slots=True)
class SlowDrip:
    """The reply starts at once and is sent in ten pieces, spread over `seconds`."""

    seconds: float
    answer: Answer = Answer("this took a while")


@dataclass(frozen=True, slots=True)
class StoppedStream:
    """Half of a stream's events are sent, without the final one.

    Attributes:
        silent: whether the connection stays open without further events; otherwise the stream ends as if complete.
        answer: the answer whose first half is sent. A call without streaming gets the first half of its body.
    """

    silent: bool = False
    answer: Answer = Answer("this answer stops in its middle")


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing is sent until the client gives up or the server is stopped."""


@dataclass(frozen=True, slots=True)
class Together:
    """The answer is sent once `requests` calls wait for their reply at the same time, for tests of concurrency.

    Attributes:
        requests: number of calls to wait for.
        answer: the answer to each of them.
    """

    requests: int
    answer: Answer = Answer("together")


def use_tool(tool: str, /, **arguments: Json) -> Answer:
    """An answer that calls one tool. See `AgentScript` for the names that it translates.

    Args:
        tool: name of the tool.
        arguments: arguments of the call.
    """
    return Answer(tool_calls=(ToolCall(tool, arguments),))


def usage_in(usage: object) -> TokenUsage | None:
    """The usage of an answer; the default usage for other steps."""
    return usage.usage if isinstance(usage, Answer) else DEFAULT_USAGE


Fault: TypeAlias = Truncated | MalformedJson | WrongType | ClosedConnection | SlowDrip | StoppedStream | Hang
Step: TypeAlias = Answer | Status | ContentFilter | EmptyChoices | Together | Fault
ANSWER_STEPS = (Together, Truncated, MalformedJson, SlowDrip, StoppedStream)
"""Steps that deliver an answer in their own way."""


Script: TypeAlias = "str | Step | Sequence[str | Step] | Callable[[ModelCall], str | Step]"


def script_of(script: Script) -> Callable[[ModelCall], Step]:
    """A function that returns the step for each call. It must be called by one thread at a time.

    Raises:
        ValueError: the sequence is empty.
        TypeError: something is neither a text nor a step.
    """
    if callable(script):

        def called(call: ModelCall) -> Step:
            try:
                with foreign_code("target-raised", "the reply function"):
                    return step_of(script(call))
            except ForeignError as raised:
                return Status(500, raised.failure.message)

        return called
    given = script if isinstance(script, Sequence) and not isinstance(script, str) else [script]
    steps = deque(map(step_of, given))
    if not steps:
        raise ValueError("a ModelServer needs at least one step to reply with")
    return lambda _call: steps.popleft() if len(steps) > 1 else steps[0]


def step_of(step: str | Step) -> Step:
    """The step itself, or the answer with a text.

    Raises:
        TypeError: the value is neither a step nor a text.
    """
    if isinstance(step, str):
        return Answer(step)
    if isinstance(step, Step):
        return step
    raise TypeError(f"a reply must be a text or a step such as Answer(…) or Status(429), found {step!r}")


_CONTENT_KEYS = ("text", "content", "parts", "output")
TURNS = ("messages", "contents", "input")
_TEXT_KEYS = ("system", "instructions", "systemInstruction", "system_instruction", *TURNS)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model server.

    Attributes:
        protocol: `openai`, `anthropic`, `gemini`, `azure` or `ollama`, according to the address called.
        operation: `chat`, `responses`, `messages`, `generate` or `embed`.
        path: path of the URL, without the query.
        model: the requested model or deployment; empty if the request names none.
        text: the text of all messages, system messages first, joined by line breaks; for embeddings the texts.
        body: the request's JSON, with everything that the client set: `response_format`, `tools`, `stream`, …
        headers: headers by lower-case name. They contain the API key, so the `repr` omits them.
        query: query parameters of the URL, without the API key.
        at: time of arrival by `time.monotonic()` or the server's `clock`.
    """

    protocol: str
    operation: str
    path: str
    model: str
    text: str
    body: JsonObject
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str]
    at: float

    @property
    def stream(self) -> bool:
        """Whether the call requests a stream of events."""
        if self.protocol == "gemini":
            return self.path.endswith(":streamGenerateContent")
        return bool(self.body.get("stream"))

    @property
    def prompt(self) -> str:
        """The text of the last message only."""
        turns = next((self.body[key] for key in TURNS if key in self.body), ())
        last = turns[-1:] if isinstance(turns, Sequence) and not isinstance(turns, str) else turns
        return "\n".join(pieces_of(last))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts to embed; empty for other calls."""
        return tuple(_embedded(self.body)) if self.operation == "embed" else ()


def text_of(body: JsonObject) -> str:
    """The text of all messages of a request in any of the protocols, system messages first."""
    return "\n".join(piece for key in _TEXT_KEYS for piece in pieces_of(body.get(key))) or "\n".join(_embedded(body))


def pieces_of(value: Json) -> Iterator[str]:
    """The texts of a message or content in order, without those of images, tool arguments and ids."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in _CONTENT_KEYS:
            yield from pieces_of(value.get(key))
    elif isinstance(value, Sequence):
        for one in value:
            yield from pieces_of(one)


def _embedded(body: JsonObject) -> Iterator[str]:
    """The texts of an embeddings request: `input` (OpenAI), `content` or several `requests` (Gemini)."""
    requests = body.get("requests")
    if isinstance(requests, Sequence) and not isinstance(requests, str):
        for one in requests:
            yield "\n".join(pieces_of(one))  # each has its own `content`
    elif "input" in body:
        given = body["input"]
        yield from map(str, given if isinstance(given, Sequence) and not isinstance(given, str) else [given])
    elif "content" in body:
        yield "\n".join(pieces_of(body["content"]))
